"""`docs/speed.md`, written from the committed measurements."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from invariantnet.inference.models import DECAYED
from invariantnet.inference.rules import GROWTH
from studies.tables import markdown

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

EXAMPLES, PIXELS, HYPOTHESES, SEEDS, EPOCHS = 1_000_000, 3 * 224 * 224, 10, 2, DECAYED.training.epochs
UNITS = round(8 * 100 * DECAYED.width)
GPU = 20e12
"""Floating-point operations per second that large products reach on one current GPU, by order of magnitude."""
DISK = 2e9
"""Bytes per second of one current disk, by order of magnitude."""
STEP_BATCH, STEP_UNITS = 64, 400
"""Of the steps that `benchmarks/growth.py` measures on 3×224×224: rot90, four copies of 100 units."""


def speed_page(folder: Path) -> str:
    """The whole page as Markdown."""
    bench, growth, verdict, by_hand, rivals, large = (
        json.loads((folder / f"{name}.json").read_text())
        for name in ("bench", "growth", "verdict", "by_hand", "rivals", "memory")
    )
    return PAGE.format(
        bench=_bench(bench),
        growth=_growth(growth),
        memory=next(row["peak megabytes above the start"] for row in growth if row["growth with"] == "inputs"),
        verdict=_verdict(verdict),
        by_hand=_by_hand([*by_hand, *rivals]),
        floor=_floor(bench),
        large=_large(large[0]),
        size=f"{large[0]['gigabytes']:.0f}",
        operations=f"{operations():.1e}",
        hours=f"{operations() / GPU / 3600:.1f}",
        minutes=f"{operations() / GPU / 60 / (HYPOTHESES * SEEDS):.0f}",
        machines=HYPOTHESES * SEEDS,
        epochs=EPOCHS,
        units=UNITS,
        core_days=f"{_core_seconds(growth) / 86400:.0f}",
        gigabytes=f"{EXAMPLES * PIXELS / 1e9:.0f}",
        disk_hours=f"{passes() * EXAMPLES * PIXELS / DISK / 3600:.0f}",
        disk_minutes=f"{passes() * EXAMPLES * PIXELS / DISK / 60 / (HYPOTHESES * SEEDS):.0f}",
    )


def operations() -> float:
    """Multiplications and additions of the whole comparison of the example, nothing dropped."""
    # A step is two products, each 2·n·D·m.
    return 4.0 * passes() * EXAMPLES * PIXELS * UNITS


def passes() -> float:
    """Over the data, by all networks of the example together; training sets grow in a geometric series."""
    return HYPOTHESES * SEEDS * EPOCHS / (GROWTH - 1)


def _core_seconds(growth: list[dict[str, Any]]) -> float:
    """Of one core, from the measured step on as many inputs; cost is linear in examples, networks and units."""
    step = next(row["seconds"][-1] for row in growth if row["growth with"] == "inputs")
    return float(step * UNITS / STEP_UNITS * passes() * EXAMPLES / STEP_BATCH)


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


def _floor(rows: list[dict[str, Any]]) -> str:
    ratio = {row["name"]: row["ratio"] for row in rows}
    first, second = (ratio[f"a plain layer on {n} numbers instead"] for n in (196, 392))
    return f"{first:.2f} and {second:.2f}"


def _large(row: dict[str, Any]) -> str:
    size = "×".join(map(str, row["shape"]))
    return (
        f"{row['examples']:,} images of {size} bytes, a file of {row['gigabytes']:.0f} GB: the process' resident "
        f"memory peaked at {row['peak_resident_megabytes']} MB (aimed at: 2,000), "
        f"{row['peak_anonymous_megabytes']} MB of it its own, in {row['seconds'] / 60:.0f} minutes on a busy core"
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
    racing, loop, twelve = rows
    spent, all_blocks, everything = (row["cpu_seconds"] for row in rows)
    best = racing["names"][int(np.argmax(racing["probabilities"]))]
    same = best == loop["names"][int(np.argmax(loop["probabilities"]))]
    skipped = loop["networks"] - racing["networks"]
    return (
        f"{spent:.0f} CPU seconds. To train the {twelve['networks']} networks on all examples, one after another, "
        f"takes {everything:.0f}: a ratio of {spent / everything:.2f} (aimed at: 0.5). To train them on every "
        f"block and drop none takes {all_blocks:.0f}, a ratio of {spent / all_blocks:.2f}, and names "
        f"{'the same group, ' + best if same else 'another group'}. "
        f"The race saves {skipped} of the loop's {loop['networks']} networks, most of them on the last block, the "
        "dearest: who is far behind after the first of its networks gets no others, and where one leads "
        "that surely, none does. Training the three networks of a hypothesis in common products was timed too: a "
        "step takes between 0.66 and 1.02 of three single ones, as much of it is the products themselves and the "
        "optimiser's pass over the weights, so it is left out."
    )


def _by_hand(rows: list[dict[str, Any]]) -> str:
    return markdown(
        ["method", "seed", "chose", "test accuracy", "CPU seconds"],
        [
            [
                r["method"],
                str(r["seed"]),
                r.get("chosen", "given"),
                f"{r['accuracy']:.1f} %",
                f"{r['cpu_seconds']:.0f}",
            ]
            for r in sorted(rows, key=lambda r: r["method"])
        ],
    )


PAGE = """# Speed

