"""Transformations of one point as transformations of a whole set of points."""

from dataclasses import replace
from typing import Any

import numpy as np

from invariantnet.symmetries.group import Group


def lift(matrix: Any, points: int, name: str = "lifted") -> Group:
    """Make the group that moves every point of an input by the same matrix.

    Args:
        matrix: An invertible d×d matrix, such as a rotation of the plane, or a list of them.
        points: Number of points in an input of shape `(points, d)`.
        name: Name of the group in reports.

    Returns:
        The group that these matrices generate, acting on all points at once.

    Raises:
        ValueError: There are no points, a matrix is not square or not invertible, or no finite group contains it.

    Example:
        >>> turn = [[0, -1], [1, 0]]
        >>> turns = lift(turn, points=3, name="turns")
        >>> turns.order, turns.shape
        (4, (3, 2))
    """
    if isinstance(points, bool) or not isinstance(points, int | np.integer) or points < 1:
        raise ValueError(f"{points!r} points are no number of points: pass a whole number, at least 1.")
    try:
        matrices = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("the matrix holds something else than numbers: pass a d×d array of numbers.") from None
    matrices = matrices[None] if matrices.ndim == 2 else matrices
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or not matrices.size:
        raise ValueError(
            f"a matrix of shape {np.shape(matrix)} does not act on points: pass a d×d array, or a list of them."
        )
    everywhere = [np.kron(np.eye(int(points)), each) for each in matrices]
    return replace(Group.from_matrices(everywhere, name), shape=(int(points), matrices.shape[1]))
