"""`docs/reproduction.md`, written from the committed results: no number in it is typed."""

import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from studies import results, tables
from studies.paper import FIGURE_1, TABLE_1
from studies.results import Flat
from studies.tables import SHIFTS

SCHEMES = {"rot90": "rotations", "flips": "flips", "trivial": "no symmetry"}
CLOSE = 1.5


def reproduction_page(folder: Path) -> str:
    """The whole page as Markdown."""
    table1, figure1, figure2, ablation, identity = (
        results.read(folder, name) for name in ("table1", "figure1", "figure2", "ablation", "identity")
    )
    machine = json.loads((folder / "machine.json").read_text())
    baselines, invnet = deviations(table1)
    return PAGE.format(
        seeds=machine["seeds"],
        versions=", ".join(f"{name} {machine[name]}" for name in ("python", *results.PACKAGES)),
        minutes=f"{machine['cpu_seconds'] / 60:.0f}",
        figure1=tables.figure1(figure1),
        endings=_endings([r for r in figure1 if r["method"] == "paper"], identity),
        figure2=tables.figure2(figure2),
        figure2_words=_figure2_words(figure2),
        table1=tables.table1(table1),
        baselines=_baselines(baselines),
        invnet=", ".join(f"{shift} {value:+.1f}" for shift, value in invnet.items()),
        ablation=tables.ablation(ablation),
        nearest=_nearest(ablation),
        top_rows=196 // 28,
    )


def deviations(records: Flat) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Ours minus the paper's, in points: of every baseline, and of InvNet."""
    found = {}
    for model, row in TABLE_1.items():
        ours = [r for r in records if r["model"] == model]
        found[model] = {s: float(np.mean([r[s] for r in ours])) - row[s][0] for s in SHIFTS}
    invnet = found.pop("InvNet")
    return found, invnet


def _baselines(found: dict[str, dict[str, float]]) -> str:
    misses = [
        f"{model} on {shift} images ({value:+.2f})"
        for model, row in found.items()
        for shift, value in row.items()
        if abs(value) > CLOSE
    ]
    cells = sum(len(row) for row in found.values())
    if not misses:
        return f"all {cells} numbers of the four baselines are within {CLOSE} points of the paper's."
    return (
        f"{cells - len(misses)} of their {cells} numbers come out within {CLOSE} points of the paper's; "
        f"not so {' and '.join(misses)}."
    )


def _endings(printed: Flat, full: Flat) -> str:
    def ending(records: Flat, data: str, names: tuple[str, ...]) -> str:
        ends = [r["trajectory"][-1] for r in records if r["data"] == data and tuple(r["names"]) == names]
        if not ends:
            return "–"
        mean = np.mean(ends, axis=0)
        return f"{SCHEMES[names[int(mean.argmax())]]} ({mean.max():.2f})"

    rows = [
        [data, " / ".join(names), FIGURE_1[data], ending(printed, data, names), ending(full, data, names)]
        for data, names in dict.fromkeys((r["data"], tuple(r["names"])) for r in printed)
    ]
    return tables.markdown(["data", "schemes", "the paper", "as printed", "with a full identity"], rows)


def _figure2_words(records: Flat) -> str:
    def mean(model: str, data: str) -> float:
        return float(np.mean([r["accuracy"] for r in records if r["model"] == model and r["data"] == data]))

    rot = mean("InvariantNet (rot)", "rotated") - mean("RotNet", "rotated")
    flip = mean("InvariantNet (flip)", "flipped") - mean("FlipNet", "flipped")
    mlp = mean("MLP", "rotated") - mean("InvariantNet (rot)", "rotated")
    return (
        f"On rotated images InvariantNet is {rot:+.1f} points from RotNet, on flipped ones {flip:+.1f} from "
        f"FlipNet: as in the paper, it keeps up with them. But a plain MLP of the same width is {mlp:+.1f} points "
        "from it on rotated images: with 48,000 examples in all poses, keeping only orbit sums of the input costs "
        "more than the symmetry gains."
    )


