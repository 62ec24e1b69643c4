"""`docs/speed.md`, written from the committed measurements."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from invariantnet.experiments.tables import markdown

TARGETS = {
    "paper layer, q = 1 (rot90), training step": 0.7,
    "paper layer, q = 2 (rot90, flips), training step": 0.9,
    "features, rot90, training step": 3.2,
    "features, d4, training step": 6.4,
    "paper layer, folded": 1.02,
    "weights, rot90, folded": 1.02,
    "features, rot90, folded": 1.02,
    "CNN, outputs, d4, training step": 8.0,
}
"""Ratios that were aimed at."""

EXAMPLES, PIXELS, HYPOTHESES, SEEDS, EPOCHS, WIDTH, COPIES = 1_000_000, 3 * 224 * 224, 10, 2, 25, 800, 1
GPU = 20e12
"""Floating-point operations per second that large products reach on one current GPU, by order of magnitude."""


def speed_page(folder: Path) -> str:
    """The whole page as Markdown."""
    bench, growth, verdict, by_hand = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("bench", "growth", "verdict", "by_hand")
    )
    return PAGE.format(
        bench=_bench(bench),
        growth=_growth(growth),
        memory=next(row["peak megabytes above the start"] for row in growth if row["growth with"] == "inputs"),
        verdict=_verdict(verdict),
        by_hand=_by_hand(by_hand),
        operations=f"{operations():.1e}",
        hours=f"{operations() / GPU / 3600:.1f}",
        minutes=f"{operations() / GPU / 60 / (HYPOTHESES * SEEDS):.0f}",
        machines=HYPOTHESES * SEEDS,
    )


def operations() -> float:
    """Multiplications and additions of the whole comparison of the example, nothing dropped."""
    # Blocks double, so all training sets together are as large as the data; a step is two products, each 2·n·D·m.
    return 4.0 * HYPOTHESES * SEEDS * EPOCHS * EXAMPLES * PIXELS * WIDTH * COPIES


def _bench(rows: list[dict[str, Any]]) -> str:
    return markdown(
        ["case", "ms", "ratio", "to", "aimed at"],
        [
            [
                row["name"],
                f"{row['milliseconds']:.3f}",
                f"{row['ratio']:.2f}",
                row["reference"],
                f"≤ {TARGETS[row['name']]}" if row["name"] in TARGETS else "",
            ]
            for row in rows
        ],
    )


def _growth(rows: list[dict[str, Any]]) -> str:
    return markdown(
        ["growth with", "measured", "from – to", "slope", "slope at the end"],
        [
            [
                row["growth with"],
                row["measured"],
                f"{row['sizes'][0]:,} – {row['sizes'][-1]:,}",
                f"{row['slope']:.2f}",
                f"{row['last slope']:.2f}",
            ]
            for row in rows
        ],
    )


def _verdict(rows: list[dict[str, Any]]) -> str:
    racing, loop = rows
    ratio = racing["cpu_seconds"] / loop["cpu_seconds"]
    best = racing["names"][int(np.argmax(racing["probabilities"]))]
    same = best == loop["names"][int(np.argmax(loop["probabilities"]))]
    return (
        f"{racing['cpu_seconds']:.0f} CPU seconds with racing, {loop['cpu_seconds']:.0f} for all twelve networks "
        f"on all blocks: a ratio of {ratio:.2f} (aimed at: 0.5). Both name {best if same else 'different groups'}."
    )


def _by_hand(rows: list[dict[str, Any]]) -> str:
    return markdown(
        ["method", "seed", "chose", "test accuracy", "CPU seconds"],
        [
            [r["method"], str(r["seed"]), r["chosen"], f"{r['accuracy']:.1f} %", f"{r['cpu_seconds']:.0f}"]
            for r in sorted(rows, key=lambda r: r["method"])
        ],
    )


PAGE = """# Speed

*Written by `tools/write_docs.py` from `results/bench.json`, `growth.json`, `verdict.json` and `by_hand.json`,
which `invariantnet bench --json` and the scripts in `benchmarks/` make. One thread; ratios within one run, best
of several repeats.*

## Steps and predictions

{bench}
Where a target is missed: at this size a training step is mostly not arithmetic. The products of the MLP's own
step are less than half of it, the rest is the optimiser's and autograd's bookkeeping, which a layer with
smaller products pays as well. Fusing the layer's mixture, its draw and its prior by hand brought the paper
layer to 0.9 and no further.

## A whole verdict

Five thousand rotated images, {{none, rot90, flips, d4}}, three networks each: {verdict}

## Against the same choice by hand

scikit-learn's MLP of the same width, trained on every pose under each of four augmentations, the best on a
validation part trained again on everything; and ours, which is not told the group either.

{by_hand}
## Growth

![Cost against examples, hypotheses, elements and inputs](pictures/growth.png)

{growth}
On inputs of 3×224×224 nothing is ever D×D: the resident memory of that column peaks {memory} MB above its
start, most of it the weights, their four moved copies and their gradients.

## What a large problem would take

A million images of 3×224×224, ten hypotheses, two networks each, nothing dropped, 25 epochs, 800 units:
\\(4 \\cdot H \\cdot S \\cdot E \\cdot N \\cdot D \\cdot m\\) operations, that is {operations}. At 20 TFLOP/s,
the order of magnitude of one current GPU, about {hours} hours; with `--cluster` and one GPU for each of the
{machines} networks about {minutes} minutes. Racing drops most of the hypotheses on the way. These are
extrapolations: the largest problem run here has 60,000 images of 28×28.

`--jobs` trains networks side by side on one machine, `--cluster tcp://…` on others, through dask; `--devices 2`
shares each network among processes, through lightning-fabric, which pays only when one network is too large for
one device.
"""
