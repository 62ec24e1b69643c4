"""Measured data: tables and digits of scikit-learn, pictures of scikit-image, time series of sktime.

The files of scikit-image and sktime are read without importing these packages, so that `pip install --no-deps` is
enough. Where a symmetry is true, it is because every example was moved at random; where it is false, because moved
examples have another class.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image
from sklearn import datasets

from studies.truth.problems import generator

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Inputs and labels to learn from, and to test on."""

TEXTURES = ("brick", "grass", "gravel")
"""Grey pictures of surfaces."""
PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "ihc.png", "retina.jpg", "rocket.jpg")
"""Colour pictures."""
TILE, COLOUR_TILE = 16, 12
"""Side of the tiles that pictures are cut into; none overlap."""
LEARN_FROM = 0.6
"""Share of a picture, from its left edge, that is learned from; a column of tiles beside it is left out."""
TEST_SHARE = 0.25
"""Share of a table or of a set of series that is kept for testing."""
MOST = 1000
"""Examples to learn from."""


def missing_pictures() -> str:
    """What this machine lacks to read the pictures, or nothing."""
    return "" if importlib.util.find_spec("skimage") else "pip install --no-deps scikit-image"


def missing_series() -> str:
    """What this machine lacks to read the series, or nothing."""
    return "" if importlib.util.find_spec("sktime") else "pip install --no-deps sktime"


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ValueError(f"no files of {package}: pip install --no-deps it.")
    return Path(found.origin).parent


def divided(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Split:
    """Keep a random quarter for testing, and learn from at most `MOST` of the others."""
    order = rng.permutation(len(x))
    held = int(TEST_SHARE * len(x))
    test, train = order[:held], order[held:][:MOST]
    return x[train], y[train], x[test], y[test]


def table(name: str, seed: int) -> Split:
    """A data set of scikit-learn in its own units."""
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return divided(np.asarray(x, float), y, generator(seed, name))


def tiles(picture: Float[np.ndarray, "height width channels"], side: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut a picture into tiles that do not overlap: those of its left part, and those of its right part.

    Args:
        picture: Any picture.
        side: Side of a tile.

    Returns:
        Both parts, as tiles of shape (channels, side, side).
    """
    rows, columns = picture.shape[0] // side, picture.shape[1] // side
    grid = picture[: rows * side, : columns * side].reshape(rows, side, columns, side, -1)
    grid = grid.transpose(0, 2, 4, 1, 3)
    border = int(LEARN_FROM * columns)
    shape = (-1, picture.shape[2], side, side)
    return grid[:, :border].reshape(shape), grid[:, border + 1 :].reshape(shape)


def read_picture(file: str) -> Float[np.ndarray, "height width channels"]:
    """Read a picture of scikit-image."""
    with Image.open(_folder("skimage") / "data" / file) as opened:
        picture = np.asarray(opened, float)
    return picture[..., :3] if picture.ndim > 2 else picture[..., None]


def _standardised(x: np.ndarray) -> np.ndarray:
    """Take away the brightness and contrast of every tile: they would tell the pictures apart at once."""
    axes = tuple(range(1, x.ndim))
    return (x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9)


def _parts(files: Sequence[str], side: int, rng: np.random.Generator) -> Split:
    """Tiles of several pictures, equally many of each, and which picture they are from."""
    cut = [tiles(read_picture(file), side) for file in files]
    found: list[np.ndarray] = []
    for part, most in ((0, MOST), (1, MOST)):
        each = min(most // len(files), *(len(pair[part]) for pair in cut))
        x = np.concatenate([rng.permutation(pair[part])[:each] for pair in cut])
        order = rng.permutation(len(x))
        found += [_standardised(x)[order], np.repeat(np.arange(len(files)), each)[order]]
    return found[0], found[1], found[2], found[3]


def posed(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Turn every tile by a random number of quarter turns, and mirror every other one at random."""
    turned = [np.rot90(tile, int(rng.integers(4)), axes=(-2, -1)) for tile in x]
    return np.array([tile[..., ::-1] if rng.random() < 1 / 2 else tile for tile in turned])


def textures(seed: int) -> Split:
    """Tiles of three surfaces in random poses; the surface is the class."""
    rng = generator(seed, "textures")
    x, y, x_test, y_test = _parts([f"{name}.png" for name in TEXTURES], TILE, rng)
    return _flat(posed(x, rng)), y, _flat(posed(x_test, rng)), y_test


def upright(seed: int) -> Split:
    """Tiles of a brick wall, half of them turned by a quarter; the class is whether a tile was turned."""
    rng = generator(seed, "upright")
    x, _, x_test, _ = _parts(["brick.png"], TILE, rng)
    found: list[np.ndarray] = []
    for tile_set in (x, x_test):
        y = rng.integers(2, size=len(tile_set))
        turned = np.where(y[:, None, None, None], np.rot90(tile_set, axes=(-2, -1)), tile_set)
        found += [_flat(turned), y]
    return found[0], found[1], found[2], found[3]


def shuffled_colours(seed: int) -> Split:
    """Tiles of photos with their colour channels in random order; the photo is the class."""
    rng = generator(seed, "colours")
    x, y, x_test, y_test = _parts(PHOTOS, COLOUR_TILE, rng)
    x, x_test = (np.array([rng.permutation(tile) for tile in part]) for part in (x, x_test))
    return _flat(x), y, _flat(x_test), y_test


def _flat(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(len(x), -1)


def read_series(name: str) -> tuple[Float[np.ndarray, "n length"], np.ndarray]:
    """Read the series of equal length that sktime carries under a name, training and test files together."""
    values, labels = [], []
    for part in ("TRAIN", "TEST"):
        text = (_folder("sktime") / f"datasets/data/{name}/{name}_{part}.ts").read_text()
        for line in text.partition("@data")[2].split():
            series, _, label = line.rpartition(":")
            values.append([float(value) for value in series.split(",")])
            labels.append(label)
    return np.array(values), np.unique(labels, return_inverse=True)[1]


def series(name: str, seed: int) -> Split:
    """Series as they were measured."""
    return divided(*read_series(name), generator(seed, name))


def rolled_series(name: str, seed: int) -> Split:
    """Series that start at a random place, and go on at the beginning after their end."""
    rng = generator(seed, name, "rolled")
    x, y = read_series(name)
    return divided(np.array([np.roll(row, rng.integers(x.shape[1])) for row in x]), y, rng)


def reversed_series(name: str, seed: int) -> Split:
    """Series, a random half of them read backwards."""
    rng = generator(seed, name, "reversed")
    x, y = read_series(name)
    return divided(np.where(rng.random((len(x), 1)) < 1 / 2, x[:, ::-1], x), y, rng)
