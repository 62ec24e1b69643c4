"""`docs/beyond.md`, written from the committed results: what was measured beyond the paper."""

from pathlib import Path

import numpy as np

from invariantnet.experiments import results, tables
from invariantnet.experiments.calibration import summary
from invariantnet.experiments.posterior import scores
from invariantnet.experiments.results import Flat
from invariantnet.experiments.tables import SHIFTS


def beyond_page(folder: Path) -> str:
    """The whole page as Markdown."""
    posterior, calibration, figure1, figure2, table1 = (
        results.read(folder, name) for name in ("posterior", "calibration", "figure1", "figure2", "table1")
    )
    ours = [r for r in table1 if r["method"] == "evidence"]
    return PAGE.format(
        posterior=tables.posterior(posterior),
        named=_named(posterior),
        calibration=tables.calibration(calibration),
        figure1=tables.figure1([r for r in figure1 if r["method"] in ("evidence", "heldout")]),
        figure2=tables.figure2(figure2),
        figure2_words=_figure2_words(figure2),
        table1=_table1(ours),
        claims=f"{summary(calibration)['data sets']:.0f}",
    )


def headline(folder: Path) -> dict[str, str]:
    """The tables of the README."""
    evidence = [r for r in results.read(folder, "posterior") if r["method"] == "evidence"]
    return {
        "posterior": tables.posterior(evidence),
        "calibration": tables.calibration(results.read(folder, "calibration")),
    }


def _named(records: Flat) -> str:
    lines = []
    for method in ("evidence", "heldout"):
        rows = [r for r in records if r["method"] == method]
        right = sum(r["names"][int(np.argmax(r["probabilities"]))] == r["truth"] for r in rows)
        lines.append(f"`{method}` named the symmetry that is there in {right} of {len(rows)} runs")
    low = min((row["lowest"], row["data"], row["n"]) for row in scores(records) if row["method"] == "evidence")
    return (
        "; ".join(lines)
        + f". The lowest posterior that `evidence` gave a truth was {low[0]:.3f} ({low[1]}, n = {low[2]:,})."
    )


def _figure2_words(records: Flat) -> str:
    def mean(model: str, data: str) -> float:
        return float(np.mean([r["accuracy"] for r in records if r["model"] == model and r["data"] == data]))

    def against(model: str, data: str) -> str:
        return f"{mean('ours (evidence)', data) - mean(model, data):+.1f}"

    return (
        f"Ours against RotNet on rotated images: {against('RotNet', 'rotated')} points; against FlipNet on "
        f"flipped ones: {against('FlipNet', 'flipped')}; against the MLP {against('MLP', 'rotated')} on rotated, "
        f"{against('MLP', 'flipped')} on flipped and {against('MLP', 'permuted')} on permuted ones."
    )


def _table1(records: Flat) -> str:
    rows = []
    for model in dict.fromkeys(r["model"] for r in records):
        found = [r for r in records if r["model"] == model]
        rows.append([model, *(tables.spread([r[s] for r in found]) for s in SHIFTS), str(len(found))])
    return tables.markdown(["model", *SHIFTS, "seeds"], rows)


PAGE = """# Beyond the paper: what was measured

*Written by `tools/write_docs.py` from the records under `results/`. The commands:
`invariantnet reproduce posterior --seeds 10`, `reproduce calibration --seeds 3`, and
`reproduce figure1` (or `figure2`, `table1`) `--method evidence` and `--method heldout`, each with `--out results`.
All seeds are shown; test data is touched once; hyperparameters were chosen on training images only.*

## Does it name the symmetry that is there?

![The posterior of every seed](pictures/posterior.png)

{posterior}
{named}

Tables of scikit-learn, their columns forced into an image, have no symmetry, and come out so. With the number of
examples so small a wrong favourite happens; the probability beside it says how little it is to be relied upon.

Among all image groups, with many hypotheses of two elements, 5,000 permuted images do not settle it: the
posterior is spread over the smallest groups and none, and the verdict is *inconclusive*. A group of two elements
costs little where there is no symmetry, so more data is needed to rule it out. Ask about the groups you suspect.

The lowest posterior on 5,000 permuted images and two candidates comes from one seed: the two best hypotheses are
51 nats apart, and the bootstrap puts the other one first in one resample of twenty. Four networks per hypothesis
instead of two gave 0.947 there, blocks that grow by 1.5 instead of 2 gave 0.954: it is the data's own uncertainty.

## Are its probabilities honest?

{claims} small data sets whose symmetry is known: images, sequences, sets, signs and channels, with and without
symmetry, easy and hard, n from 100 to 1,000.

![Stated against observed](pictures/calibration.png)

{calibration}
## Figure 1, by evidence and by held-out data

![Figure 1, the printed layer above and ours below](pictures/figure1.png)

{figure1}
## Figure 2, with ours

{figure2}
{figure2_words}

## Table 1, with ours

Trained on plain images, no augmentation; `tolerance` affords D4. An exactly invariant network has three equal
numbers. 6 and 9 are left out of training and test images, as in the reproduction, unless a row says otherwise.

{table1}
What limits it: with all ten digits a 6 turned by 180° is a 9, and a network that is invariant to turns has to
guess. The rows *all ten digits*, where they were run, show what that costs.

## A comparison that was wrong, and is mended

At equal width, a network averaged over a group has that many times the hidden units of a plain one. With 60,000
permuted images, which have no symmetry, that alone made rotations win (posterior 0.92). So the more examples there
are, the more neurons a smaller group gets, until all hypotheses have equally many units: see
`estimator.compared_width`.
"""
