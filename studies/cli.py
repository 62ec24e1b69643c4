"""Commands about the method: the groups, the experiments, the speed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from invariantnet.app.cli.output import make_table, parse_shape, show
from studies.targets import Target


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a figure or table of the paper; a run that was interrupted goes on where it stopped.

    Examples: `invariantnet reproduce figure3 --out runs/figure3` ·
    `invariantnet reproduce all --quick --seeds 1 --out runs/quick` ·
    `invariantnet reproduce all --seeds 5 --out results`
    """

    what: tyro.conf.Positional[Target]
    """Path of π, test accuracies, examples, extrapolation, readings of the text, a full identity; all of these.
    Beyond the paper: the posterior from held-out evidence, its calibration, the whole posterior over π, what
    networks do not know, and learning curves."""
    method: Literal["paper", "evidence", "heldout"] = "paper"
    """The paper's layer and baselines; or ours, drawn beside them (figure1, figure2, table1)."""
    seeds: int = 5
    """Repeat every run with the seeds 0 … N-1."""
    out: Path = Path("runs/reproduce")
    """Folder for the results; finished runs in it are kept and not repeated."""
    quick: bool = False
    """Few examples and epochs: a look in about two minutes, not a result."""
    jobs: int | None = None
    """Processes at once; by default one per core."""
    cluster: str | None = None
    """Address of a dask scheduler, such as tcp://host:8786, whose workers train instead of this machine."""

    @property
    def after_interrupt(self) -> str:
        """What Ctrl-C leaves."""
        return "; finished networks are kept: the same command goes on"

    def run(self) -> None:
        """Write the results and say where they are."""
        from invariantnet._system.dask import on_cluster
        from studies.reproduce import reproduce

        with on_cluster(self.cluster):
            written = reproduce(
                self.what, self.out, method=self.method, seeds=self.seeds, quick=self.quick, jobs=self.jobs
            )
        for path in written:
            print(path)


@dataclass(frozen=True)
class Bench:
    """Measure the speed table: ratios within one run, best of several repeats, one thread.

    Example: `invariantnet bench --json`
    """

    repeats: int = 30
    """How often each case is measured; the best counts."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Measure and print."""
        from studies.speed_table import as_json, bench

        if self.repeats < 1:
            raise ValueError(f"{self.repeats} repeats measure nothing: ask for at least one.")
        rows = bench(self.repeats)
        if self.json:
            print(json.dumps(as_json(rows), indent=1, ensure_ascii=False))
            return
        table = make_table("case", "ms", "ratio", "to")
        for row in rows:
            table.add_row(row.name, f"{row.milliseconds:.3f}", f"{row.ratio:.3f}", row.reference)
        show(table)
