"""Which symmetries are compared, and with how large networks, so that none has an advantage."""

import math
from collections.abc import Sequence

import numpy as np

from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import join, symmetries_for
from invariantnet.symmetries.lookup import symmetry as named_symmetry

MOST_COPIES = 8
"""Units per feature, tied or not: as many as the largest group of images without translations has elements."""
MAX_HYPOTHESES = 32
"""Symmetries that are compared, joins included: more would take hours and dilute the prior."""
MOST_INPUTS_WITH_JOINS, MOST_INPUTS_WITH_HUGE_JOINS = 1024, 64
"""Numbers per input up to which `auto` looks for joins; and up to which it does so on several axes with groups too
large to list. Beyond, the search takes minutes, and on images it ends with more joins than are compared."""


def candidates(groups: str | Group | Sequence[str | Group], shape: tuple[int, ...], *, joins: bool) -> list[Group]:
    """Find the symmetries to compare.

    Args:
        groups: What the user asked for: names, groups, or `"auto"`.
        shape: Shape of one input.
        joins: Whether joins of candidates are candidates too.

    Returns:
        The symmetries, no symmetry first.

    Raises:
        ValueError: If a name is unknown, or a group acts on inputs of another size.
    """
    if isinstance(groups, str) and groups == "auto":
        return _every_candidate(shape, joins=joins)
    dim = math.prod(shape)
    names = [groups] if isinstance(groups, str | Group) else groups
    found = [g if isinstance(g, Group) else named_symmetry(g, shape) for g in names]
    for group in found:
        if group.dim != dim:
            raise ValueError(
                f"{group.name} acts on {group.dim} numbers, an input has {dim}: make the group for this shape."
            )
    return hypotheses(found, closed=joins)


def _every_candidate(shape: tuple[int, ...], *, joins: bool) -> list[Group]:
    """Every group of the catalogue that acts on the shape, with joins where these are few and quickly found."""
    every, dim = symmetries_for(shape), math.prod(shape)
    one_axis, listed = sum(n > 1 for n in shape) == 1, all(g.can_list_elements for g in every)
    quick = dim <= MOST_INPUTS_WITH_HUGE_JOINS or (dim <= MOST_INPUTS_WITH_JOINS and (one_axis or listed))
    try:
        return hypotheses(every, closed=joins and quick)
    except ValueError:  # too many joins
        return hypotheses(every, closed=False)


def compared_units(group: Group, rivals: Sequence[Group]) -> int:
    """Count the units that each feature of a compared network is the mean of, before it is averaged over copies.

    A feature averaged over a group is a mean of tied units, one per element. More units alone would make a larger
    group win where there is no symmetry at all. So a smaller group gets more untied units: all networks have the
    same number, and each hypothesis is nothing but a constraint on the same plain network. If the orders do not
    divide one another, the total is the number that comes closest; a larger group has one unit per element.

    Args:
        group: The symmetry of the network.
        rivals: All symmetries that are compared.

    Returns:
        Untied units per feature.
    """
    orders = {g.order for g in rivals}
    fewest = min(MOST_COPIES, max(orders))

    def unevenness(total: int) -> float:
        return max(abs(math.log(round(total / n) * n / total)) for n in orders if n <= total)

    total = min(range(fewest, 2 * fewest + 1), key=unevenness)
    return max(1, round(total / group.order))


def hypotheses(groups: Sequence[Group], *, closed: bool = True, limit: int = MAX_HYPOTHESES) -> list[Group]:
    """List the candidates, the trivial group, and all joins; equal groups once, sorted by their size.

    Args:
        groups: The candidates.
        closed: Whether to add joins.
        limit: Largest number of hypotheses.

    Returns:
        The hypotheses.

    Raises:
        ValueError: If there are no candidates, too many hypotheses, or two groups of one name.

    >>> from invariantnet import symmetry
    >>> found = hypotheses([symmetry(n, shape=(28, 28)) for n in ("rot90", "flips")])
    >>> ", ".join(g.name for g in found)
    'trivial, flips, rot90, d4'
    """
    if not groups:
        raise ValueError("no candidate groups: pass at least one, or their names.")
    dims = {g.dim for g in groups}
    if len(dims) > 1:
        raise ValueError(f"candidates on inputs of different lengths {sorted(dims)}: make them for one shape.")
    found: list[Group] = [_trivial(groups[0])]
    waiting: list[Group] = []

    def add(candidate: Group) -> None:
        known = [*found, *waiting]
        if any(g == candidate for g in known):
            return
        # Fail as early as possible: joins of large groups take long.
        if len(known) == limit:
            raise ValueError(
                f"more than {limit} hypotheses, joins included: pass fewer candidates, or leave the joins out."
            )
        if candidate.name in {g.name for g in known}:
            raise ValueError(
                f"two different groups are called {candidate.name!r}: give each a name of its own, "
                "Group.from_permutations(…, name='…')."
            )
        waiting.append(candidate)

    for group in sorted(groups, key=_rank):
        add(group)
    while waiting:
        candidate = waiting.pop(0)
        found.append(candidate)
        for other in found[1:-1] if closed else ():
            add(join(*sorted((candidate, other), key=_rank)))
    return sorted(found, key=_rank)


def _trivial(like: Group) -> Group:
    return Group(TRIVIAL, np.arange(like.dim)[None], like.shape, known_order=1)


def _rank(group: Group) -> tuple[int, bool, str]:
    # At equal order a single name goes before a join, so that of equal groups the plainer name stays.
    return (group.order, "+" in group.name, group.name)
