"""How the named groups move the entries of an input: index arithmetic, for every shape where it makes sense.

Shapes: `(D,)`, `(H, W)`, `(C, H, W)`, and `(length, features)` for sequences and sets; the name of the
group says which reading of a shape is meant. Nothing here needs torch, so the command line lists it at once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from invariantnet.symmetries.shapes import Shape

TRIVIAL = "trivial"

MOST_ORDERINGS = 10**5
"""Things whose orderings are counted; the number itself would fill a page."""


@dataclass(frozen=True)
class Generators:
    """Index arrays that generate a group, and its order where that is known without counting."""

    indices: list[np.ndarray]
    order: int | None = None


@dataclass(frozen=True)
class Action:
    """One named group: `generators(shape)`, or a ValueError that names the remedy."""

    name: str
    description: str
    shapes: str
    generators: Callable[[Shape], Generators]


ACTIONS: dict[str, Action] = {}


def _action(
    name: str, description: str, shapes: str
) -> Callable[[Callable[[Shape], Generators]], Callable[[Shape], Generators]]:
    def add(factory: Callable[[Shape], Generators]) -> Callable[[Shape], Generators]:
        ACTIONS[name] = Action(name, description, shapes, factory)
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


def _rows(name: str, shape: Shape) -> np.ndarray:
    if len(shape) not in (1, 2):
        raise ValueError(f"{name} needs (length,) or (length, features), got shape {shape}.")
    return _grid(shape)


def _generators(*grids: np.ndarray, order: int | None = None) -> Generators:
    return Generators([np.ascontiguousarray(grid).ravel() for grid in grids], order)


ANY = "any"
IMAGE = "(H, W), (C, H, W)"
SQUARE = "(H, H), (C, H, H)"
ROWS = "(length,), (length, features)"


@_action("trivial", "no symmetry: only the identity", ANY)
def _trivial(shape: Shape) -> Generators:
    return _generators(_grid(shape))


@_action("rot90", "quarter turns of a square image", SQUARE)
def _rot90(shape: Shape) -> Generators:
    return _generators(np.rot90(_square("rot90", shape, "'flips' or 'rot180'"), axes=(-2, -1)))


@_action("rot180", "half turns of an image", IMAGE)
def _rot180(shape: Shape) -> Generators:
    return _generators(_image("rot180", shape)[..., ::-1, ::-1])


@_action("hflip", "mirror images, left and right exchanged", IMAGE)
def _hflip(shape: Shape) -> Generators:
    return _generators(_image("hflip", shape)[..., ::-1])


@_action("vflip", "mirror images, top and bottom exchanged", IMAGE)
def _vflip(shape: Shape) -> Generators:
    return _generators(_image("vflip", shape)[..., ::-1, :])


@_action("flips", "horizontal and vertical flips, and both at once", IMAGE)
def _flips(shape: Shape) -> Generators:
    grid = _image("flips", shape)
    return _generators(grid[..., ::-1], grid[..., ::-1, :])


@_action("transpose", "mirror images along the main diagonal of a square image", SQUARE)
def _transpose(shape: Shape) -> Generators:
    return _generators(_square("transpose", shape, "'flips'").swapaxes(-1, -2))


@_action("d4", "all symmetries of the square: quarter turns and flips", SQUARE)
def _d4(shape: Shape) -> Generators:
    grid = _square("d4", shape, "'flips'")
    return _generators(np.rot90(grid, axes=(-2, -1)), grid[..., ::-1])


@_action("shifts", "cyclic translations of an image in both directions", IMAGE)
def _shifts(shape: Shape) -> Generators:
    grid = _image("shifts", shape)
    return _generators(np.roll(grid, 1, -1), np.roll(grid, 1, -2), order=shape[-1] * shape[-2])


@_action("channels", "all permutations of the channels of an image", "(C, H, W)")
def _channels(shape: Shape) -> Generators:
    if len(shape) != 3:
        raise ValueError(f"channels needs images with channels, got shape {shape}: pass (C, H, W).")
    return _symmetric(_grid(shape))


@_action("reversal", "a sequence read backwards", ROWS)
def _reversal(shape: Shape) -> Generators:
    return _generators(_rows("reversal", shape)[::-1])


@_action("cyclic", "cyclic shifts of a sequence", ROWS)
def _cyclic(shape: Shape) -> Generators:
    return _generators(np.roll(_rows("cyclic", shape), 1, 0), order=shape[0])


@_action("permutations", "all orderings of the elements of a set", ROWS)
def _permutations(shape: Shape) -> Generators:
    return _symmetric(_rows("permutations", shape))


@_action("sign", "change of the sign of every input at once", ANY)
def _sign(shape: Shape) -> Generators:
    grid = _grid(shape)
    return _generators(grid + grid.size)


def _symmetric(grid: np.ndarray) -> Generators:
    """All orders along the first axis, from one exchange and one cycle."""
    n = len(grid)
    if n > MOST_ORDERINGS:
        raise ValueError(f"all orderings of {n:,} things are too many to count: use 'cyclic' or 'reversal'.")
    exchange = grid[[1, 0, *range(2, n)]] if n > 1 else grid
    return _generators(exchange, np.roll(grid, 1, 0), order=math.factorial(n))
