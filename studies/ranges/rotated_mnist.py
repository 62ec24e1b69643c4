"""How well are 12,000 digits read that are turned by any angle, if the symmetry is not told?

A remake of the rotated MNIST benchmark: as many training images of MNIST, turned by us, and 10,000 of its test
images. Numbers from the literature are of other images and other turns. Beside it, on the same images, a network
of e2cnn that is told the turns by 45°, in an environment of its own (`studies/others/e2cnn_turns.py` says how to
make it):

    E2CNN_PYTHON=E2CNN/bin/python python -m studies run rotated_mnist
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from invariantnet.data import Dataset, load
from invariantnet.estimator import InvariantClassifier
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.framework.records import select
from studies.others.e2cnn_turns import lacks_e2cnn, train_elsewhere
from studies.ranges.tasks import SHAPE

Method = Literal["ours", "e2cnn, C8 given"]
EXAMPLES, SEEDS = 12_000, 2
"""Digits to learn from, as in the benchmark, and draws of them."""
DATA = "mnist:rotation:180"
"""Digits turned by any angle."""
TURNS = 8
"""Turns that e2cnn is told."""
MOST_ERROR, MOST_MINUTES = 2.5, 20.0
"""Percent of wrong answers, and CPU minutes of the whole fit, that were asked for."""


@dataclass(frozen=True)
class RotatedRecipe:
    """One draw."""

    seed: int
    method: Method = "ours"
    n: int = EXAMPLES
    backbone: str = "cnn"
    tested: int = 10_000


@dataclass(frozen=True)
class Record:
    """Error, cost and verdict."""

    method: str
    n: int
    seed: int
    error: float
    """Percent."""
    minutes: float
    """CPU minutes of the comparison and the final network."""
    favourite: str = "given"
    interval: tuple[float, float] | None = None
    """95 % interval of the range, in degrees."""


def run(recipe: RotatedRecipe) -> list[Record]:
    """Train and test."""
    data = load(DATA, seed=recipe.seed)
    keep = np.random.default_rng(recipe.seed).permutation(len(data.x_train))[: recipe.n]
    examples = data.x_train[keep], data.y_train[keep]
    if recipe.method == "ours":
        return [_ours(recipe, data, examples)]
    tests = data.x_test[: recipe.tested], data.y_test[: recipe.tested]
    told = train_elsewhere(examples, tests, TURNS, recipe.seed)
    error, minutes = round(100 - told.accuracy, 2), round(told.seconds / 60, 1)
    return [Record(recipe.method, recipe.n, recipe.seed, error, minutes)]


def _ours(recipe: RotatedRecipe, data: Dataset, examples: tuple[np.ndarray, np.ndarray]) -> Record:
    """Fit with the ladder of rotations, and test."""
    before = time.process_time()
    clf = InvariantClassifier(["rotation"], SHAPE, backbone=recipe.backbone, random_state=recipe.seed)
    clf.fit(*examples)
    minutes = round((time.process_time() - before) / 60, 1)
    right = clf.score(data.x_test[: recipe.tested], data.y_test[: recipe.tested])
    reach = clf.posterior_.ranges["rotation"].interval
    error = round(100 * (1 - float(right)), 2)
    return Record(recipe.method, recipe.n, recipe.seed, error, minutes, clf.symmetry_.name, reach)


def table(records: Sequence[Record]) -> str:
    """One row per method and draw."""
    rows = [
        [
            r.method,
            str(r.seed),
            f"{r.n:,}",
            f"{r.error:.2f} %",
            f"{r.minutes:.1f}",
            r.favourite,
            f"{r.interval[0]:.0f}° to {r.interval[1]:.0f}°" if r.interval else "–",
        ]
        for r in records
    ]
    return markdown(["method", "seed", "n", "error", "CPU minutes", "symmetry", "95 % interval"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says; where a target is missed, it says so."""
    ours, told = (select(records, method=method) for method in ("ours", "e2cnn, C8 given"))
    error, minutes = _means(ours)
    beside = "e2cnn was not run"
    if told:
        other, other_minutes = _means(told)
        beside = f"e2cnn, with C8 given, has {other:.2f} % after {other_minutes:.1f}"
    return {
        "error": Claim(
            f"The mean error is {error:.2f} % after {minutes:.1f} CPU minutes; at most {MOST_ERROR} % in at most "
            f"{MOST_MINUTES:.0f} minutes was asked for; {beside}."
        )
    }


def _means(records: Sequence[Record]) -> tuple[float, float]:
    return float(np.mean([r.error for r in records])), float(np.mean([r.minutes for r in records]))


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={
        "not told": Part(lambda seed: [RotatedRecipe(seed)], SEEDS),
        "told": Part(lambda seed: [RotatedRecipe(seed, "e2cnn, C8 given")], SEEDS, lacks_e2cnn),
    },
    run=run,
    quick=lambda recipe: replace(recipe, n=100, backbone="plain mlp", tested=200),
    table=table,
    claims=claims,
    depends_on=(*FITS, "studies.ranges.tasks", "studies.others.e2cnn_turns"),
    alone=True,
)
