"""Which permutations are worth a test: how little they change, and how hard that is to find by chance."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

from invariantnet.discovery._matching import Moments, square_distances
from invariantnet.symmetries._closure import extend

ALIKE = 0.5
"""Share of the inputs that either of two permutations moves, on which versions of one permutation agree."""

Found = tuple[float, Int64[np.ndarray, " dim"]]
"""A misfit and an index array."""


def ranked(moments: Moments, found: Sequence[Int64[np.ndarray, " dim"]]) -> list[Found]:
    """Sort permutations by how surprising they are, each once and without the identity."""
    identity = np.arange(moments.dim)
    moving = {index.tobytes(): index for index in found if not np.array_equal(index, identity)}
    typical = float(exchange_misfits(moments).mean())
    judged = [(moments.misfit(index), index) for index in moving.values()]
    return sorted(judged, key=lambda pair: -surprise(pair[0], pair[1], typical))


def surprise(misfit: float, index: Int64[np.ndarray, " dim"], typical: float) -> float:
    """How hard it would be to find such a permutation by chance.

    Among many inputs there are always two that are alike; a permutation that moves all of them and fits is no
    chance.

    Args:
        misfit: Misfit of the permutation.
        index: The permutation.
        typical: Misfit of a typical exchange of two inputs.

    Returns:
        Number of moved inputs, times the log of the ratio of the misfits.
    """
    moved = int((index != np.arange(len(index))).sum())
    return moved * float(np.log((typical + 1e-12) / (misfit + 1e-12)))


def first_of_each_kind(best: list[Found]) -> list[Found]:
    """Sort permutations by their rank among all that move equally many inputs."""
    seen: Counter[int] = Counter()
    found = []
    for misfit, index in best:
        moved = int((index != np.arange(len(index))).sum())
        found.append((seen[moved], misfit, index))
        seen[moved] += 1
    return [(misfit, index) for _, misfit, index in sorted(found, key=lambda item: item[0])]


def without_powers(best: list[Found]) -> list[Found]:
    """Drop powers of earlier permutations."""
    kept: list[Found] = []
    covered: set[bytes] = set()
    for misfit, index in best:
        if index.tobytes() not in covered:
            kept.append((misfit, index))
            covered |= {power.tobytes() for power in _powers(index)}
    return kept


def without_versions(best: list[Found]) -> list[Found]:
    """Drop permutations that agree with an earlier one, or with a power of it, on most of the inputs they move.

    Many searches among many inputs end near the same element, each with some inputs in wrong places. One of them
    is worth a test.

    Args:
        best: Misfits and index arrays, the best first.

    Returns:
        The first version of each.
    """
    kept: list[Found] = []
    covered: list[Int64[np.ndarray, " dim"]] = []
    for misfit, index in best:
        if not any(_agree(index, other) for other in covered):
            kept.append((misfit, index))
            covered += _powers(index)
    return kept


def _agree(one: Int64[np.ndarray, " dim"], other: Int64[np.ndarray, " dim"]) -> bool:
    identity = np.arange(len(one))
    moved = (one != identity) | (other != identity)
    return bool(moved.any() and (one == other)[moved].mean() > ALIKE)


def _powers(index: Int64[np.ndarray, " dim"], most: int = 64) -> list[Int64[np.ndarray, " dim"]]:
    """Powers of an index array until the identity, and its inverse."""
    dim, forward = len(index), extend(index)
    found, power = [np.argsort(forward)[:dim]], index
    while not np.array_equal(power, np.arange(dim)) and len(found) < most:
        found.append(power)
        power = forward[power]
    return found


def exchange_misfits(moments: Moments) -> Float64[np.ndarray, "dim dim"]:
    """Misfit of the exchange of any two inputs."""
    dim = moments.dim
    singles = np.concatenate([moments.even, moments.odd])
    loss = 2 * square_distances(singles.T, singles.T)
    for matrix in moments.pairs:
        whole = 4 * square_distances(matrix, matrix)
        diagonal = np.diag(matrix)
        # The entries within the pair are exchanged with one another.
        own = (diagonal[:, None] - matrix) ** 2 + (matrix - diagonal[None, :]) ** 2
        loss += whole - 4 * own + 2 * (diagonal[:, None] - diagonal[None, :]) ** 2
    count = 2 * len(singles) + (dim**2 - (dim - 2) ** 2) * len(moments.pairs)
    np.fill_diagonal(loss, 0.0)
    return loss.clip(0) / count
