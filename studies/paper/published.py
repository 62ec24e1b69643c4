"""What the paper prints, for comparison."""

TABLE_1: dict[str, dict[str, tuple[float, float]]] = {
    "InvNet": {"plain": (94.2, 0.2), "rotated": (58.2, 1.3), "flipped": (72.3, 1.5)},
    "CNN": {"plain": (99.0, 0.2), "rotated": (47.2, 1.1), "flipped": (63.9, 1.0)},
    "MLP": {"plain": (98.3, 0.3), "rotated": (43.3, 0.6), "flipped": (64.1, 0.4)},
    "BMLP": {"plain": (97.4, 0.2), "rotated": (43.1, 0.9), "flipped": (63.5, 0.8)},
    "BCNN": {"plain": (98.6, 0.1), "rotated": (47.0, 0.5), "flipped": (63.1, 0.4)},
}
"""Mean and standard deviation of the accuracy, in percent."""

FIGURE_1 = {
    "permuted": "no symmetry",
    "rotated": "rotations",
    "flipped": "flips",
    "plain": "rotations and flips about equally",
}
"""Where π converges, according to Figure 1 and its caption."""

CLOSE = 1.5
"""Percentage points within which a number counts as reproduced: about three standard deviations over seeds."""

SEEDS = 5
"""The reproduction repeats every network of the paper with the seeds 0 to 4."""


def cell(model: str, shift: str) -> str:
    """Format a number of Table 1, or a dash if the paper has none."""
    return "{:.1f} ± {:.1f}".format(*TABLE_1[model][shift]) if model in TABLE_1 else "–"
