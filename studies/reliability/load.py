"""Does memory stay bounded with much of everything: examples, rows, classes, hypotheses, and repeated fits?

Each part runs in a process of its own, whose peak of resident memory is measured above that of the imports.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import invariantnet as inv
from invariantnet.app.cli import main as command
from invariantnet.symmetries.lookup import symmetry
from studies.cost.timing import peak_megabytes, resident_megabytes
from studies.datasets import Arrays
from studies.framework import Claim, Part, Study
from studies.framework.markdown import markdown
from studies.framework.records import select

SIDE = 8
"""Height and width of scikit-learn's digits."""
BLOCK = 10**5
"""Rows that are written at once."""
NOISE = 0.05
"""Standard deviation of the noise that makes copies of digits differ."""
MODEL = "plain mlp"
"""The model of every fit: what is measured is the load, not the choice among models."""
QUICK_SHARE = 100
"""A quick run has a hundredth of the data, but enough that the symmetry can be found."""

Counts = dict[str, int]


@dataclass(frozen=True)
class LoadRecipe:
    """One kind of load, and how much of it."""

    part: str
    n: int
    seed: int


@dataclass(frozen=True)
class Record:
    """What it took."""

    part: str
    measured: Counts
    seconds: int


def small_classifier(candidates: Sequence[str], shape: tuple[int, ...] | None) -> inv.InvariantClassifier:
    """Make a classifier that is fitted quickly."""
    return inv.InvariantClassifier(
        candidates, shape, backbone=MODEL, hidden=16, n_networks=1, epochs=1, random_state=0
    )


def rotated_digits(n: int, seed: int = 0) -> Arrays:
    """Draw digits in any of four quarter turns, with noise."""
    data = inv.datasets.load("digits:rotated", seed=0)
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(data.x_train), size=n)
    turns = symmetry("rot90", (SIDE, SIDE)).elements.numpy()[rng.integers(4, size=n)]
    x = rng.normal(0, NOISE, (n, SIDE * SIDE)).astype(np.float32)
    x += np.take_along_axis(data.x_train[chosen], turns, 1)
    return x, data.y_train[chosen]


def fit_many(n: int) -> Counts:
    """Fit once to n examples of 8×8."""
    x, y = rotated_digits(n)
    before = resident_megabytes()
    # Sixteen units are too few for this many examples: the less constrained network would predict better.
    clf = inv.InvariantClassifier(
        ["rot90"], (SIDE, SIDE), backbone=MODEL, n_networks=1, epochs=1, random_state=0
    ).fit(x, y)
    assert clf.symmetry_.name == "rot90"
    return {
        "examples": n,
        "data megabytes": x.nbytes >> 20,
        "peak megabytes above the data": peak_megabytes() - before,
    }


