"""How far does a range reach, and what does it gain? Digits moved within known ranges.

Every task compares the ladder of one family with no symmetry. Accuracies are those of the final network, of the
same network without symmetry, and of an Augerino with the same backbone, on 2,000 test images moved likewise.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from invariantnet.estimator import InvariantClassifier
from invariantnet.inference.models import models_for
from invariantnet.likelihoods import Categorical
from invariantnet.nn.standardize import InputStatistics
from invariantnet.report.baseline import fit_baseline
from invariantnet.training.config import Training
from invariantnet.training.loop import log_probabilities
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.ranges.augerino import Augerino, fit_augerino
from studies.ranges.tasks import SHAPE, TASKS, Split, split

SIZES = (312, 1250, 5000)
"""Examples to learn from."""
SEEDS = 10
"""Draws of every task and size."""
BACKBONE = "plain cnn"
"""The one model of every network here, so that only symmetries and methods differ."""
FAVOURED, MOST_PLAIN = 0.9, {"rotation": 45.0, "translation": 4.0, "scaling": float("inf")}
"""On plain images, no larger range may have this probability."""
COVERED = 0.9
"""Share of intervals that should hold the truth: they state 95 %."""


@dataclass(frozen=True)
class ReachRecipe:
    """One task."""

    task: str
    n: int
    seed: int
    backbone: str = BACKBONE


@dataclass(frozen=True)
class Record:
    """The posterior over one range, and accuracies."""

    task: str
    n: int
    seed: int
    values: tuple[float, ...]
    probabilities: tuple[float, ...]
    median: float
    interval: tuple[float, float]
    accuracy: float
    plain_accuracy: float
    """Of the same network without symmetry."""
    augerino_accuracy: float
    augerino_widths: tuple[float, ...]
    """Two translations in half sides, rotation in radians, scaling and two stretches in logarithms."""
    seconds: float
    """CPU seconds of the fit."""
    augerino_seconds: float
    deviation: float
    """Largest change of a probability inside the range, for a typical test image; 0 without a range."""

    @property
    def covers(self) -> bool:
        """Whether the interval holds the truth."""
        low, high = self.interval
        return low <= TASKS[self.task].truth <= high

    @property
    def too_wide(self) -> bool:
        """Whether ranges beyond the limit for plain images are favoured."""
        task = TASKS[self.task]
        beyond = [p for v, p in zip(self.values, self.probabilities, strict=True) if v > MOST_PLAIN[task.family]]
        return task.is_plain and sum(beyond) >= FAVOURED


def run(recipe: ReachRecipe) -> list[Record]:
    """Fit all three networks."""
    task = TASKS[recipe.task]
    data = split(task.data, recipe.n, recipe.seed)
    before = time.process_time()
    clf = InvariantClassifier(
        [task.family], SHAPE, backbone=recipe.backbone, random_state=recipe.seed, joins=False
    )
    clf.fit(data.x, data.y)
    seconds = time.process_time() - before
    plain = fit_baseline(clf, data.x, data.y)
    before = time.process_time()
    other = augerino_of(recipe, data, clf.trainings.final)
    other_seconds = time.process_time() - before
    found = clf.posterior_.ranges[task.family]
    return [
        Record(
            recipe.task,
            recipe.n,
            recipe.seed,
            found.values,
            tuple(round(p, 4) for p in found.probabilities),
            found.median,
            found.interval,
            accuracy(clf.network_, data),
            accuracy(plain, data),
            accuracy(other, data),
            tuple(round(w, 3) for w in other.widths.tolist()),
            round(seconds, 1),
            round(other_seconds, 1),
            0.0 if clf.deviation_ is None else round(clf.deviation_.mean, 3),
        )
    ]


def augerino_of(recipe: ReachRecipe, data: Split, config: Training) -> Augerino:
    """Train an Augerino with the same backbone, as long as our final network."""
    (model,) = models_for(recipe.backbone, SHAPE)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    inputs = InputStatistics.of(x, [], SHAPE)
    make = model.make
    assert make is not None
    classes = int(data.y.max()) + 1
    return fit_augerino(lambda: make(SHAPE, classes), inputs.pooled(), x, y, config, recipe.seed)


def accuracy(network: torch.nn.Module, data: Split) -> float:
    """Share of right answers on the test images, in percent."""
    torch.manual_seed(0)  # an Augerino draws its copies
    outputs = log_probabilities(network, torch.from_numpy(data.x_test))
    return round(100 * Categorical().score(outputs, torch.from_numpy(data.y_test)), 2)


def table(records: Sequence[Record]) -> str:
    """Means of every task and size."""
    header = [
        "task", "n", "median reach", "truth in interval", "ours", "without symmetry", "Augerino", "CPU s",
        "Augerino, CPU s",
    ]  # fmt: skip
    rows = []
    for task, n in dict.fromkeys(
        (r.task, r.n) for r in sorted(records, key=lambda r: (list(TASKS).index(r.task), r.n))
    ):
        found = [r for r in records if (r.task, r.n) == (task, n)]
        numbers = np.mean(
            [[r.accuracy, r.plain_accuracy, r.augerino_accuracy, r.seconds, r.augerino_seconds] for r in found],
            axis=0,
        )
        reach = f"{np.median([r.median for r in found]):.3g}"
        rows.append(
            [task, f"{n:,}", reach, f"{sum(r.covers for r in found)} of {len(found)}"]
            + [f"{value:.1f} %" for value in numbers[:3]]
            + [f"{value:.0f}" for value in numbers[3:]]
        )
    return markdown(header, rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says; where a target is missed, it says so."""
    moved, plain = ([r for r in records if TASKS[r.task].is_plain == p] for p in (False, True))
    cells = list(dict.fromkeys((r.task, r.n) for r in records))
    means = {
        cell: np.mean(
            [[r.accuracy, r.plain_accuracy, r.augerino_accuracy] for r in records if (r.task, r.n) == cell], 0
        )
        for cell in cells
    }
    above = [sum(m[0] > m[k] for m in means.values()) for k in (1, 2)]
    cheap = sum(r.seconds <= 3 * r.augerino_seconds for r in records)
    return {
        "intervals": Claim(
            f"The 95 % interval holds the truth in {sum(r.covers for r in moved)} of {len(moved)} runs on moved "
            f"images; at least {COVERED:.0%} was asked for."
        ),
        "plain": Claim(
            f"On plain images, ranges beyond ±45° or 4 pixels have at least {FAVOURED:.0%} in "
            f"{sum(r.too_wide for r in plain)} of {len(plain)} runs; none was asked for."
        ),
        "accuracy": Claim(
            f"The mean accuracy is above that of the same network without symmetry in {above[0]}, and above that "
            f"of Augerino in {above[1]} of {len(cells)} tasks and sizes; all were asked for."
        ),
        "cost": Claim(
            f"The whole fit, verdict included, took at most three times the CPU time of one Augerino in {cheap} "
            f"of {len(records)} runs; all were asked for."
        ),
    }


def recipes(seed: int) -> list[ReachRecipe]:
    """Every task and size, small ones first."""
    return [ReachRecipe(task, n, seed) for n in SIZES for task in TASKS]


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"tasks": Part(recipes, SEEDS)},
    run=run,
    quick=lambda recipe: replace(recipe, n=100, backbone="plain mlp"),
    table=table,
    claims=claims,
    depends_on=(*FITS, "report.baseline", "studies.ranges.tasks", "studies.ranges.augerino"),
)
