"""Permutations of few inputs that leave given numbers alone: a beam search from every pair of inputs at once."""

import numpy as np
from jaxtyping import Float64, Int64

from invariantnet.discovery._matching import Moments

WIDTH = 12
"""Partial permutations that are kept for every first pair and every number of inputs that move."""

ENDS = 1
"""Permutations that are returned for every first pair and every number of inputs that move."""

UNUSED = 1e300
"""Loss of an image that is taken already."""


def beam_search(moments: Moments) -> list[Int64[np.ndarray, " dim"]]:
    """Find permutations that bring one input to the place of another, for every pair, and change moments least.

    Images are chosen place by place. Each choice adds the change of the numbers of that place, alone and together
    with all earlier places. Permutations that move few inputs always change less, so a permutation competes only
    with others that move equally many.

    Args:
        moments: What to leave alone.

    Returns:
        Index arrays.
    """
    dim = moments.dim
    first, second = np.triu_indices(dim, 1)
    places = _orders(moments)[first]
    images = second[:, None]
    loss = _single(moments)[first, second]
    owner = np.arange(len(first))
    for depth in range(1, dim):
        loss, images, owner = _extended(moments, places[owner][:, : depth + 1], images, loss, owner)
    ends = _best(loss, _moving(places[owner], images, owner), ENDS)
    found = np.empty((len(ends), dim), np.int64)
    np.put_along_axis(found, places[owner[ends]], images[ends], axis=1)
    return list(np.unique(found, axis=0))


def _orders(moments: Moments) -> Int64[np.ndarray, "dim dim"]:
    """For every input, itself and then the others, those with the largest numbers first."""
    size = (moments.pairs**2).sum(axis=(0, 2)) + (moments.odd**2).sum(axis=0) + (moments.even**2).sum(axis=0)
    order = np.argsort(-size, kind="stable")
    return np.stack([np.concatenate([[i], order[order != i]]) for i in range(moments.dim)])


def _single(moments: Moments) -> Float64[np.ndarray, "dim dim"]:
    """Change of the numbers of a place alone, by its image."""
    own = moments.pairs[:, np.arange(moments.dim), np.arange(moments.dim)]
    rows = np.concatenate([moments.even, moments.odd, own])
    return np.asarray(((rows[:, :, None] - rows[:, None, :]) ** 2).sum(axis=0))


def _extended(
    moments: Moments,
    places: Int64[np.ndarray, "states depth"],
    images: Int64[np.ndarray, "states before"],
    loss: Float64[np.ndarray, " states"],
    owner: Int64[np.ndarray, " states"],
) -> tuple[Float64[np.ndarray, " more"], Int64[np.ndarray, "more depth"], Int64[np.ndarray, " more"]]:
    """Choose the image of one more place, and keep the best states of their kind."""
    new, before = places[:, -1], places[:, :-1]
    added = _single(moments)[new]
    for matrix in moments.pairs:
        wanted = matrix[new[:, None], before]
        added += 2 * ((wanted[:, None, :] - matrix[:, images].transpose(1, 0, 2)) ** 2).sum(axis=2)
    np.put_along_axis(added, images, UNUSED, axis=1)
    total = (loss[:, None] + added).ravel()
    state, image = np.divmod(np.arange(len(total)), moments.dim)
    moving = _moving(before, images, owner)[state] + (new[state] != image)
    kept = _best(total, moving, WIDTH)
    kept = kept[total[kept] < UNUSED]
    longer = np.concatenate([images[state[kept]], image[kept, None]], axis=1)
    return total[kept], longer, owner[state[kept]]


def _moving(
    places: Int64[np.ndarray, "states depth"],
    images: Int64[np.ndarray, "states depth"],
    owner: Int64[np.ndarray, " states"],
) -> Int64[np.ndarray, " states"]:
    """Different numbers for different first pairs, and for different numbers of inputs that move."""
    return np.asarray((places != images).sum(axis=1) + 1000 * owner)


def _best(
    loss: Float64[np.ndarray, " states"], owner: Int64[np.ndarray, " states"], count: int
) -> Int64[np.ndarray, " kept"]:
    """Find the states with the smallest losses of each owner."""
    order = np.lexsort((loss, owner))
    starts = np.searchsorted(owner[order], owner[order])
    return order[np.arange(len(order)) - starts < count]
