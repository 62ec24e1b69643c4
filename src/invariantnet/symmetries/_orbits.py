"""Orbits of groups of index arrays: connected components of the graph of the generators."""

import numpy as np
from jaxtyping import Int64
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from invariantnet.symmetries._closure import extend


def signed_orbits(
    generators: Int64[np.ndarray, "n dim"],
) -> tuple[Int64[np.ndarray, " dim"], Int64[np.ndarray, " dim"]]:
    """Find the orbit of every input, and the sign with which the input enters the invariant sum of its orbit.

    Args:
        generators: Index arrays, signs included.

    Returns:
        Labels, which count from 0 by first appearance, and signs. An input that the group maps to its own negative
        enters no invariant sum: its label is -1 and its sign 0. Without changes of sign all signs are 1.
    """
    dim = generators.shape[1]
    if (generators < dim).all():
        return _components(generators), np.ones(dim, np.int64)
    both = _components(extend(generators))
    plus, minus = both[:dim], both[dim:]
    # The orbit of -x[i] mirrors that of x[i]; the one that appears first counts as positive.
    sign = np.sign(minus - plus)
    labels = np.where(sign == 0, -1, _by_first_appearance(np.minimum(plus, minus), keep=sign != 0))
    return labels, sign


def _components(generators: Int64[np.ndarray, "n points"]) -> Int64[np.ndarray, " points"]:
    # Row i of the graph holds g(i) for every generator g.
    n, points = generators.shape
    ends = np.arange(0, points * n + 1, n, dtype=np.int32)
    graph = csr_array((np.ones(n * points), generators.T.ravel().astype(np.int32), ends), shape=(points, points))
    labels = connected_components(graph, directed=False)[1]
    return _by_first_appearance(labels.astype(np.int64), keep=np.ones(points, bool))


def _by_first_appearance(labels: Int64[np.ndarray, " n"], keep: np.ndarray) -> Int64[np.ndarray, " n"]:
    _, first, inverse = np.unique(np.where(keep, labels, -1), return_index=True, return_inverse=True)
    if not keep.all():
        first[0] = len(labels)  # labels not kept come last, so that the others keep 0 … n-1
    rank = np.empty_like(first)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse].astype(np.int64)
