"""Do moments leave room for a larger group than the one that was found?

A larger group brings an input to the place of one from another orbit, or moves whole orbits within themselves. The
first needs inputs of different orbits that look alike: the same mean, the same variance, the same covariances with
others in some order. Where most inputs have such a double, a group is at best a part of the truth. On a torus of
spins all inputs look alike, so the change of all signs cannot be all there is, as far as anybody can tell.
"""

import numpy as np
from jaxtyping import Bool

from invariantnet.discovery._matching import Moments, square_distances
from invariantnet.discovery.neighbours import orbits_of
from invariantnet.symmetries._closure import Indices

MOST_ALIKE = 0.5
"""Share of the inputs that may look like one of another orbit if a group is to be called exact."""

SLACK = 1.5
"""Factor on the typical distance within an orbit up to which inputs of different orbits look alike."""


def leave_room(moments: Moments, generators: Indices) -> bool:
    """Whether most inputs look like an input of another orbit.

    Args:
        moments: What a symmetry leaves alone.
        generators: Index arrays of the group that was found, signs included.

    Returns:
        True if nothing that was measured speaks against a larger group.
    """
    return bool(look_alike(moments, generators).mean() > MOST_ALIKE)


def look_alike(moments: Moments, generators: Indices) -> Bool[np.ndarray, " dim"]:
    """Find the inputs that look like one of another orbit, as much as members of one orbit do.

    Args:
        moments: What a symmetry leaves alone.
        generators: Index arrays of a group, signs included.

    Returns:
        Whether each input has such a double.
    """
    dim = moments.dim
    singles = np.concatenate([moments.even, moments.odd, np.diagonal(moments.pairs, axis1=1, axis2=2)])
    # Sorted covariances are closer than in any other order, so a large distance excludes all orders.
    sorted_rows = np.sort(moments.pairs, axis=2).transpose(1, 0, 2).reshape(dim, -1)
    rows = np.concatenate([singles.T, sorted_rows], axis=1)
    distance = square_distances(rows, rows)
    orbits = orbits_of(generators)
    same = orbits[:, None] == orbits
    others = same.sum(axis=1) - 1
    typical = np.where(same, distance, 0.0).sum(axis=1) / others.clip(1)
    expected = float(np.median(typical[others > 0])) if (others > 0).any() else float(rows.shape[1])
    typical = np.where(others > 0, typical, expected)
    alike = ~same & (distance <= SLACK * np.maximum(typical[:, None], typical))
    return np.asarray(alike.any(axis=1))
