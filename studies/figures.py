"""Figures 1 and 2, drawn from flat records."""

from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from studies.plots import COLORS, STYLE, save
from studies.results import Flat

PANELS = {"permuted": "Permuted", "rotated": "Rotated", "flipped": "Flipped", "plain": "Normal"}
ROWS = {"paper": "π of the printed layer", "heldout": "π by held-out data", "evidence": "posterior by evidence"}
OTHER = "#9b89b3"
MANY_HYPOTHESES = 4
MODEL_ORDER = (
    "ours (evidence)",
    "ours (heldout, n = 5,000)",
    "InvariantNet (rot)",
    "InvariantNet (flip)",
    "RotNet",
    "FlipNet",
    "MLP",
)


def figure1(records: Flat, folder: Path) -> list[Path]:
    """Trajectories of π, and below, where there are any, of our posterior: mean and range over seeds."""
    rows = [[r for r in records if r["method"] == m] for m in ("paper", "heldout", "evidence")]
    rows = [row for row in rows if row]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11, 0.3 + 2.5 * len(rows)))
        grid = figure.subplots(len(rows), 4, sharey=True, squeeze=False)
        for row, (axes, found) in enumerate(zip(grid, rows, strict=True)):
            method = found[0]["method"]
            for axis, (data, title) in zip(axes, PANELS.items(), strict=True):
                of_data = [r for r in found if r["data"] == data]
                if method == "evidence":
                    _posterior_path(axis, of_data)
                else:
                    _trajectories(axis, of_data)
                axis.set(ylim=(-0.02, 1.02), xlabel="labels predicted" if method == "evidence" else "epoch")
                if row == 0:
                    axis.set_title(f"{title} data set")
            axes[0].set_ylabel(ROWS[method])
        figure.tight_layout()
        return save(figure, folder, "figure1")


def _posterior_path(axis: Axes, records: Flat) -> None:
    if not records:
        return
    predicted = max((r["predicted"] for r in records), key=len)
    length = len(predicted) + 1
    # A race that was decided early stays where it was decided.
    stacked = np.stack([_padded(np.array(r["trajectory"]), length) for r in records])
    for k, name in enumerate(records[0]["names"]):
        axis.plot(stacked[:, :, k].mean(0), "o-", markersize=2, color=COLORS.get(name, OTHER), label=name)
        low, high = stacked[:, :, k].min(0), stacked[:, :, k].max(0)
        axis.fill_between(range(length), low, high, color=COLORS.get(name, OTHER), alpha=0.2, linewidth=0)
    axis.set_xticks(range(length), ["0", *(f"{n / 1000:.1f}k" for n in predicted)], fontsize=6)
    axis.legend(frameon=False, fontsize=7, loc="center right")


