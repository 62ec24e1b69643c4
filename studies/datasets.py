"""The data that studies train and test on."""

import functools

import numpy as np
from sklearn import datasets as tables

from invariantnet import data as datasets
from invariantnet.data import Dataset
from invariantnet.symmetries import lookup as catalogue

BOTH = ("rot90", "flips")
"""The paper's two symmetries."""

SIX_AND_NINE = (6, 9)
"""Digits that a half turn exchanges."""

SHIFTS = ("plain", "rotated", "flipped")
"""Test sets of a network that was trained on plain images."""

TABLES = {"breast_cancer": 6, "wine": 4}
"""Tables of scikit-learn, and the side of the square that their columns are padded to."""

Arrays = tuple[np.ndarray, np.ndarray]
"""Inputs and labels."""


def load(name: str, seed: int, without: tuple[int, ...] = ()) -> Dataset:
    """Load a data set.

    Args:
        name: As for `invariantnet fit`; or `table:NAME`, a table of scikit-learn laid out as if it were an image.
        seed: Decides poses, permutations and the test part of a table.
        without: Digits to leave out.

    Returns:
        The data set.
    """
    kind, _, which = name.partition(":")
    return table_as_images(which, seed) if kind == "table" else _load_images(name, seed, without)


@functools.lru_cache(maxsize=3)
def _load_images(name: str, seed: int, without: tuple[int, ...]) -> Dataset:
    data = datasets.load(name, seed=seed)
    return datasets.without_classes(data, [data.class_names[label] for label in without]) if without else data


def draw_examples(data: Dataset, n: int | None, seed: int) -> Arrays:
    """Draw n examples to train on, or all of them in random order."""
    keep = np.random.default_rng(seed).permutation(len(data.x_train))[:n]
    return data.x_train[keep], data.y_train[keep]


def shifted_test_sets(data: Dataset, seed: int) -> dict[str, Arrays]:
    """Plain, rotated and flipped test images, in the reading of the paper that fits its baselines.

    Rotated: uniform among the four quarter turns. Flipped: uniform among no flip, a horizontal and a vertical one.

    Args:
        data: A data set of plain images.
        seed: Decides the pose of every image.

    Returns:
        A test set for each of `SHIFTS`.
    """
    rng = np.random.default_rng(seed)
    turns = catalogue.symmetry("rot90", data.shape).elements.numpy()
    # `mnist:rotated` draws the poses of its training images first; the test images get the same poses here.
    rng.integers(len(turns), size=len(data.x_train))
    rotated = datasets.transformed(data.x_test, turns, rng.integers(len(turns), size=len(data.x_test)))
    flips = [catalogue.symmetry(name, data.shape).generators[0] for name in ("hflip", "vflip")]
    poses = np.stack([np.arange(data.dim), *flips])
    drawn = np.random.default_rng(seed).integers(len(poses), size=len(data.x_test))
    flipped = datasets.transformed(data.x_test, poses, drawn)
    return {name: (x, data.y_test) for name, x in zip(SHIFTS, (data.x_test, rotated, flipped), strict=True)}


def table_as_images(name: str, seed: int) -> Dataset:
    """Lay out a table of scikit-learn as images: standardised columns in random order, padded with zeros.

    Args:
        name: One of `TABLES`.
        seed: Decides the order of the columns, and which quarter of the rows is for testing.

    Returns:
        Data that has no symmetry of images.
    """
    x, y = getattr(tables, f"load_{name}")(return_X_y=True)
    rng = np.random.default_rng(seed)
    x = (x - x.mean(0)) / x.std(0)
    side = TABLES[name]
    square = np.zeros((len(x), side * side), np.float32)
    square[:, : x.shape[1]] = x[:, rng.permutation(x.shape[1])]
    order = rng.permutation(len(x))
    train, test = order[: -len(x) // 4], order[-len(x) // 4 :]
    labels = y.astype(np.int64)
    return Dataset(
        square[train],
        labels[train],
        square[test],
        labels[test],
        (side, side),
        tuple(str(c) for c in np.unique(labels)),
        f"{name} of scikit-learn, columns in random order as a {side}×{side} image, seed {seed}",
    )