*Written by `tools/write_docs.py` from `results/bench.json`, `growth.json`, `verdict.json`, `by_hand.json`,
`rivals.json` and `memory.json`, which `invariantnet bench --json` and the scripts in `benchmarks/` make. One
thread; ratios within one run, best of several repeats.*

## Steps and predictions

{bench}
Where the paper layer misses its target: at this size much of a training step is not arithmetic but the optimiser's
and autograd's bookkeeping, which a layer with smaller products pays as well. A plain layer on as many numbers as
the paper layer has rows takes {floor} of the reference, and that is the least. The paper layer adds the mixture,
one more product for the gradient of π, the draw and the prior. Five other ways, each timed beside it, were no
faster: mixing the rows of A instead of the inputs, which makes one product over all orbit sums (0.85 and 1.22 of
the reference), the same with gradients written by hand (0.87 and 1.24), mixing every scheme's outputs by hand,
whose gradient needs no further product (0.78 and 1.12, where the layer as it is took 0.77 and 1.09), gradients
of the mixed inputs by hand (0.82 and 1.10), and one product over all orbit sums in the backward pass only, which
gives both gradients (0.76 and 1.10, the layer as it is 0.73 and 1.10). From one process to the next, ratios
differ by up to a twentieth.

## A whole verdict

Five thousand rotated images, {{none, rot90, flips, d4}}, three networks each: {verdict}

## Against the same choice by hand

scikit-learn's MLP of the same width, trained on every pose under each of four augmentations, the best on a
validation part trained again on everything; ours, which is not told the group either; and for comparison e2cnn,
an equivariant convolutional network that is told it, where ours has one hidden layer.

{by_hand}
## Growth

![Cost against examples, hypotheses, elements and inputs](pictures/growth.png)

{growth}
The allocator of Linux gives memory back to the system as soon as it is free, and a step that needs it again waits
for new pages. Training keeps arrays of up to 31 MB (`keep_freed_memory`): it took a seventh off the steps
of a CNN under eight elements. Larger ones are new at every step, which shows in the slope in inputs. Where the
allocator keeps them, too (glibc, `MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=2147483647`), a step on
3×224×224 took half as long when that was tried, in not quite twice the memory: worth setting where memory is
plentiful.

On inputs of 3×224×224 nothing is ever D×D: the resident memory of that column peaks {memory} MB above its
start, most of it the weights, their four moved copies and their gradients.

## Data larger than memory

`benchmarks/memory.py` runs `invariantnet fit` on {large}.
The labels depend on where up is, so `rot90` is out after the first block, and the network without symmetry and the
plain one are trained for one epoch each. Every pass over the data reads it block by block, and every batch is read
when it is needed.

## What a large problem would take

A million images of 3×224×224, ten hypotheses, two networks each, nothing dropped, {epochs} epochs, {units} units.
Blocks grow fourfold, so the training sets of one network together are a third of the data, and the slopes in
examples and hypotheses end close to 1, so the cost is a product:

- arithmetic: \\(\\tfrac43 \\cdot H \\cdot S \\cdot E \\cdot N \\cdot D \\cdot m\\) operations, that is
  {operations}.
  From the step measured here on inputs of that size, {core_days} days of one core. At 20 TFLOP/s, the order of
  magnitude of one current GPU, about {hours} hours; with `--cluster` and one GPU for each of the {machines}
  networks about {minutes} minutes.
- reading: \\(\\tfrac13 \\cdot H \\cdot S \\cdot E \\cdot N \\cdot D\\) bytes. The file has {gigabytes} GB;
  where that does not fit into memory, at 2 GB/s about {disk_hours} hours on one machine, and {disk_minutes}
  minutes on {machines} machines with a copy each. So on one machine with a GPU the disk decides, unless memory
  holds the file.

Racing drops some of the hypotheses on the way, and the final network is one more of the same size. These are
extrapolations: the largest problems run here are 60,000 images of 28×28 to the end, and the file of {size} GB
for one epoch.

`--n-jobs` trains networks side by side on one machine, `--cluster tcp://…` on others, through dask; `--devices 2`
shares each network among processes, through lightning-fabric, which pays only when one network is too large for
one device.
"""
