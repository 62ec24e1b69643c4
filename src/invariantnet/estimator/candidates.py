"""Which symmetries are compared, and with how large networks, so that none has an advantage."""

import math
from collections.abc import Sequence

from invariantnet.catalogue import group as named_group
from invariantnet.catalogue import groups_for
from invariantnet.groups import Group
from invariantnet.measures import hypotheses

MOST_COPIES = 8


def candidates(groups: str | Group | Sequence[str | Group], shape: tuple[int, ...], *, joins: bool) -> list[Group]:
    """The hypotheses that a user's groups stand for, on inputs of a shape."""
    if isinstance(groups, str) and groups == "auto":
        every = groups_for(shape)
        try:
            return hypotheses(every, closed=joins)
        except ValueError:  # too many joins
            return hypotheses(every, closed=False)
    dim = math.prod(shape)
    names = [groups] if isinstance(groups, str | Group) else groups
    for name in names:
        if not isinstance(name, str | Group):
            raise ValueError(f"{name!r} is no group: pass names of the catalogue, or a Group.")
    found = [g if isinstance(g, Group) else named_group(g, shape) for g in names]
    for group in found:
        if group.dim != dim:
            raise ValueError(
                f"{group.name} acts on {group.dim} numbers, an input has {dim}: make the group for this shape."
            )
    return hypotheses(found, closed=joins)


def compared_units(group: Group, rivals: Sequence[Group]) -> int:
    """Units that each feature of a hypothesis' network is the mean of, before it is averaged over the group.

    A feature averaged over a group is the mean of as many units, with tied weights. Those units alone would make a
    larger group win where there is no symmetry at all. So a smaller group gets as many more, untied: all networks
    have equally many, and each hypothesis is nothing but a constraint on the same plain network. Where orders do
    not divide one another, the number is the one that they come closest to; a larger group has one per element.
    """
    orders = {g.order for g in rivals}
    fewest = min(MOST_COPIES, max(orders))

    def unevenness(total: int) -> float:
        return max(abs(math.log(round(total / n) * n / total)) for n in orders if n <= total)

    total = min(range(fewest, 2 * fewest + 1), key=unevenness)
    return max(1, round(total / group.order))
