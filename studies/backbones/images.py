"""Images for pretrained bodies: digits 5 to 9, and crops of photographs, in poses that are known."""

import numpy as np
from jaxtyping import Float32, Int64

import invariantnet as inv
from invariantnet.symmetries.lookup import symmetry
from studies.truth.problems import generator
from studies.truth.real_sets import read_picture

Images = tuple[Float32[np.ndarray, "n *shape"], Int64[np.ndarray, " n"]]
"""Images and their classes."""

PICTURES = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png")
"""Colour photographs of scikit-image that have an upper side."""
LEARN_FROM = 0.6
"""Share of a photograph, from its left edge, that crops to learn from are cut out of."""
FIRST_DIGIT = 5
"""The body has learned the digits below."""


def new_digits(poses: str, count: int, seed: int) -> tuple[Images, Images]:
    """Digits 5 to 9, each in a random pose of a group, to learn from and to test on.

    Args:
        poses: Name of the group; with quarter turns, 9 is left out: it is a turned 6.
        count: Examples to learn from, and to test on.
        seed: Decides which, and their poses.
    """
    data = inv.datasets.load("mnist:plain")
    rng = generator(seed, poses)
    group = symmetry(poses, shape=(28, 28))
    last = 8 if group.order % 4 == 0 and poses != "flips" else 9
    found = []
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        keep = rng.permutation(np.flatnonzero((y >= FIRST_DIGIT) & (y <= last)))[:count]
        drawn = group.elements.numpy()[rng.integers(group.order, size=len(keep))]
        moved = np.take_along_axis(np.asarray(x)[keep].reshape(len(keep), -1), drawn, axis=1)
        found.append((moved.reshape(-1, 1, 28, 28).astype(np.float32), y[keep].astype(np.int64)))
    return found[0], found[1]


def crops(poses: str, count: int, side: int, seed: int, *, right: bool = False) -> Images:
    """Cut crops out of photographs; which photograph it is, is the class.

    Args:
        poses: `mirrored`: at random mirrored, and upside down, which is another class, so that exactly `hflip` is
            true. `turned`: by random quarter turns. `posed`: mirrored, or upside down, or both, each another
            class, so that nothing is true.
        count: Number of crops.
        side: Their side in pixels.
        seed: Decides where they are cut.
        right: Whether to cut them out of the right part, to test on.
    """
    rng = generator(seed, f"{poses} {right}")
    pictures = [read_picture(file) / 255 for file in PICTURES]
    x, y = np.empty((count, 3, side, side), np.float32), np.empty(count, np.int64)
    for i in range(count):
        k = i % len(pictures)
        height, width = pictures[k].shape[:2]
        border = int(LEARN_FROM * width)
        columns = (border, width - side) if right else (0, border - side)
        row, column = rng.integers(height - side + 1), rng.integers(columns[0], columns[1] + 1)
        crop = pictures[k][row : row + side, column : column + side].transpose(2, 0, 1)
        down, mirrored, turns = rng.integers(2), rng.integers(2), rng.integers(4)
        if poses == "turned":
            x[i], y[i] = np.rot90(crop, int(turns), axes=(1, 2)), k
            continue
        crop = crop[:, ::-1] if down else crop
        x[i] = crop[:, :, ::-1] if mirrored else crop
        y[i] = 4 * k + 2 * down + mirrored if poses == "posed" else 2 * k + down
    return x, y