def _nearest(records: Flat) -> str:
    paper = np.array([TABLE_1["InvNet"][s][0] for s in SHIFTS])

    def distance(reading: str) -> float:
        rows = [[r[s] for s in SHIFTS] for r in records if r["reading"] == reading]
        return math.dist(np.mean(rows, axis=0), paper)

    def name_and_numbers(reading: str) -> str:
        rows = [[r[s] for s in SHIFTS] for r in records if r["reading"] == reading]
        return f"*{reading}* ({' / '.join(f'{v:.1f}' for v in np.mean(rows, axis=0))})"

    readings = dict.fromkeys(r["reading"] for r in records)
    learned = [r for r in readings if not _is_fixed(r)]
    given = [r for r in readings if _is_fixed(r)]
    matches = [r for r in readings if _within(records, r, paper)]
    verdict = (
        f"These readings give all three numbers within {CLOSE} points: {', '.join(matches)}."
        if matches
        else f"No reading gives all three numbers within {CLOSE} points."
    )
    return (
        f"{verdict} With a learned π the nearest is {name_and_numbers(min(learned, key=distance))}, "
        f"with a given one {name_and_numbers(min(given, key=distance))}."
    )


def _is_fixed(reading: str) -> bool:
    return any(word in reading for word in ("no identity", "a tenth"))


def _within(records: Flat, reading: str, paper: Iterable[float]) -> bool:
    means = [np.mean([r[s] for r in records if r["reading"] == reading]) for s in SHIFTS]
    return all(abs(m - p) <= CLOSE for m, p in zip(means, paper, strict=True))


PAGE = """# The paper, reproduced

*Written by `tools/write_docs.py` from the records under `results/`, which
`invariantnet reproduce all --seeds {seeds} --out results` makes.*
{seeds} seeds (0, 1, …), all of them shown; {versions}; {minutes} CPU minutes in all.
Every network is trained by the same loop: Adam at 0.001, batches of 256, early stopping on a tenth of the
training set, best weights restored, test data touched once.

## What holds, and what does not

1. **The baselines**: {baselines}
2. **Figure 1 does not follow from the printed formula.** The layer shows its branch without symmetry only the
   first d inputs. With one group of four on 28×28 images these are the top {top_rows} rows of pixels, nearly
   blank. The symmetry wins on every data set, the permuted one included.
3. **With a full identity the opposite happens**: the training likelihood never rewards a constraint, so π leaves
   the symmetries, on any data.
4. **A Jeffreys prior is infinite at the corners of the simplex**, so its maximum a posteriori is a corner whatever
   the data say; only the coordinates of the logits, with the Jacobian, make it finite.
5. **A mixture of two groups is invariant only to what they share.** Rotations and flips have the half turn in
   common, so π = (½, ½, 0) cannot be robust to both, which is why 58 and 72 % were the paper's best. A network
   that is invariant to both needs their join, D4.

## Figure 1: trajectories of π

![Trajectories of π](pictures/figure1.png)

{endings}
{figure1}
## Figure 2: test accuracy

![Test accuracies](pictures/figure2.png)

{figure2}
{figure2_words}

## Table 1: trained on plain images, tested on transformed ones

{table1}
How the test images were transformed, the paper leaves open. The reading that fits its baselines: 6 and 9 removed
from training and test images, rotations uniform among the four quarter turns, flips uniform among none, horizontal
and vertical. The CNN has two convolutions of 16 and 32 filters, 5×5, stride 2, and a hidden layer of 100.

InvNet as printed, ours minus the paper's: {invnet}.

## Readings of the text

Each row changes one or two things about the printed layer; everything else is as in Table 1 (hidden layer of 200,
Dir(2, 2, 2), temperature 1).

{ablation}
{nearest}

## Figure 3: the data

![The four data sets, and the orbits of the groups](pictures/figure3.png)
"""