def many_classes(n: int) -> Counts:
    """A hundred classes: a random picture each, in any of four quarter turns, with noise."""
    rng = np.random.default_rng(0)
    pictures, y = rng.random((100, SIDE, SIDE)), rng.integers(100, size=n)
    x = np.stack([np.rot90(pictures[c], k) for c, k in zip(y, rng.integers(4, size=n), strict=True)])
    x = (x + rng.normal(0, 0.2, x.shape)).astype(np.float32)
    before = resident_megabytes()
    clf = inv.InvariantClassifier(["rot90"], backbone=MODEL, hidden=64, random_state=0).fit(
        x[n // 10 :], y[n // 10 :]
    )
    assert clf.symmetry_.name == "rot90"
    return {
        "examples": n,
        "classes": 100,
        "percent right": round(100 * float(clf.score(x[: n // 10], y[: n // 10]))),
        "peak megabytes above the data": peak_megabytes() - before,
    }


def many_hypotheses(n: int) -> Counts:
    """Five candidates with all of their joins; digits in any of four flips, their three channels in any order."""
    data = inv.datasets.load("digits:flipped", seed=0)
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(data.x_train), size=n)
    shades = rng.permuted(np.tile([1.0, 0.5, 0.2], (n, 1)), axis=1)
    x = (shades[:, :, None] * data.x_train[chosen][:, None]).reshape(n, 3, SIDE, SIDE)
    x = (x + rng.normal(0, NOISE, x.shape)).astype(np.float32)
    before = resident_megabytes()
    clf = small_classifier(["hflip", "vflip", "transpose", "channels", "sign"], None).fit(x, data.y_train[chosen])
    flips, channels = (inv.symmetry(name, clf.input_shape_) for name in ("flips", "channels"))
    assert clf.symmetry_ == inv.join(flips, channels)
    return {
        "examples": n,
        "hypotheses": len(clf.candidates_),
        "peak megabytes above the data": peak_megabytes() - before,
    }


def predict_many(n: int) -> Counts:
    """`invariantnet predict` from an .npy to a .csv: memory does not grow with the number of rows."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        small_classifier(["rot90"], (SIDE, SIDE)).fit(*rotated_digits(300)).save(folder / "run")
        found = []
        for size in (n // 10, n):
            rows = np.lib.format.open_memmap(folder / "x.npy", "w+", np.uint8, (size, SIDE, SIDE))
            for start in range(0, size, BLOCK):
                part = rotated_digits(min(BLOCK, size - start), start)[0].clip(0, 1) * 255
                rows[start : start + BLOCK] = part.reshape(-1, SIDE, SIDE)
            found.append(separately(_predict, folder, size))
    tenth, whole = found
    per_row = round((whole - tenth) * 2**20 / (0.9 * n))
    return {"rows": n, "peak megabytes": whole, "peak with a tenth": tenth, "bytes per row": per_row}


def _predict(folder: Path, n: int) -> int:
    before = resident_megabytes()
    command(["predict", str(folder / "run"), str(folder), "--out", str(folder / "p.csv")])
    with (folder / "p.csv").open() as lines:
        assert sum(1 for _ in lines) == n + 1
    return peak_megabytes() - before


def again_and_again(n: int) -> Counts:
    """Fit, save, load and predict in a loop: memory is flat after the first rounds."""
    x, y = rotated_digits(500)
    sizes = []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(n):
            clf = small_classifier(["rot90"], (SIDE, SIDE)).fit(x, y)
            clf.save(scratch)
            assert inv.InvariantClassifier.load(scratch).symmetry_ == clf.symmetry_
            sizes.append(resident_megabytes())
    return {"rounds": n, "megabytes after a third": sizes[n // 3], "megabytes at the end": sizes[-1]}


@dataclass(frozen=True)
class Load:
    """What is done, how often, and how often at least."""

    measure: Callable[[int], Counts]
    n: int
    least: int


PARTS = {
    "fit many": Load(fit_many, 10**6, 20_000),
    "predict many": Load(predict_many, 10**7, 1000),
    "many classes": Load(many_classes, 20_000, 5000),
    "many hypotheses": Load(many_hypotheses, 2000, 1000),
    "again and again": Load(again_and_again, 150, 9),
}
"""The kinds of load."""


def recipes(seed: int) -> list[LoadRecipe]:
    """Every kind of load."""
    return [LoadRecipe(part, kind.n, seed) for part, kind in PARTS.items()]


def quick(recipe: LoadRecipe) -> LoadRecipe:
    """Make a recipe small."""
    return replace(recipe, n=max(PARTS[recipe.part].least, recipe.n // QUICK_SHARE))


def run(recipe: LoadRecipe) -> list[Record]:
    """Measure one kind of load."""
    start = time.monotonic()
    measure = PARTS[recipe.part].measure
    # A pool's process may not have children of its own, and the prediction starts one.
    found = measure(recipe.n) if measure is predict_many else separately(measure, recipe.n)
    return [Record(recipe.part, found, round(time.monotonic() - start))]


def separately(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def table(records: Sequence[Record]) -> str:
    """One row per kind of load."""
    rows = []
    for r in records:
        numbers = {**r.measured, "seconds": r.seconds}
        rows.append([r.part, ", ".join(f"{name} {value:,}" for name, value in numbers.items())])
    return markdown(["what", "measured"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    (predict,), (rounds,) = (select(records, part=part) for part in ("predict many", "again and again"))
    return {
        "constant": Claim(
            "Predictions are written as they come, so memory does not depend on the number of rows.",
            predict.measured["bytes per row"] <= 1,
        ),
        "flat": Claim(
            "Repeated fits do not add up.",
            rounds.measured["megabytes at the end"] <= 1.05 * rounds.measured["megabytes after a third"],
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"load": Part(recipes)},
    run=run,
    quick=quick,
    table=table,
    claims=claims,
    alone=True,
    depends_on=("invariantnet", "studies.cost.timing", "studies.datasets"),
)
