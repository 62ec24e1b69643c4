"""What a group is, in words."""

import math

import numpy as np

from invariantnet._system.words import count_words
from invariantnet.symmetries._closure import extend
from invariantnet.symmetries.group import Group

LISTED = 10_000
"""Largest group whose elements are looked at one by one, which takes about a second."""


def describe(group: Group) -> str:
    """Name the structure of a group: cyclic, dihedral, symmetric, or its order alone.

    Args:
        group: A group of index arrays.

    Returns:
        Words such as "cyclic of order 4".

    Example:
        >>> describe(Group.from_permutations([[1, 2, 3, 0]]))
        'cyclic of order 4'
        >>> describe(Group.from_permutations([[1, 2, 3, 0], [3, 2, 1, 0]]))
        'dihedral of order 8'
    """
    if group.order == 1:
        return "trivial"
    sizes = symmetric_parts(group)
    if sizes and sizes != [2]:
        if len(sizes) == 1:
            return f"all {count_words(group.order)} permutations of {sizes[0]} inputs"
        parts = " and ".join([", ".join(map(str, sizes[:-1])), str(sizes[-1])])
        return f"all permutations within parts of {parts} inputs"
    if group.order > LISTED:
        return f"of order {count_words(group.order)}"
    orders = element_orders(group)
    if orders.max() == group.order:
        return f"cyclic of order {group.order}"
    if _is_dihedral(group, orders):
        return f"dihedral of order {group.order}"
    commutes = _commutes(group)
    if commutes and orders.max() == 2:
        return f"{int(math.log2(group.order))} independent exchanges, order {group.order}"
    return f"{'commutative ' if commutes else ''}of order {group.order}"


def symmetric_parts(group: Group) -> list[int]:
    """Sizes of the orbits, if the group is all permutations within its orbits; else an empty list."""
    if not group.is_permutation_group:
        return []
    sizes = [int(n) for n in np.bincount(group.orbits().numpy()) if n > 1]
    return sorted(sizes, reverse=True) if group.order == math.prod(map(math.factorial, sizes)) else []


def element_orders(group: Group) -> np.ndarray:
    """Order of every element."""
    elements = extend(group.elements.numpy())
    identity = np.arange(elements.shape[1])
    found = np.zeros(len(elements), int)
    power = np.tile(identity, (len(elements), 1))
    for k in range(1, len(elements) + 1):
        power = np.take_along_axis(elements, power, axis=1)
        found[(found == 0) & (power == identity).all(axis=1)] = k
        if found.all():
            break
    return found


def _is_dihedral(group: Group, orders: np.ndarray) -> bool:
    half = group.order // 2
    turns = np.flatnonzero(orders == half)
    if group.order < 6 or group.order % 2 or not len(turns):
        return False
    elements = extend(group.elements.numpy())
    turn = elements[turns[0]]
    powers, power = set(), turn
    for _ in range(half):
        powers.add(power.tobytes())
        power = turn[power]
    inverse = np.argsort(turn)
    outside = [e for e in elements if e.tobytes() not in powers]
    return all(np.array_equal(e[turn[np.argsort(e)]], inverse) for e in outside[:1]) and bool(
        all(orders[i] == 2 for i, e in enumerate(elements) if e.tobytes() not in powers)
    )


def _commutes(group: Group) -> bool:
    generators = extend(group.generators)
    return all(np.array_equal(a[b], b[a]) for a in generators for b in generators)
