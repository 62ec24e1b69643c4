r"""What is left of a group once a network is invariant to a part of it.

If $f(T_h x) = f(x)$ for all $h \in H$, then $\sum_t f(T_t x)$ over one representative $t$ of each coset $H t$ is
invariant to $G$, just as the sum over all of $G$ would be.
"""

import math

import numpy as np
from jaxtyping import Int64

from invariantnet.symmetries._closure import extend
from invariantnet.symmetries.group import Group


def contains_generators(group: Group, part: Group) -> bool:
    """Whether the generators of a part are among those of a group: enough to know that it is a subgroup."""
    if group.is_matrix_group or part.is_matrix_group:
        return False
    known = {generator.tobytes() for generator in group.generators}
    return all(generator.tobytes() in known for generator in part.generators)


def exchanges_freely(group: Group) -> bool:
    """Whether a group contains every reordering within its orbits, and nothing else.

    Args:
        group: Any group.

    Returns:
        True if it does.

    Example:
        >>> swap, turn = [1, 0, 2, 3, 4], [1, 2, 0, 3, 4]
        >>> exchanges_freely(Group.from_permutations([swap, turn]))
        True
        >>> exchanges_freely(Group.from_permutations([turn]))
        False
    """
    if not group.is_permutation_group:
        return False
    sizes = np.bincount(group.orbits().numpy()).tolist()
    return group.order == math.prod(math.factorial(size) for size in sizes)


def coset_representatives(group: Group, part: Group, limit: int) -> Int64[np.ndarray, "cosets dim"] | None:
    """Find one element of every coset.

    Args:
        group: A group of index arrays.
        part: A subgroup that shifts or reorders the first axis, or shifts an image, of the catalogue; or the group
            itself.
        limit: Largest number of cosets.

    Returns:
        The elements, the identity first; None if there are more cosets than that.
    """
    dim = group.dim
    found = [np.arange(dim)]
    if group == part:
        return np.stack(found)
    extended = extend(group.generators)
    for element in found:  # grows while it is walked
        for product in extended[:, element]:
            if not any(_in_part(_quotient(product, known), part) for known in found):
                found.append(product)
        if len(found) > limit:
            return None
    return np.stack(found)


def _quotient(a: Int64[np.ndarray, " dim"], b: Int64[np.ndarray, " dim"]) -> Int64[np.ndarray, " dim"]:
    r"""$T_a T_b^{-1}$ as an index array."""
    inverse = np.argsort(extend(b))
    return inverse[extend(a)][: len(a)]


def _in_part(index: Int64[np.ndarray, " dim"], part: Group) -> bool:
    """Whether an index array reorders or shifts as the part does; no elements are listed."""
    assert part.shape is not None
    if index.max() >= len(index):
        return False
    grid = np.arange(len(index)).reshape(part.shape)
    moved = index.reshape(part.shape)
    if part.name == "permutations":
        rows = moved.reshape(len(moved), -1)
        expected = rows[:, :1] // rows.shape[1] * rows.shape[1] + np.arange(rows.shape[1])
        return bool((rows == expected).all())
    axes = (0,) if part.name == "cyclic" else (-2, -1)
    start = np.unravel_index(moved.ravel()[0], part.shape)
    shift = tuple(-int(start[axis]) for axis in axes)
    return bool(np.array_equal(np.roll(grid, shift, axes), moved))
