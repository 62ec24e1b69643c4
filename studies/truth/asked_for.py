"""What was asked of the verdicts on teachers before they were measured. No record depends on this file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from invariantnet.inference.comparison import NOTHING_LEARNED
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.group import Group
from studies.framework.records import select
from studies.truth.problems import SURE, favourite, is_right, is_sure, share

POWER_SIZE, DECIDED_FROM = 1000, 300
"""Examples at which the truth should be named; and from which on most verdicts should be sure."""
EDGES = (0.0, 0.5, 0.7, 0.9, 0.99, 1.0001)
"""Bounds of the bins of stated probabilities; the last holds a probability of 1."""


@dataclass(frozen=True)
class Record:
    """The verdict on one data set."""

    shape: tuple[int, ...]
    n: int
    kind: str
    seed: int
    truth: str
    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    strength: str
    contrast: float
    """Smallest share of the variance that a false hypothesis cannot explain."""
    seconds: float
    """CPU seconds of the comparison."""

    @property
    def claims_falsely(self) -> bool:
        """A symmetry is claimed where there is none."""
        return self.truth == TRIVIAL and is_sure(self) and favourite(self) != TRIVIAL

    @property
    def named(self) -> bool:
        """The truth is named, and surely so."""
        return is_sure(self) and is_right(self)


def with_verdict(records: Sequence[Record]) -> list[Record]:
    """Leave out data sets from which nothing was learned: there the program states no verdict."""
    return [r for r in records if r.strength != NOTHING_LEARNED]


def parts_stated(record: Record, groups: Sequence[Group]) -> list[bool]:
    """Whether each symmetry is true that an open verdict is sure of, alone or within larger ones.

    Args:
        record: The verdict.
        groups: The symmetries that were compared.

    Returns:
        One truth value per symmetry that has at least `SURE`; none of a verdict that is sure as a whole.
    """
    if is_sure(record) or record.strength == NOTHING_LEARNED:
        return []
    p = dict(zip(record.names, record.probabilities, strict=True))
    truth = next(g for g in groups if g.name == record.truth)
    parts = [g for g in groups if g.name != TRIVIAL and sum(p[h.name] for h in groups if g <= h) >= SURE]
    return [g <= truth for g in parts]


def calibration_error(records: Sequence[Record]) -> float:
    """Mean distance between the stated probability of the favourite and the share that is right, by bins."""
    records = with_verdict(records)
    stated, right = np.array([max(r.probabilities) for r in records]), np.array([is_right(r) for r in records])
    total = 0.0
    for low, high in pairwise(EDGES):
        inside = (stated >= low) & (stated < high)
        if inside.any():
            total += inside.mean() * abs(stated[inside].mean() - right[inside].mean())
    return float(total)


def worst_cell(records: Sequence[Record]) -> float:
    """Largest share of false claims among the data sets without symmetry of one cell."""
    without = select(records, truth=TRIVIAL)
    cells = {(r.shape, r.n, r.kind) for r in without}
    found = [select(without, shape=shape, n=n, kind=kind) for shape, n, kind in cells]
    return max((share([r.claims_falsely for r in cell]) for cell in found), default=0.0)


@dataclass(frozen=True)
class Target:
    """A figure, and what it should be.

    Args:
        name: What is measured.
        bound: The value to reach.
        at_most: The bound is an upper one.
        measure: Computes the figure.
    """

    name: str
    bound: float
    at_most: bool
    measure: Callable[[Sequence[Record]], float]

    def met(self, records: Sequence[Record]) -> bool:
        """Whether the records reach the bound."""
        found = self.measure(records)
        return found <= self.bound if self.at_most else found >= self.bound


TARGETS = {
    "false": Target("a symmetry claimed where there is none, in the worst cell", 0.05, True, worst_cell),
    "power": Target(
        "truth named with at least 90 %, of those with 1,000 examples",
        0.9,
        False,
        lambda records: share([r.named for r in records if r.n == POWER_SIZE]),
    ),
    "wrong": Target(
        "another named with at least 90 %",
        0.03,
        True,
        lambda records: share([is_sure(r) and not is_right(r) for r in records]),
    ),
    "calibration": Target("stated against observed probability", 0.05, True, calibration_error),
    "decided": Target(
        "verdicts with at least 90 %, of those with at least 300 examples",
        0.75,
        False,
        lambda records: share([is_sure(r) for r in records if r.n >= DECIDED_FROM]),
    ),
}
"""What was asked of the comparison before it was measured."""
