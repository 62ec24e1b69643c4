"""Groups that are close to a given one: subgroups, conjugates, and noisy elements that were mended."""

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement

import numpy as np
from jaxtyping import Bool, Int64

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.copies import moves
from invariantnet.discovery.ranking import exchange_misfits
from invariantnet.symmetries._closure import Indices, TooManyElementsError, close_indices, extend
from invariantnet.symmetries._orbits import signed_orbits
from invariantnet.symmetries.group import Group

FEWER = 0.3
"""Share of the inputs that elements of the parts move, below which an element of their join is an artefact."""


def fitting(
    index: Int64[np.ndarray, " dim"], elements: Int64[np.ndarray, "order dim"]
) -> Int64[np.ndarray, " dim"]:
    r"""Mend a noisy permutation so that it maps a group onto itself, where most inputs agree on how.

    If $h g h^{-1} = \varphi(g)$ for all elements, then $h$ is known on an orbit as soon as it is known for one
    member; all members vote.

    Args:
        index: The noisy permutation, signs included.
        elements: All elements of the group.

    Returns:
        The mended permutation, or the same if the votes make none.
    """
    dim = len(index)
    h, group = extend(index), extend(elements)
    back = np.argsort(h)
    images = [group[(group != h[g[back]]).sum(axis=1).argmin()] for g in group]
    mended = np.full(2 * dim, -1)
    for x in range(2 * dim):
        if mended[x] < 0:
            votes = [int(np.argsort(image)[h[g[x]]]) for g, image in zip(group, images, strict=True)]
            winner = max(set(votes), key=votes.count)
            for g, image in zip(group, images, strict=True):
                mended[g[x]] = image[winner]
    valid = np.array_equal(np.sort(mended), np.arange(2 * dim))
    consistent = np.array_equal(mended[dim:], (mended[:dim] + dim) % (2 * dim))
    return mended[:dim] if valid and consistent else index


def regular_part(index: Int64[np.ndarray, " dim"], share: float) -> Int64[np.ndarray, " dim"]:
    """Keep the cycles of the smallest order that covers most moved inputs; the others stay where they are.

    A few wrong places join cycles of a true element to long ones: a quarter turn with one cycle of 61 inputs.

    Args:
        index: A permutation.
        share: Share of the moved inputs that the kept cycles have to cover.

    Returns:
        The permutation of the kept cycles.

    Example:
        >>> regular_part(np.array([1, 0, 3, 2, 5, 6, 4]), 0.5)
        array([1, 0, 3, 2, 4, 5, 6])
    """
    lengths = cycle_length_of_inputs(index)
    moved = lengths > 1
    orders = {int(np.lcm(a, b)) for a, b in combinations_with_replacement(np.unique(lengths), 2)}
    for order in sorted(orders):
        kept = moved & (order % lengths == 0)
        if kept.sum() >= share * moved.sum():
            return np.where(kept, index, np.arange(len(index)))
    return index


def cycle_length_of_inputs(index: Int64[np.ndarray, " dim"]) -> Int64[np.ndarray, " dim"]:
    """Length of the cycle that each input is in."""
    orbit = signed_orbits(index[None])[0]
    return np.bincount(orbit)[orbit]


def closest_to_identity(
    index: Int64[np.ndarray, " dim"], elements: Int64[np.ndarray, "order dim"]
) -> Int64[np.ndarray, " dim"]:
    """Of the products with elements of a group, take the one that moves the fewest inputs."""
    products = extend(elements)[:, index]
    return products[(products != np.arange(len(index))).sum(axis=1).argmin()]


def are_permutations(generators: Indices) -> bool:
    """Whether every row holds each input once."""
    dim = generators.shape[1]
    return bool((np.sort(generators % dim, axis=1) == np.arange(dim)).all())


def are_versions(joined: Indices, parts: Sequence[Int64[np.ndarray, "_ dim"]]) -> bool:
    """Whether a join has an element that moves far fewer inputs than any element of its parts.

    Two versions of one element, each with some inputs in wrong places, differ by such an element.

    Args:
        joined: Generators of the join, at most a few thousand elements.
        parts: Generators of what was joined.

    Returns:
        True if the join is an artefact.

    Example:
        >>> swaps = np.array([1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 10, 11])
        >>> noisy = np.array([1, 0, 3, 2, 5, 4, 7, 6, 8, 9, 11, 10])
        >>> are_versions(np.stack([swaps, noisy]), [swaps[None], noisy[None]])
        False
        >>> exchange = np.array([1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10])
        >>> are_versions(np.stack([swaps, exchange]), [swaps[None], exchange[None]])
        True
    """
    return fewest_moved(joined) < FEWER * min(map(fewest_moved, parts))


