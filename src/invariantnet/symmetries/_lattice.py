"""Points spread evenly over a cube, the origin among them."""

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float64


@lru_cache(maxsize=64)
def lattice(points: int, dims: int) -> Float64[np.ndarray, "points dims"]:
    r"""Spread points evenly over the cube $[-1, 1)^d$, the origin first (a Korobov lattice).

    Point k is $(k, ka, ka^2, …)/n$ modulo 1, with the integer a that keeps the points farthest apart. Every
    coordinate alone takes n different values at equal distances. If n is odd, the points lie evenly on both sides
    of the origin; in one dimension they are the midpoints of n equal cells of $[-1, 1]$. If n is even, -1 is among
    them: on a circle, where it equals 1, this is the cyclic group of n elements.

    Args:
        points: Number of points.
        dims: Number of coordinates.

    Returns:
        One point per row, the origin first.

    Example:
        >>> lattice(5, 1)[:, 0]
        array([ 0. ,  0.4,  0.8, -0.8, -0.4])
    """
    candidates = [_korobov(points, dims, a) for a in range(1, points + 1) if math.gcd(a, points) == 1]
    return max(candidates, key=_smallest_distance)


def _korobov(points: int, dims: int, a: int) -> Float64[np.ndarray, "points dims"]:
    steps = np.array([pow(a, d, points) for d in range(dims)])
    fraction = (np.arange(points)[:, None] * steps) % points / points
    return np.where(fraction < 0.5, 2 * fraction, 2 * fraction - 2)


def _smallest_distance(nodes: Float64[np.ndarray, "points dims"]) -> float:
    """Distance of the origin to its nearest neighbour on the torus; all points of a lattice see the same."""
    return float(np.sqrt((nodes[1:] ** 2).sum(axis=1)).min(initial=np.inf))
