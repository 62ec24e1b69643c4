"""Figure 3: what do the four data sets look like, and what are the orbits of the symmetries?"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from invariantnet import data as datasets
from invariantnet.symmetries import lookup as catalogue
from studies.framework import Study

TITLES = {"plain": "Normal", "permuted": "Permuted", "rotated": "Rotated", "flipped": "Flipped"}
"""Titles of the panels, in the paper's words."""

ORBIT_SYMMETRIES = ("trivial", "rot90", "flips", "d4")
"""Symmetries whose orbits are drawn."""
ORBIT_SHAPE = (8, 8)
"""Small enough that single pixels can be seen."""

SIDE = 4
"""Images per row and column of a panel."""

GREY = 0.12
"""Shade of the gaps between images."""


def draw(records: Sequence[object]) -> Figure:
    """Draw examples of the data sets above, and the orbits of the symmetries below; there are no records."""
    figure = Figure(figsize=(8.4, 4.6))
    axes = figure.subplots(2, 4)
    for axis, (variant, title) in zip(axes[0], TITLES.items(), strict=True):
        data = datasets.load(f"mnist:{variant}", seed=0)
        axis.imshow(_mosaic(data.x_test[: SIDE**2], data.shape), cmap="gray_r", vmin=0, vmax=1)
        axis.set_title(f"{title} data set")
    for axis, name in zip(axes[1], ORBIT_SYMMETRIES, strict=True):
        labels = catalogue.symmetry(name, ORBIT_SHAPE).orbits().numpy()
        axis.imshow(_shuffled(labels).reshape(ORBIT_SHAPE), cmap="turbo", interpolation="nearest")
        axis.set_title(f"{name}: {labels.max() + 1} orbits of {labels.size} pixels")
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    figure.tight_layout()
    return figure


def _mosaic(images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    height, width = shape
    tiles = np.full((SIDE, height + 2, SIDE, width + 2), GREY, np.float32)
    tiles[:, 1:-1, :, 1:-1] = images.reshape(SIDE, SIDE, height, width).transpose(0, 2, 1, 3)
    return tiles.reshape(SIDE * (height + 2), SIDE * (width + 2))


def _shuffled(labels: np.ndarray) -> np.ndarray:
    """Give neighbouring orbits colours that are far apart."""
    return np.random.default_rng(0).permutation(labels.max() + 1)[labels]


STUDY = Study[Any, Any, Any](file=__file__, question=__doc__, draw=draw)
