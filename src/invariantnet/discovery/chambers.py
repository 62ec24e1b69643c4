r"""One copy of an input that stands for all: fundamental domains of large groups that reflections generate.

An average over all permutations of nine inputs has 362,880 terms, and a few random ones do not do as well. But
every input has a copy whose entries are sorted, and a function of sorted entries is exactly invariant. The same
holds for changes of sign: all of them (absolute values), or an even number of them (absolute values, and the sign
of the product).
"""

from functools import lru_cache
from math import factorial
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64

from invariantnet.discovery.copies import LISTED
from invariantnet.discovery.structure import symmetric_parts
from invariantnet.symmetries._closure import TooManyElementsError, close_indices
from invariantnet.symmetries._orbits import signed_orbits
from invariantnet.symmetries.group import Group

Chamber = Literal["sorted", "even signs", "sorted, even signs", "sorted, all signs"]
"""What a group allows: permutations within its orbits, changes of an even number of signs, or of all signs."""


def chosen_copies(
    generators: Int64[np.ndarray, "generators dim"], x: Float64[np.ndarray, "n dim"]
) -> Float64[np.ndarray, "n dim"] | None:
    """Replace every input by the copy that stands for all of its copies.

    Args:
        generators: Index arrays of a group, signs included.
        x: Inputs.

    Returns:
        The chosen copies; None if the group is small enough for an average, or of another kind.

    Example:
        >>> chosen_copies(np.array([[1, 0, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]), np.array([[3.0, 1, 2, 6, 5, 4]]))
        array([[1., 2., 3., 4., 5., 6.]])
    """
    kind = _chamber(generators.tobytes(), generators.shape[1])
    if kind is None:
        return None
    dim = generators.shape[1]
    moved = np.flatnonzero((generators != np.arange(dim)).any(axis=0))
    chosen = x.copy()
    if kind == "sorted":
        orbits = signed_orbits(generators)[0]
        for label in np.unique(orbits):
            members = np.flatnonzero(orbits == label)
            chosen[:, members] = np.sort(x[:, members], axis=1)
        return chosen
    sizes = np.abs(x[:, moved])
    if kind != "even signs":
        sizes = np.sort(sizes, axis=1)
    if kind != "sorted, all signs":
        # At the smallest entry, so that the copy changes continuously with the input.
        rows, smallest = np.arange(len(x)), sizes.argmin(axis=1)
        sizes[rows, smallest] *= np.sign(x[:, moved]).prod(axis=1)
    chosen[:, moved] = sizes
    return chosen


def even_signs(dim: int) -> Int64[np.ndarray, "generators dim"]:
    """Changes of the signs of two inputs, next to each other."""
    index = np.tile(np.arange(dim), (dim - 1, 1))
    rows = np.arange(dim - 1)
    index[rows, rows] += dim
    index[rows, rows + 1] += dim
    return index


@lru_cache(maxsize=4096)
def _chamber(generators: bytes, dim: int) -> Chamber | None:
    index = np.frombuffer(generators, np.int64).reshape(-1, dim)
    try:
        close_indices(index, LISTED, "the proposal")
    except TooManyElementsError:
        return _chamber_of_large(Group("proposal", index))
    return None


def _chamber_of_large(group: Group) -> Chamber | None:
    index, dim = group.generators, group.dim
    if not (index >= dim).any():
        return "sorted" if symmetric_parts(group) else None
    count = int((index != np.arange(dim)).any(axis=0).sum())
    even = bool(((index >= dim).sum(axis=1) % 2 == 0).all())
    if (index % dim == np.arange(dim)).all():
        return "even signs" if even and group.order == 2 ** (count - 1) else None
    if group.order == 2 ** (count - 1) * factorial(count) and even:
        return "sorted, even signs"
    return "sorted, all signs" if group.order == 2**count * factorial(count) else None
