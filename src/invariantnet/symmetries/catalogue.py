"""The named groups: how each moves the entries of an input, as index arithmetic for every shape that suits it.

Shapes are `(D,)`, `(H, W)`, `(C, H, W)`, and `(length, features)` for sequences and sets; the name of a group
tells how it reads a shape. Nothing here imports torch, so the command line lists the catalogue at once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from invariantnet.symmetries.shapes import Shape

TRIVIAL = "trivial"
"""Name of the group that holds only the identity: no symmetry."""

SIGN = "sign"
"""Name of the group that also changes the sign of an input."""

MOST_ORDERINGS = 10**5
"""Largest number of things whose orderings are counted: the count has half a million digits."""

ANY = "any"
"""Input shapes of groups that act on everything, as the command line prints them."""

IMAGE = "(H, W), (C, H, W)"
"""Input shapes of groups that act on images."""

SQUARE = "(H, H), (C, H, H)"
"""Input shapes of groups that act on square images."""

CHANNELS = "(C, H, W)"
"""Input shapes of groups that act on images with channels."""

IMAGES = (IMAGE, SQUARE, CHANNELS)
"""Input shapes of all groups that act on images."""

SEQUENCE = "(length,), (length, features)"
"""Input shapes of groups that act on sequences and sets."""


@dataclass(frozen=True)
class Generators:
    """Index arrays that generate a group.

    Args:
        indices: The index arrays.
        order: Number of elements, if a formula gives it without listing them.
    """

    indices: list[np.ndarray]
    order: int | None = None


Factory = Callable[[Shape], Generators]
"""Makes a group for a shape, or raises a ValueError that names the remedy."""


@dataclass(frozen=True)
class CatalogueEntry:
    """One named group.

    Args:
        name: Name by which users ask for it.
        plain: Its name without group theory; verdicts show it beside the name.
        description: What it does to an input, for the command line.
        shapes: Input shapes that it acts on, for the command line.
        generators: Makes the group for a shape.
    """

    name: str
    plain: str
    description: str
    shapes: str
    generators: Factory


CATALOGUE: dict[str, CatalogueEntry] = {}
"""All named groups, by name, in the order in which the command line lists them."""


def _entry(name: str, plain: str, description: str, shapes: str) -> Callable[[Factory], Factory]:
    def add(factory: Factory) -> Factory:
        CATALOGUE[name] = CatalogueEntry(name, plain, description, shapes, factory)
        return factory

    return add


def _grid(shape: Shape) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape)


def _image(name: str, shape: Shape) -> np.ndarray:
    if len(shape) not in (2, 3):
        raise ValueError(f"{name} needs images, got shape {shape}: pass (H, W) or (C, H, W).")
    return _grid(shape)


def _square(name: str, shape: Shape, instead: str) -> np.ndarray:
    grid = _image(name, shape)
    h, w = shape[-2:]
    if h != w:
        raise ValueError(f"{name} needs square images, got {h}×{w}: pad them to a square, or use {instead}.")
    return grid


def _sequence(name: str, shape: Shape) -> np.ndarray:
    if len(shape) not in (1, 2):
        raise ValueError(f"{name} needs sequences, got shape {shape}: pass (length,) or (length, features).")
    return _grid(shape)


def _generators(*grids: np.ndarray, order: int | None = None) -> Generators:
    return Generators([np.ascontiguousarray(grid).ravel() for grid in grids], order)


def _all_orderings(grid: np.ndarray) -> Generators:
    """All orderings along the first axis, from one exchange and one cycle."""
    n = len(grid)
    if n > MOST_ORDERINGS:
        raise ValueError(f"all orderings of {n:,} things are too many to count: use 'cyclic' or 'reversal'.")
    exchange = grid[[1, 0, *range(2, n)]] if n > 1 else grid
    return _generators(exchange, np.roll(grid, 1, 0), order=math.factorial(n))


@_entry(TRIVIAL, "no symmetry", "no symmetry: only the identity", ANY)
def _trivial(shape: Shape) -> Generators:
    return _generators(_grid(shape))


@_entry("rot90", "quarter turns", "quarter turns of a square image", SQUARE)
def _rot90(shape: Shape) -> Generators:
    return _generators(np.rot90(_square("rot90", shape, "'flips' or 'rot180'"), axes=(-2, -1)))


@_entry("rot180", "half turns", "half turns of an image", IMAGE)
def _rot180(shape: Shape) -> Generators:
    return _generators(_image("rot180", shape)[..., ::-1, ::-1])


@_entry("hflip", "left-right mirror images", "left-right mirror images", IMAGE)
def _hflip(shape: Shape) -> Generators:
    return _generators(_image("hflip", shape)[..., ::-1])


@_entry("vflip", "top-bottom mirror images", "top-bottom mirror images", IMAGE)
def _vflip(shape: Shape) -> Generators:
    return _generators(_image("vflip", shape)[..., ::-1, :])


@_entry(
    "flips", "mirror images both ways", "mirror images both ways: left-right, top-bottom, and half turns", IMAGE
)
def _flips(shape: Shape) -> Generators:
    grid = _image("flips", shape)
    return _generators(grid[..., ::-1], grid[..., ::-1, :])


@_entry(
    "transpose",
    "mirror images along the diagonal",
    "mirror images of a square along the diagonal",
    SQUARE,
)
def _transpose(shape: Shape) -> Generators:
    return _generators(_square("transpose", shape, "'flips'").swapaxes(-1, -2))


@_entry("d4", "quarter turns and mirror images", "quarter turns and mirror images of a square", SQUARE)
def _d4(shape: Shape) -> Generators:
    grid = _square("d4", shape, "'flips'")
    return _generators(np.rot90(grid, axes=(-2, -1)), grid[..., ::-1])


@_entry(
    "shifts", "shifts of pixels that wrap around", "shifts of pixels that wrap around, in both directions", IMAGE
)
def _shifts(shape: Shape) -> Generators:
    grid = _image("shifts", shape)
    return _generators(np.roll(grid, 1, -1), np.roll(grid, 1, -2), order=shape[-1] * shape[-2])


@_entry("channels", "any order of the channels", "any order of the channels of an image", CHANNELS)
def _channels(shape: Shape) -> Generators:
    if len(shape) != 3:
        raise ValueError(f"channels needs images with channels, got shape {shape}: pass (C, H, W).")
    return _all_orderings(_grid(shape))


@_entry(
    "reversal", "the reverse order of entries", "the reverse order of the entries of a row or a sequence", SEQUENCE
)
def _reversal(shape: Shape) -> Generators:
    return _generators(_sequence("reversal", shape)[::-1])


@_entry("cyclic", "shifts of entries that wrap around", "shifts of a row or a sequence that wrap around", SEQUENCE)
def _cyclic(shape: Shape) -> Generators:
    return _generators(np.roll(_sequence("cyclic", shape), 1, 0), order=shape[0])


@_entry(
    "permutations", "any order of entries", "any order of entries, such as columns or points of a set", SEQUENCE
)
def _permutations(shape: Shape) -> Generators:
    return _all_orderings(_sequence("permutations", shape))


@_entry(SIGN, "change of every sign", "change of every sign at once", ANY)
def _sign(shape: Shape) -> Generators:
    grid = _grid(shape)
    return _generators(grid + grid.size)
