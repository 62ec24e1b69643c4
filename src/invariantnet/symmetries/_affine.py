r"""Affine maps of the plane as bilinear interpolation: the pixels that make each new pixel, and their shares.

A pixel at position p, measured from the centre of the image, takes the value that the old image has at
$Q^q (M p + s)$: a matrix M, a shift s, and q exact quarter turns Q. Pixels beyond the frame repeat its border, so
shares always sum to one: a constant image stays constant, and a map commutes with any change of the units of a
channel.

Nothing here imports torch, so the command line lists the families of ranges at once.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64, Int32

LARGEST_KEPT = 64 * 64
"""Pixels of the largest image whose corners are kept in memory: 200 kB per map. Larger ones are computed anew."""

MAPS_KEPT = 1024
"""Maps whose corners are kept in memory: those of eight ladders of eight rungs with sixteen copies each."""

Corners = tuple[Int32[np.ndarray, "pixels 4"], Float64[np.ndarray, "pixels 4"]]
"""For every new pixel the numbers of four old ones, and the share of each."""

Vector = tuple[float, float]
"""Rows and columns."""


@dataclass(frozen=True)
class Affine:
    """An affine map of the plane, from new pixels to the old ones that they show.

    Args:
        matrix: Rows of M, in rows and columns of pixels.
        shift: The shift s, in pixels.
        quarters: Number q of quarter turns anticlockwise that the image makes first. On square images they only
            move pixels, so they are exact.

    Example:
        >>> Affine(shift=(0.0, 1.0)).corners(1, 3)[0][:, 0]
        array([1, 2, 2], dtype=int32)
    """

    matrix: tuple[Vector, Vector] = ((1.0, 0.0), (0.0, 1.0))
    shift: Vector = (0.0, 0.0)
    quarters: int = 0

    @classmethod
    def rotation(cls, degrees: float) -> "Affine":
        """Turn an image anticlockwise about its centre.

        Args:
            degrees: The angle. Its multiples of 90° are split off, so that turns by θ and θ + 90° use the same
                numbers.

        Returns:
            The map.
        """
        quarters = math.floor(degrees / 90 + 0.5)
        angle = math.radians(degrees - 90 * quarters)
        c, s = math.cos(angle), math.sin(angle)
        return cls(((c, s), (-s, c)), quarters=quarters % 4)

    def then(self, other: "Affine") -> "Affine":
        """Combine two maps into one, so that an image is interpolated once.

        Args:
            other: The map to apply after this one.

        Returns:
            The combined map.
        """
        ours, theirs = np.array(self.matrix), other._full_matrix()
        shift = ours @ other._full_shift() + np.array(self.shift)
        rows = (ours @ theirs).tolist()
        return Affine((tuple(rows[0]), tuple(rows[1])), tuple(shift.tolist()), self.quarters)

    def corners(self, height: int, width: int) -> Corners:
        """Find the four old pixels around the position that each new pixel shows.

        Args:
            height: Rows of the image.
            width: Columns of the image.

        Returns:
            Their numbers, row by row, and their shares.
        """
        if height * width <= LARGEST_KEPT:
            return _kept_corners(self, height, width)
        return _corners(self, height, width)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The matrix, row by row, and the shift of the map, quarter turns included."""
        return (*self._full_matrix().flatten().tolist(), *self._full_shift().tolist())

    def _full_matrix(self) -> Float64[np.ndarray, "2 2"]:
        return _quarter_turns(self.quarters) @ np.array(self.matrix)

    def _full_shift(self) -> Float64[np.ndarray, " 2"]:
        return _quarter_turns(self.quarters) @ np.array(self.shift)


def _quarter_turns(count: int) -> Float64[np.ndarray, "2 2"]:
    return np.linalg.matrix_power(np.array([[0.0, 1.0], [-1.0, 0.0]]), count % 4)


def _corners(affine: Affine, height: int, width: int) -> Corners:
    # A quarter turn exchanges the sides of an image: unless it is a square, only half turns map pixels to pixels.
    moves_pixels = height == width or affine.quarters % 2 == 0
    matrix = np.array(affine.matrix) if moves_pixels else affine._full_matrix()
    shift = np.array(affine.shift) if moves_pixels else affine._full_shift()
    last = np.array([height - 1, width - 1])
    pixels = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1).reshape(-1, 2)
    position = np.clip((pixels - last / 2) @ matrix.T + shift + last / 2, 0, last)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, last)
    share = position - low
    rows = np.stack([low[:, 0], low[:, 0], high[:, 0], high[:, 0]], axis=1)
    columns = np.stack([low[:, 1], high[:, 1], low[:, 1], high[:, 1]], axis=1)
    down, right = share[:, :1], share[:, 1:]
    shares = np.concatenate([1 - down, 1 - down, down, down], axis=1) * np.concatenate(
        [1 - right, right, 1 - right, right], axis=1
    )
    turned = np.arange(height * width, dtype=np.int32).reshape(height, width)
    if moves_pixels:
        turned = np.rot90(turned, affine.quarters)
    return turned[rows, columns], shares


_kept_corners = lru_cache(maxsize=MAPS_KEPT)(_corners)
