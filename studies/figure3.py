"""Figure 3: examples of the four data sets, and the orbits of the groups beside them."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from invariantnet.symmetries import lookup as catalogue
from invariantnet import data as datasets
from studies.plots import STYLE, save

TITLES = {"plain": "Normal", "permuted": "Permuted", "rotated": "Rotated", "flipped": "Flipped"}
ORBIT_GROUPS = ("trivial", "rot90", "flips", "d4")
ORBIT_SHAPE = (8, 8)
SIDE = 4


def draw(folder: Path, seed: int = 0) -> list[Path]:
    """Write `figure3.png` and `figure3.svg`."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.6))
        axes = figure.subplots(2, 4)
        for axis, (variant, title) in zip(axes[0], TITLES.items(), strict=True):
            data = datasets.load(f"mnist:{variant}", seed=seed)
            axis.imshow(_mosaic(data.x_test[: SIDE**2], data.shape), cmap="gray_r", vmin=0, vmax=1)
            axis.set_title(f"{title} data set")
        for axis, name in zip(axes[1], ORBIT_GROUPS, strict=True):
            labels = catalogue.symmetry(name, ORBIT_SHAPE).orbits().numpy()
            axis.imshow(_shuffled(labels).reshape(ORBIT_SHAPE), cmap="turbo", interpolation="nearest")
            axis.set_title(f"{name}: {labels.max() + 1} orbits of {labels.size} pixels")
        for axis in axes.flat:
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        figure.tight_layout()
        return save(figure, folder, "figure3")


def _mosaic(images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    height, width = shape
    tiles = np.full((SIDE, height + 2, SIDE, width + 2), 0.12, np.float32)
    tiles[:, 1:-1, :, 1:-1] = images.reshape(SIDE, SIDE, height, width).transpose(0, 2, 1, 3)
    return tiles.reshape(SIDE * (height + 2), SIDE * (width + 2))


def _shuffled(labels: np.ndarray) -> np.ndarray:
    """Spread the colours, so that neighbouring orbits are told apart."""
    return np.random.default_rng(0).permutation(labels.max() + 1)[labels]
