"""How far a range reaches: the posterior over the rungs of one ladder, its median, its interval, and words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from invariantnet.symmetries.families import Family
from invariantnet.symmetries.ranges import AnySymmetry, Range

CREDIBLE = 0.95
"""Probability of the interval, as is usual."""


@dataclass(frozen=True)
class RangePosterior:
    """How far the transformations of one family reach, with probabilities."""

    family: str
    unit: str
    factor: bool
    """Whether values multiply, so that 1 rather than 0 stands for no range."""
    values: tuple[float, ...]
    """Values that were compared, ascending; the first stands for no range."""
    probabilities: tuple[float, ...]
    """Probability of each value, whatever it is joined with."""
    log_evidence: tuple[float, ...]
    """Log evidence of the best symmetry with each value; an upper bound for symmetries that were dropped."""
    median: float
    interval: tuple[float, float]
    """Values that hold 95 % of the probability; its ends are values that were compared."""

    @property
    def words(self) -> str:
        """How far it reaches, such as "up to about 40°, between 30° and 60°"."""
        low, high = (self.with_unit(value) for value in self.interval)
        if self.median == self.values[0]:
            return f"up to {high} at most"
        about = self.with_unit(self.median)
        if self.interval[0] > self.values[0] and low != high:
            return f"up to about {about}, between {low} and {high}"
        return f"up to about {about}" + (f", at most {high}" if high != about else "")

    @property
    def costs_beyond(self) -> bool:
        """Whether larger values were compared and are improbable."""
        return self.interval[1] < self.values[-1]

    def with_unit(self, value: float, digits: int = 2) -> str:
        """A value with its unit, in two digits, because no more are known; rungs of a ladder have three."""
        number = f"{float(f'{value:.{digits}g}'):g}"
        if self.factor:
            return f"×{number}"
        return f"{number}{self.unit}" if self.unit in ("", "°") else f"{number} {self.unit}"


Spread = Callable[[Sequence[int]], Sequence[float]]
"""Probabilities of some of the symmetries, given that one of them is right."""


def range_posteriors(
    symmetries: Sequence[AnySymmetry],
    probabilities: Sequence[float],
    log_evidence: Sequence[float],
    among: Spread | None = None,
) -> dict[str, RangePosterior]:
    """Sum up what the comparison says about each family of ranges.

    Args:
        symmetries: What was compared.
        probabilities: Probability of each.
        log_evidence: Log evidence of each.
        among: How the probability of some range is spread over rungs; by default as the probabilities are.

    Returns:
        The posterior over the values of each family that was compared, by its name.
    """
    families = {e.family.name: e.family for s in symmetries if isinstance(s, Range) for e in s.extents}
    found = {}
    for name, family in families.items():
        reaching = [k for k, s in enumerate(symmetries) if value_of(s, family) > family.none]
        spread = list(probabilities)
        if among is not None:
            some = sum(probabilities[k] for k in reaching)
            for k, share in zip(reaching, among(reaching), strict=True):
                spread[k] = some * share
        found[name] = _posterior(family, symmetries, spread, log_evidence)
    return found


def with_probability(found: RangePosterior, some: float, lift: float) -> RangePosterior:
    """Change how probable it is that there is some range, and leave the rungs as probable among each other.

    Args:
        found: What is known about a family.
        some: Probability of all rungs together.
        lift: What is added to every log evidence.

    Returns:
        The posterior with this probability.
    """
    rungs = sum(found.probabilities[1:]) or 1.0
    probabilities = (1 - some, *(some * p / rungs for p in found.probabilities[1:]))
    median, interval = _summary(found.values, probabilities, found.factor)
    evidence = tuple(value + lift for value in found.log_evidence)
    return replace(found, probabilities=probabilities, log_evidence=evidence, median=median, interval=interval)


def value_of(symmetry: AnySymmetry, family: Family) -> float:
    """How far a symmetry reaches in one family."""
    extents = symmetry.extents if isinstance(symmetry, Range) else ()
    return next((e.value for e in extents if e.family.name == family.name), family.none)


def quantile(
    values: Float[np.ndarray, " rungs"], probabilities: Float[np.ndarray, " rungs"], share: float
) -> float:
    r"""Interpolate the cumulative probability between rungs.

    At a rung, half of its own probability counts: $F(v_k) = \sum_{j<k} p_j + p_k / 2$. So a rung that has all the
    probability stands for values up to its neighbours, and the first and the last rung keep half of theirs as
    atoms: no range at all, and everything.

    Args:
        values: Rungs, ascending.
        probabilities: Probability of each.
        share: From 0 to 1.

    Returns:
        The value at which the cumulative probability reaches the share.

    Example:
        >>> quantile(np.array([0.0, 30.0, 60.0]), np.array([0.0, 1.0, 0.0]), 0.75)
        45.0
    """
    return float(np.interp(share, np.cumsum(probabilities) - probabilities / 2, values))


def _posterior(
    family: Family,
    symmetries: Sequence[AnySymmetry],
    probabilities: Sequence[float],
    log_evidence: Sequence[float],
) -> RangePosterior:
    reach = [value_of(s, family) for s in symmetries]
    values = sorted({family.none, *reach})
    summed = [sum(p for p, v in zip(probabilities, reach, strict=True) if v == value) for value in values]
    best = [max((e for e, v in zip(log_evidence, reach, strict=True) if v == value)) for value in values]
    median, interval = _summary(values, summed, family.factor)
    return RangePosterior(
        family.name, family.unit, family.factor, tuple(values), tuple(summed), tuple(best), median, interval
    )


def _summary(
    values: Sequence[float], probabilities: Sequence[float], factor: bool
) -> tuple[float, tuple[float, float]]:
    """Median, and the rungs between which the credible interval lies.

    Nothing between two rungs was compared, so the ends of the interval are rounded outwards to rungs. Else a range
    that reaches exactly to a rung would be left out by a hair wherever the rung below it predicts as well.
    """
    scale, p = np.log(values) if factor else np.array(values), np.array(probabilities)
    low, middle, high = (quantile(scale, p, share) for share in ((1 - CREDIBLE) / 2, 0.5, (1 + CREDIBLE) / 2))
    median = round(float(np.exp(middle) if factor else middle), 6)
    ends = int(np.searchsorted(scale, low, side="right")) - 1, int(np.searchsorted(scale, high))
    return median, (values[ends[0]], values[ends[1]])
