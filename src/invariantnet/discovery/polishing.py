"""Mending a group by moments: which inputs are in wrong places, and whose places cannot be told?"""

import numpy as np
from jaxtyping import Bool

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.copies import joint_symmetry_of, moves
from invariantnet.discovery.moment_fit import exchange_loses, worst_inputs
from invariantnet.discovery.neighbours import neighbours, orbits_of
from invariantnet.symmetries._closure import Indices

NEIGHBOURS = 40
"""Exchanges of two inputs after which a group is compared with itself: the ones that the moments resolve least."""

UNRESOLVED = 3.0
"""Nats below which two places count as not told apart, so that the inputs there are set aside."""

MOST_SET_ASIDE = 0.35
"""Share of the moved inputs that may be set aside; if more are unclear, the verdict is that much less sure."""

OUTLIER = 4.0
"""Ratio of the misfit of an orbit to the typical one above which the orbit does not belong to the symmetry."""


def polished(generators: Indices, moments: Moments) -> Indices:
    """Exchange pairs of inputs as long as the moments fit the group better.

    Args:
        generators: Index arrays of the group.
        moments: What it leaves alone.

    Returns:
        Index arrays of a conjugate that fits at least as well.
    """
    for _ in range(NEIGHBOURS):
        symmetry = joint_symmetry_of(generators)
        tried = [
            (exchange_loses(moments, symmetry, pair), other)
            for pair, other in neighbours(generators, moments, NEIGHBOURS)
        ]
        lost, other = min(tried, key=lambda found: found[0], default=(0.0, generators))
        if lost >= 0:
            break
        generators = other
    return generators


def outliers(generators: Indices, moments: Moments) -> Bool[np.ndarray, " dim"]:
    """Find orbits whose moments change far more than those of others."""
    misfit = worst_inputs(moments, joint_symmetry_of(generators))
    orbits, moved = orbits_of(generators), moves(generators)
    sizes = np.bincount(orbits)
    mean = (np.bincount(orbits, misfit) / sizes)[orbits]
    return np.asarray(moved & (mean > OUTLIER * np.median(mean[moved])))


def unresolved(generators: Indices, moments: Moments) -> tuple[Bool[np.ndarray, " dim"], list[float]]:
    """Find orbits whose places the moments cannot tell apart.

    Args:
        generators: Index arrays of the group.
        moments: What it leaves alone.

    Returns:
        The inputs of these orbits, none if they are too many, and how many nats all other exchanges are behind.
    """
    symmetry, orbits = joint_symmetry_of(generators), orbits_of(generators)
    bad = np.zeros(moments.dim, bool)
    gaps = []
    for pair, _ in neighbours(generators, moments, NEIGHBOURS):
        gap = exchange_loses(moments, symmetry, pair)
        if gap < UNRESOLVED:
            bad |= np.isin(orbits, orbits[list(pair)])
        gaps.append((gap, pair))
    if bad.sum() > MOST_SET_ASIDE * moves(generators).sum():
        bad[:] = False
    return bad, [gap for gap, pair in gaps if not bad[list(pair)].any()]