def _padded(path: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([path, path[-1:].repeat(length - len(path), axis=0)])


def _trajectories(axis: Axes, records: Flat) -> None:
    versions = sorted({tuple(r["names"]) for r in records}, reverse=True)
    for style, names in zip(("-", "--"), versions, strict=False):
        runs = [np.array(r["trajectory"]) for r in records if tuple(r["names"]) == names]
        length = max(map(len, runs))
        # A run that stopped early stays where it stopped.
        stacked = np.stack([_padded(t, length) for t in runs])
        for k, name in enumerate(names):
            label = name if len(versions) == 1 or name != "trivial" else f"trivial (beside {names[0]})"
            middle = stacked[:, :, k].mean(0)
            axis.plot(middle, style, color=COLORS.get(name, OTHER), label=label)
            low, high = stacked[:, :, k].min(0), stacked[:, :, k].max(0)
            axis.fill_between(np.arange(length), low, high, color=COLORS.get(name, OTHER), alpha=0.2, linewidth=0)
    if records:
        axis.legend(frameon=False, fontsize=7, loc="center right")


def figure2(records: Flat, folder: Path) -> list[Path]:
    """Box plots of test accuracy."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 3.2))
        axes = figure.subplots(1, 3)
        for axis, data in zip(axes, ("permuted", "rotated", "flipped"), strict=True):
            found = [r for r in records if r["data"] == data]
            models = [m for m in MODEL_ORDER if any(r["model"] == m for r in found)]
            models += sorted({r["model"] for r in found} - set(models))
            boxes = [[r["accuracy"] for r in found if r["model"] == m] for m in models]
            axis.boxplot(boxes, widths=0.6, medianprops={"color": COLORS["rot90"]})
            axis.set_xticks(range(1, len(models) + 1), models, rotation=35, ha="right")
            axis.set_title(f"{PANELS[data]} data set")
            axis.grid(axis="y", alpha=0.3)
        axes[0].set_ylabel("test accuracy, %")
        figure.tight_layout()
        return save(figure, folder, "figure2")


def posterior(records: Flat, folder: Path) -> list[Path]:
    """One panel per data set: the posterior of every seed, one column each."""
    records = [r for r in records if r["method"] == "evidence" and r["backbone"] == "mlp"]
    kinds = list(dict.fromkeys((r["data"], r["n"], tuple(r["groups"]), r["truth"]) for r in records))
    columns, seeds = 4, max(r["seed"] for r in records) + 1
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 0.5 + 1.6 * -(-len(kinds) // columns)), layout="constrained")
        axes = figure.subplots(-(-len(kinds) // columns), columns, sharey=True, squeeze=False)
        for axis in axes.flat[len(kinds) :]:
            axis.set_visible(False)
        for axis, kind in zip(axes.flat, kinds, strict=False):
            found = [r for r in records if (r["data"], r["n"], tuple(r["groups"]), r["truth"]) == kind]
            at, bottom = [r["seed"] for r in found], np.zeros(len(found))
            for k, name in enumerate(found[0]["names"]):
                heights = np.array([r["probabilities"][k] for r in found])
                axis.bar(at, heights, bottom=bottom, color=COLORS.get(name, OTHER))
                bottom += heights
            among = f", among {len(found[0]['names'])}" if len(found[0]["names"]) > MANY_HYPOTHESES else ""
            axis.set_title(f"{kind[0].removeprefix('table:')}, n = {kind[1]:,}{among}: {kind[3]}", fontsize=8)
            axis.set(xticks=[], xlim=(-0.7, seeds - 0.3), yticks=[0, 1])
        shown = {"no symmetry": "trivial", "flips": "flips", "rot90": "rot90", "d4": "d4", "another": ""}
        handles = [Patch(color=COLORS.get(name, OTHER), label=label) for label, name in shown.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(shown), frameon=False, fontsize=8)
        figure.supylabel("posterior, one column per seed", fontsize=8)
        return save(figure, folder, "posterior")


def calibration(records: Flat, folder: Path) -> list[Path]:
    """How often the favourite is right, against the probability it was given."""
    edges = np.array([0.25, 0.5, 0.7, 0.9, 0.99, 1.0001])
    stated = np.array([r["probability"] for r in records])
    right = np.array([r["favourite"] == r["truth"] for r in records], float)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4, 3.6))
        axis = figure.subplots()
        axis.plot([0, 1], [0, 1], "--", color=COLORS["trivial"], linewidth=1)
        for low, high in pairwise(edges):
            inside = (stated >= low) & (stated < high)
            if not inside.any():
                continue
            mean, count = right[inside].mean(), inside.sum()
            error = np.sqrt(max(mean * (1 - mean), 0.25 / count) / count)
            axis.errorbar(stated[inside].mean(), mean, yerr=error, fmt="o", color=COLORS["rot90"], capsize=3)
            beside = (6, -12) if high > 1 else (-14, 5)  # the last two are close to one another
            axis.annotate(f"{count}", (stated[inside].mean(), mean), xytext=beside, textcoords="offset points")
        axis.set(xlabel="stated probability of the favourite", ylabel="share that is right", ylim=(-0.05, 1.05))
        axis.set_xlim(right=1.1)
        figure.tight_layout()
        return save(figure, folder, "calibration")
