"""Ranges beside a favourite: what `auto` asks after its verdict on groups, where inputs seem to vary so."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from invariantnet.inference.findings import Price, Stage
from invariantnet.inference.lattice import at_least
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.range_posterior import RangePosterior, with_probability
from invariantnet.symmetries.families import FAMILIES, MOST_BESIDE
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.named import ladder
from invariantnet.symmetries.ranges import AnySymmetry, Extent, Range
from invariantnet.symmetries.shapes import Shape, has_features

T = TypeVar("T")

SMALLEST = 12
"""Pixels of the shorter side from which on `auto` asks about ranges: a turn of a smaller image mostly blurs it."""
TURN, SHIFT = 20.0, 1 / 14
"""Degrees, and share of the shorter side, by which inputs are moved to see whether they vary so already: plain
digits lose much by a turn of 20° or a shift of 2 of 28 pixels, digits that are turned by up to 45° little."""
MOST_STRAIN = 0.15
"""Share by which the loss may grow on inputs moved so before a range is not asked about. On 1,000 digits, turns of
20° raised it by 0.5 where they were upright, by 0.33 or more in four or eight poses, by 0.09 and 0.2 turned by up
to 45°, and not at all by up to 180°; shifts by 0.08 where they were shifted by 8 pixels (seeds 1000, 1001)."""


def probes_for(shape: Shape) -> list[Range]:
    """Make the small ranges by which networks are tried, to see which families are worth a comparison.

    Args:
        shape: Shape of one input.

    Returns:
        One range for each family that `auto` may ask about; none for inputs that are no images, or small ones.
    """
    if len(shape) < 2 or has_features(shape) or min(shape[-2:]) < SMALLEST:
        return []
    values = {"rotation": TURN, "translation": SHIFT * min(shape[-2:])}
    return [Range((Extent(FAMILIES[name], value),), shape) for name, value in values.items()]


def rungs_beside(
    favourite: Group, groups: Sequence[Group], strain: Mapping[str, float], shape: Shape
) -> list[Range]:
    """List the ranges that are worth a comparison with a favourite: ladders joined with a part of it.

    The part is the largest without elements that the ladder has itself: mirror images, where the favourite has
    mirror images and quarter turns.

    Args:
        favourite: The most probable group.
        groups: All groups that were compared.
        strain: Share by which each probe raises the loss.
        shape: Shape of one input.

    Returns:
        The rungs of all ladders; none where networks are sensitive to small moves, or the group is large.
    """
    asked = [p.extents[0].family.name for p in probes_for(shape) if strain.get(p.name, np.inf) <= MOST_STRAIN]
    if favourite.order > MOST_BESIDE:
        return []
    return [rung for family in asked for rung in _joined_ladder(family, favourite, groups, shape)]


def _joined_ladder(family: str, favourite: Group, groups: Sequence[Group], shape: Shape) -> list[Range]:
    alone = ladder(family, shape)
    inside = [g for g in groups if g.order > 1 and g <= alone[-1]]
    apart = [g for g in groups if g <= favourite and not any(h <= g for h in inside)]
    part = max(apart, key=lambda g: g.order)
    return alone if part.order == 1 else ladder(f"{part.name}+{family}", shape)


def with_ranges(
    first: SymmetryPosterior, second: SymmetryPosterior, favourite: str, symmetries: Sequence[AnySymmetry]
) -> SymmetryPosterior:
    r"""Add ranges to a verdict on groups.

    The probability of the favourite is shared with the ranges as the second comparison says, which had both; that
    of every other group stays. So Bayes factors are chained: $p(r) / p(g) = p_2(r) / p_2(g)$.

    Args:
        first: The verdict on groups.
        second: The verdict on the favourite and ranges, and no symmetry.
        favourite: Name of the favourite.
        symmetries: All groups of the first comparison, then the ranges.

    Returns:
        The verdict on all.
    """
    added = [s.name for s in symmetries[len(first.names) :]]
    ours = [second.names.index(name) for name in added]
    at, there = first.names.index(favourite), second.names.index(favourite)
    shares = np.array(second.probabilities)[[there, *ours]]
    shares = shares / max(float(shares.sum()), np.finfo(float).tiny) * first.probabilities[at]
    groups = [float(shares[0]) if k == at else p for k, p in enumerate(first.probabilities)]
    lift = first.log_evidence[at] - second.log_evidence[there]
    probabilities = (*groups, *shares[1:].tolist())

    def of_both(early: tuple[T, ...], late: tuple[T, ...]) -> tuple[T, ...]:
        return (*early, *(late[k] for k in ours))

    return replace(
        first,
        names=(*first.names, *added),
        orders=of_both(first.orders, second.orders),
        probabilities=probabilities,
        at_least=tuple(at_least(symmetries, probabilities).tolist()),
        log_evidence=(*first.log_evidence, *(second.log_evidence[k] + lift for k in ours)),
        log_evidence_spread=of_both(first.log_evidence_spread, second.log_evidence_spread),
        best_models=of_both(first.best_models, second.best_models),
        dropped=(*first.dropped, *(name for name in second.dropped if name in added)),
        prices=_prices(first, second, favourite, added),
        race=tuple(_stage(stage, second, favourite, added) for stage in first.race),
        by_class=(*first.by_class, *(gain for gain in second.by_class if gain.symmetry in added)),
        refuted_by=first.refuted_by | {n: c for n, c in second.refuted_by.items() if n in added},
        ranges=_ranges(second, dict(zip(added, shares[1:].tolist(), strict=True)), lift),
        pointwise=_pointwise(first, second, ours, at, there),
        counts=None if first.counts is None else first.counts[: _shared(first, second)],
    )


def _prices(
    first: SymmetryPosterior, second: SymmetryPosterior, favourite: str, added: Sequence[str]
) -> tuple[Price, ...]:
    """Prices of all: those of groups rise by what the favourite loses to the best range."""
    late = {price.name: price for price in second.prices}
    early = next(price for price in first.prices if price.name == favourite)
    rise = max(0.0, late[favourite].nats_per_example - early.nats_per_example)
    groups = (replace(price, nats_per_example=price.nats_per_example + rise) for price in first.prices)
    return (*groups, *(late[name] for name in added))


def _stage(stage: Stage, second: SymmetryPosterior, favourite: str, added: Sequence[str]) -> Stage:
    """Where the race stood after a block, ranges included, as far as both were alive."""
    late = next((s.log_evidence for s in second.race if s.examples == stage.examples), {})
    if favourite not in late or favourite not in stage.log_evidence:
        return stage
    lift = stage.log_evidence[favourite] - late[favourite]
    ranges = {name: late[name] + lift for name in added if name in late}
    return replace(stage, log_evidence=stage.log_evidence | ranges)


def _ranges(second: SymmetryPosterior, some: Mapping[str, float], lift: float) -> dict[str, RangePosterior]:
    """The posterior of each family, with its probability beside all groups."""
    found = {}
    for name, posterior in second.ranges.items():
        ours = sum(p for rung, p in some.items() if f"{name}:" in rung)
        found[name] = with_probability(posterior, ours, lift)
    return found


def _shared(first: SymmetryPosterior, second: SymmetryPosterior) -> int:
    """Labels that every hypothesis of both comparisons predicted."""
    assert first.pointwise is not None
    assert second.pointwise is not None
    return min(first.pointwise.shape[1], second.pointwise.shape[1])


def _pointwise(
    first: SymmetryPosterior, second: SymmetryPosterior, ours: Sequence[int], at: int, there: int
) -> np.ndarray | None:
    """Log probability of every label: that of ranges is the favourite's, plus what they gain on it."""
    if first.pointwise is None or second.pointwise is None:
        return None
    shared = _shared(first, second)
    early, late = first.pointwise[:, :shared], second.pointwise[:, :shared]
    return np.concatenate([early, early[at] + late[[*ours]] - late[there]])
