"""`docs/reliability.md`, written from the committed measurements."""

import json
from pathlib import Path
from typing import Any

from studies.tables import markdown


def reliability_page(folder: Path) -> str:
    """The whole page as Markdown."""
    measured = ("faults", "load", "fuzz", "mutants", "coverage")
    faults, load, fuzz, mutants, covered = (json.loads((folder / f"{name}.json").read_text()) for name in measured)
    return PAGE.format(
        faults=_faults(faults),
        load=_load(load),
        fuzz=_fuzz(fuzz),
        mutants=_mutants(mutants),
        lines=covered["lines"],
        branches=covered["branches"],
    )


def _faults(rows: list[dict[str, Any]]) -> str:
    return markdown(
        ["fault", "how", "times", "stored networks found again", "lost"],
        [
            [
                row["fault"],
                row["how"],
                f"{row['times']:,}",
                f"{row['kept networks']:,}" if row["kept networks"] else "",
                "nothing" if not row["lost"] else f"{row['lost']} times something",
            ]
            for row in rows
        ],
    )


def _load(rows: list[dict[str, Any]]) -> str:
    return markdown(
        ["what", "measured"],
        [
            [
                row["part"],
                ", ".join(f"{name} {value:,}" for name, value in row.items() if name != "part"),
            ]
            for row in rows
        ],
    )


def _fuzz(rows: list[dict[str, Any]]) -> str:
    return markdown(
        ["reader", "mutated files", "crashes"],
        [[row["reader"], f"{row['files']:,}", f"{row['crashes']:,}"] for row in rows],
    )


def _mutants(rows: list[dict[str, Any]]) -> str:
    counts = [[row["module"], f"{row['mutants']}", f"{len(row['survivors'])}"] for row in rows]
    reasons = [
        [row["module"], f"`{found['change'].replace('|', chr(92) + '|')}`", found["why"]]
        for row in rows
        for found in row["survivors"]
    ]
    table = markdown(["module", "changes tried", "not noticed"], counts)
    return f"{table}\n{markdown(['module', 'change', 'why no test notices'], reasons)}" if reasons else table


PAGE = """# Reliability

*Written by `tools/write_docs.py` from `faults.json`, `load.json`, `fuzz.json`, `mutants.json` and
`coverage.json` in `results/`; the first four are made by the scripts of these names in `benchmarks/`.*

## Faults

Each disturbed run was resumed, and compared with an undisturbed one: the model, the record, the page and the
results, bit for bit. Lost would be a difference, a torn file, something half written that stays, or a network
that was stored before the fault and trained again.

{faults}
What you see of a fault is one line and a status: 2 for a wrong input, 1 for a machine that fails (a full disk, no
memory), 130 for Ctrl-C. `invariantnet fit … --resume` goes on where it stopped, if settings and data are the same;
`invariantnet reproduce` does so by itself. When a sweep is killed, its workers end within a second.

## Wrong input

The tests hold a catalogue of several hundred wrong inputs: damaged, truncated, lying and hostile files of every
kind, options, groups, shapes, types and labels. Each ends with status 2 (a `ValueError` in Python) and one line
that names the fault and the remedy, and nothing is written. What is promised about files of strangers is in
`SECURITY.md`.

Every reader is fuzzed with mutated files; only a `ValueError` may come out. The tests do so with a few hundred of
them; here is a longer run, with mutations that were led by coverage (atheris):

{fuzz}
A network whose loss is not finite ends its training at once, a warning names it, its hypothesis falls behind, and
the others go on. If it is the final network, that is an error.

## Much data

{load}
Megabytes are resident memory; of fits and predictions, what comes on top of the process before. The fits of many
examples, classes and hypotheses found the symmetry that the data has. DiskArray to predict are read from a folder with
`x.npy`, which stays on disk, and predictions are written as they come, so that memory does not depend on how many
there are. An `.npz`, a `.csv` and a folder of images are read whole. Seconds are those of one thread, on a machine
that was busy with other work.

## Tests of the tests

They run {lines} % of the program's lines and {branches} % of its branches (`make coverage`).

One operator, constant or condition of the mathematics was changed at a time, and the tests of its module were run:

{mutants}
## Same seed, same bits

Equal seeds give equal files on one machine, whatever the order of the candidates and the number of processes. The
record names the number of threads, and the versions of everything that a result depends on.
"""
