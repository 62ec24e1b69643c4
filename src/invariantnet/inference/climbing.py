"""Joins of a favourite: what `auto` compares after its first race, and what it leaves out."""

from collections.abc import Sequence

import numpy as np

from invariantnet.inference.hypotheses import MAX_HYPOTHESES, Asked, rank
from invariantnet.inference.models import native_part
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import groups_suited_to
from invariantnet.symmetries.named import join, ladders_for
from invariantnet.symmetries.ranges import AnySymmetry, Range

MOST_JOINED = 4096
"""Numbers in all copies of an input up to which `auto` joins its favourite with others: 16×16 pixels with
all symmetries of the square and shifts. Beyond, a join takes seconds to find and minutes to compare."""
REFUTED = 10.0
"""Nats by which a part of a group must predict better than the group: then no join with it is tried."""


def with_joins_of(
    favourite: Group, groups: Sequence[Group], log_evidence: Sequence[float], limit: int = MAX_HYPOTHESES
) -> list[Group]:
    """Join a favourite with every other candidate that may be true: one step upwards in the lattice of groups.

    A candidate is refuted if one of its own subgroups predicts clearly better. Then no join with it can be true.

    Args:
        favourite: The group to go up from.
        groups: All groups that were compared.
        log_evidence: Log evidence of each.
        limit: Largest number of groups, joins included.

    Returns:
        The groups and the joins that are not among them, sorted by size; without joins that need too many copies.

    Example:
        >>> from invariantnet import symmetry
        >>> groups = [symmetry(n, shape=(4, 4)) for n in ("trivial", "hflip", "vflip", "shifts")]
        >>> [g.name for g in with_joins_of(groups[3], groups, [-100.0, -99.0, -200.0, -50.0])]
        ['trivial', 'hflip', 'vflip', 'shifts', 'shifts+hflip']
    """
    found = list(groups)
    if favourite.dim > MOST_JOINED or favourite.order == 1:
        return found
    for group in _may_hold_beside(favourite, groups, log_evidence):
        if len(found) < limit:
            smaller, larger = sorted((favourite, group), key=rank)
            joined = join(larger, smaller)
            if isinstance(joined, Group) and all(joined != g for g in found) and _copied(joined) <= MOST_JOINED:
                found.append(joined)
    return sorted(found, key=rank)


def _copied(group: Group) -> int:
    """Count the numbers in all copies of an input that the network of a group makes."""
    part = native_part(group, group.shape or (group.dim,))
    return group.dim * group.copies // (1 if part is None else part.order)


def left_out(
    asked: Asked, compared: Sequence[AnySymmetry], shape: tuple[int, ...], log_evidence: Sequence[float] = ()
) -> tuple[str, ...]:
    """Name what `"auto"` does not compare.

    Args:
        asked: What the user asked for.
        compared: What was compared.
        shape: Shape of one input.
        log_evidence: Log evidence of each of these; none if joins were not wanted.

    Returns:
        Joins of the favourite that would cost too much, groups that no example can refute, and ranges.
    """
    if not isinstance(asked, str) or asked != "auto":
        return ()
    ranges = {e.family.name for s in compared if isinstance(s, Range) for e in s.extents}
    groups = [g.name for g in groups_suited_to(shape) if all(g != s for s in compared)]
    joins = _joins_left_out([s for s in compared if isinstance(s, Group)], log_evidence)
    return (*joins, *groups, *(name for name in ladders_for(shape) if name not in ranges))


def _joins_left_out(groups: Sequence[Group], log_evidence: Sequence[float]) -> list[str]:
    """Name the joins of the favourite with what may hold beside it, if nothing that was compared has both."""
    if len(groups) != len(log_evidence):
        return []
    favourite = groups[int(np.argmax(log_evidence))]
    beside = _may_hold_beside(favourite, groups, log_evidence) if favourite.order > 1 else []
    return [f"{favourite.name}+{g.name}" for g in beside if not any(favourite <= h and g <= h for h in groups)]


def _may_hold_beside(favourite: Group, groups: Sequence[Group], log_evidence: Sequence[float]) -> list[Group]:
    """Groups that the favourite does not contain, and that no part of their own refutes."""
    by_name = {g.name: evidence for g, evidence in zip(groups, log_evidence, strict=True)}
    found = []
    for group in sorted(groups, key=rank):
        parts = [g for g in groups if g.order < group.order and g <= group]
        refuted = any(by_name[part.name] - by_name[group.name] > REFUTED for part in parts)
        if not refuted and not group <= favourite:
            found.append(group)
    return found
