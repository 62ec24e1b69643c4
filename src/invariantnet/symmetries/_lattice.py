"""Points spread evenly over a cube, the origin among them."""

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float64


@lru_cache(maxsize=64)
def lattice(points: int, dims: int) -> Float64[np.ndarray, "points dims"]:
    r"""Spread points evenly over the cube $[-1, 1)^d$, the origin first (a Korobov lattice).

    Point k is $(k, ka, ka^2, …)/n$ modulo 1, with the integer a that keeps the points farthest apart. Every
    coordinate alone takes n different values at equal distances. In one dimension these are the midpoints of n equal
    cells that cover an interval of the length of $[-1, 1)$, moved by half a cell so that 0 is among them; on a circle
    this is the cyclic group of n elements.

    Args:
        points: Number of points.
        dims: Number of coordinates.

    Example:
        >>> lattice(4, 1)[:, 0]
        array([ 0. ,  0.5, -1. , -0.5])
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
