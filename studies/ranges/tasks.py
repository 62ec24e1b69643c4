"""Digits moved at random within a known range: the tasks of LILA (Immer et al. 2022), with our own images."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64

from invariantnet.data import load


@dataclass(frozen=True)
class Task:
    """What is done to the images, and which family is asked about.

    Args:
        name: Name in tables.
        data: Name of the data.
        family: Family of ranges that is compared with no symmetry.
        truth: Largest value by which images were moved; that of no range for plain images.
    """

    name: str
    data: str
    family: str
    truth: float

    @property
    def is_plain(self) -> bool:
        """Whether images were not moved."""
        return self.data == "mnist"


TASKS = {
    task.name: task
    for task in (
        Task("turned by up to 90°", "mnist:rotation:90", "rotation", 90.0),
        Task("turned by up to 180°", "mnist:rotation:180", "rotation", 180.0),
        Task("shifted by up to 8 pixels", "mnist:translation:8", "translation", 8.0),
        Task("scaled by up to a factor of 2", "mnist:scaling:2", "scaling", 2.0),
        Task("plain, rotation", "mnist", "rotation", 0.0),
        Task("plain, translation", "mnist", "translation", 0.0),
        Task("plain, scaling", "mnist", "scaling", 1.0),
    )
}
"""All tasks, by name."""

SHAPE = (28, 28)
"""Shape of one image."""
TESTED = 2000
"""Test images: their standard error is at most 1.1 percentage points."""


@dataclass(frozen=True, eq=False)
class Split:
    """Images to learn from and to test on."""

    x: Float32[np.ndarray, "n dim"]
    y: Int64[np.ndarray, " n"]
    x_test: Float32[np.ndarray, "m dim"]
    y_test: Int64[np.ndarray, " m"]


def split(name: str, n: int, seed: int) -> Split:
    """Draw n images to learn from; the test images are the first ones, moved in the same way.

    Args:
        name: Name of the data.
        n: Images to learn from.
        seed: Decides which images, and how they are moved.
    """
    data = load(name, seed=seed)
    keep = np.random.default_rng([seed, n]).permutation(len(data.x_train))[:n]
    return Split(data.x_train[keep], data.y_train[keep], data.x_test[:TESTED], data.y_test[:TESTED])
