"""Figures 1 and 2, drawn from flat records."""

from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from invariantnet.experiments.plots import COLORS, STYLE, save
from invariantnet.experiments.results import Flat

PANELS = {"permuted": "Permuted", "rotated": "Rotated", "flipped": "Flipped", "plain": "Normal"}
MODEL_ORDER = ("InvariantNet (rot)", "InvariantNet (flip)", "RotNet", "FlipNet", "MLP")


def figure1(records: Flat, folder: Path) -> list[Path]:
    """Trajectories of π: mean over seeds, and the band between the lowest and the highest."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11, 2.7))
        axes = figure.subplots(1, 4, sharey=True)
        for axis, (data, title) in zip(axes, PANELS.items(), strict=True):
            _trajectories(axis, [r for r in records if r["data"] == data])
            axis.set(title=f"{title} data set", xlabel="epoch", ylim=(-0.02, 1.02))
        axes[0].set_ylabel("estimate of π")
        figure.tight_layout()
        return save(figure, folder, "figure1")


def _trajectories(axis: Axes, records: Flat) -> None:
    versions = sorted({tuple(r["names"]) for r in records}, reverse=True)
    for style, names in zip(("-", "--"), versions, strict=False):
        runs = [np.array(r["trajectory"]) for r in records if tuple(r["names"]) == names]
        length = max(map(len, runs))
        # A run that stopped early stays where it stopped.
        stacked = np.stack([np.concatenate([t, t[-1:].repeat(length - len(t), axis=0)]) for t in runs])
        for k, name in enumerate(names):
            label = name if len(versions) == 1 or name != "trivial" else f"trivial (beside {names[0]})"
            middle = stacked[:, :, k].mean(0)
            axis.plot(middle, style, color=COLORS[name], label=label)
            low, high = stacked[:, :, k].min(0), stacked[:, :, k].max(0)
            axis.fill_between(np.arange(length), low, high, color=COLORS[name], alpha=0.2, linewidth=0)
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
    kinds = list(dict.fromkeys((r["data"], r["n"], tuple(r["groups"]), r["truth"]) for r in records))
    columns = 4
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11, 2.1 * -(-len(kinds) // columns)))
        axes = figure.subplots(-(-len(kinds) // columns), columns, sharey=True, squeeze=False)
        for axis in axes.flat[len(kinds) :]:
            axis.set_visible(False)
        for axis, kind in zip(axes.flat, kinds, strict=False):
            found = [r for r in records if (r["data"], r["n"], tuple(r["groups"]), r["truth"]) == kind]
            bottom = np.zeros(len(found))
            for k, name in enumerate(found[0]["names"]):
                heights = np.array([r["probabilities"][k] for r in found])
                axis.bar(range(len(found)), heights, bottom=bottom, color=COLORS.get(name, "#9b89b3"), label=name)
                bottom += heights
            axis.set_title(f"{kind[0]}, n = {kind[1]:,}: {kind[3]}", fontsize=8)
            axis.set_xticks([])
            axis.legend(frameon=False, fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.supxlabel("one column per seed; the title names the symmetry that is there", fontsize=8)
        figure.tight_layout()
        return save(figure, folder, "posterior")


def calibration(records: Flat, folder: Path) -> list[Path]:
    """How often the favourite is right, against the probability it was given."""
    edges = np.array([0.25, 0.5, 0.7, 0.9, 0.99, 1.0001])
    stated = np.array([r["probability"] for r in records])
    right = np.array([r["favourite"] == r["truth"] for r in records], float)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4, 3.6))
        axis = figure.subplots()
        axis.plot([0.2, 1], [0.2, 1], "--", color=COLORS["trivial"], linewidth=1)
        for low, high in pairwise(edges):
            inside = (stated >= low) & (stated < high)
            if not inside.any():
                continue
            mean, count = right[inside].mean(), inside.sum()
            error = np.sqrt(max(mean * (1 - mean), 0.25 / count) / count)
            axis.errorbar(stated[inside].mean(), mean, yerr=error, fmt="o", color=COLORS["rot90"], capsize=3)
            axis.annotate(f"{count}", (stated[inside].mean(), mean), xytext=(-14, 5), textcoords="offset points")
        axis.set(xlabel="stated probability of the favourite", ylabel="share that is right", ylim=(0.2, 1.05))
        figure.tight_layout()
        return save(figure, folder, "calibration")