def fewest_moved(generators: Indices, most: int = 4096) -> int:
    """Inputs that an element moves at least, other than the identity; 0 for too large a group."""
    try:
        elements = close_indices(generators, most, "the group")
    except TooManyElementsError:
        return 0
    moved = (elements != np.arange(elements.shape[1])).sum(axis=1)
    return int(moved[moved > 0].min(initial=elements.shape[1]))


def subgroups(generators: Indices) -> Iterable[Indices]:
    """Groups of all generators but one, and of squares of single generators."""
    for i in range(len(generators)):
        yield np.delete(generators, i, axis=0)
    for generator in generators:
        yield extend(generator)[generator][None]


def neighbours(generators: Indices, moments: Moments, count: int) -> list[tuple[tuple[int, int], Indices]]:
    """Conjugates of a group by exchanges of two inputs that look alike; the group itself is left out."""
    dim = moments.dim
    moved = moves(generators)
    alike = exchange_misfits(moments)
    first, second = np.triu_indices(dim, 1)
    useful = moved[first] | moved[second]
    order = np.argsort(alike[first, second][useful], kind="stable")
    found = []
    for k in order:
        a, b = int(first[useful][k]), int(second[useful][k])
        exchange = np.arange(dim)
        exchange[[a, b]] = b, a
        other = np.stack([conjugate(g, exchange) for g in generators])
        if not same_group(generators, other):
            found.append(((a, b), other))
            if len(found) == count:
                break
    return found


def conjugate(index: Int64[np.ndarray, " dim"], by: Int64[np.ndarray, " dim"]) -> Int64[np.ndarray, " dim"]:
    """Rename the inputs of an index array: the same permutation, had the inputs come in another order."""
    dim = len(index)
    wide = extend(by)
    return np.argsort(wide)[extend(index)[wide]][:dim]


def narrowed(generators: Indices, kept: Bool[np.ndarray, " dim"]) -> Int64[np.ndarray, "n kept"]:
    """Express index arrays in some of the inputs, which move among themselves.

    Args:
        generators: Index arrays on all inputs, signs included.
        kept: The inputs to keep.

    Returns:
        Index arrays on these inputs.
    """
    dim, few = len(kept), int(kept.sum())
    place = np.cumsum(kept) - 1
    own = generators[:, kept]
    return place[own % dim] + few * (own >= dim)


def widened(generators: Int64[np.ndarray, "n kept"], kept: Bool[np.ndarray, " dim"]) -> Int64[np.ndarray, "n dim"]:
    """Let index arrays on some of the inputs act on all: the others stay where they are.

    Args:
        generators: Index arrays on the inputs that were kept, signs included.
        kept: Which those are.

    Returns:
        Index arrays on all inputs.

    Example:
        >>> kept = np.array([True, False, True])
        >>> widened(np.array([[1, 2]]), kept)
        array([[2, 1, 3]])
        >>> narrowed(np.array([[2, 1, 3]]), kept)
        array([[1, 2]])
    """
    dim, few = len(kept), generators.shape[1]
    wide = np.tile(np.arange(dim), (len(generators), 1))
    wide[:, kept] = np.flatnonzero(kept)[generators % few] + dim * (generators >= few)
    return wide


def contains(larger: Int64[np.ndarray, "n dim"], smaller: Int64[np.ndarray, "m dim"], most: int = 4096) -> bool:
    """Whether a group that can be listed holds all of some generators."""
    try:
        elements = {element.tobytes() for element in close_indices(larger, most, "the group")}
    except TooManyElementsError:
        return False
    return all(generator.tobytes() in elements for generator in smaller)


def same_group(one: Int64[np.ndarray, "n dim"], other: Int64[np.ndarray, "m dim"]) -> bool:
    """Whether two sets of generators make the same group."""
    if one.shape == other.shape and np.array_equal(np.unique(one, axis=0), np.unique(other, axis=0)):
        return True
    if not np.array_equal(orbits_of(one), orbits_of(other)):
        return False
    groups = [Group("", g) for g in (one, other)]
    return groups[0] == groups[1]


def orbits_of(generators: Indices) -> Int64[np.ndarray, " dim"]:
    """Orbit of every input, signs aside."""
    return signed_orbits(generators % generators.shape[1])[0]
