"""How many examples does it take? Learning curves on rotated images, the group not told to us."""

from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure

from invariantnet.symmetries import lookup as catalogue
from invariantnet import metrics
from invariantnet.estimator import FINAL, InvariantClassifier
from studies.plots import COLORS, STYLE, save
from studies.recipes import BOTH, file_name
from studies.results import Flat
from studies.run import Record, load_without
from studies.tables import markdown
from invariantnet.likelihoods import Categorical
from invariantnet.nn import convnet, mlp
from invariantnet.training.loop import predict, train

SIZES = (100, 300, 1000, 3000, 10_000, 60_000)
PLENTY, PLENTY_SEEDS = 10_000, 1
"""With more examples than this, so many of the seeds."""
MODELS = {
    "InvariantNet": COLORS["rot90"],
    "MLP, augmented by hand": COLORS["d4"],
    "CNN": COLORS["flips"],
    "MLP": COLORS["trivial"],
}
LEVEL = 0.9


@dataclass(frozen=True)
class LearningRecipe:
    """One model, trained on n rotated images."""

    model: str
    n: int
    seed: int

    @property
    def key(self) -> str:
        """File name: readable, and different for every difference."""
        return file_name(f"learning-{self.model}-{self.n}-seed{self.seed}", self)


def learning(seed: int) -> list[LearningRecipe]:
    """Every model and size; the largest sizes with fewer seeds."""
    sizes = [n for n in SIZES if seed < PLENTY_SEEDS or n <= PLENTY]
    return [LearningRecipe(model, n, seed) for n in sizes for model in MODELS]


def run_learning(recipe: LearningRecipe) -> Record:
    """Train, and score on the test set, whose images are rotated too."""
    data = load_without("mnist:rotated", recipe.seed, ())
    keep = np.random.default_rng(recipe.seed).permutation(len(data.x_train))[: recipe.n]
    x, y = data.x_train[keep], data.y_train[keep]
    convolutions = recipe.model == "CNN"
    epochs = 12 if convolutions else 50 if recipe.n <= PLENTY else 20
    chosen = None
    if recipe.model == "InvariantNet":
        brief = (
            None if recipe.n <= PLENTY else epochs
        )  # with few examples the classifier makes enough steps itself
        clf = InvariantClassifier(BOTH, data.shape, epochs=brief, random_state=recipe.seed).fit(x, y)
        chosen, known = clf.symmetry_.name, np.searchsorted(clf.classes_, data.y_test)
        p = clf.predict_proba(data.x_test).astype(float)
    else:
        inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
        if recipe.model.endswith("by hand"):
            copies = catalogue.symmetry("rot90", data.shape).act(inputs)
            inputs, labels = copies.flatten(0, 1), labels.repeat_interleave(copies.shape[1])
            epochs = -(-epochs // 2)
        make = convnet if convolutions else mlp
        network, _ = train(
            lambda: make(data.shape, len(data.class_names)),
            inputs,
            labels,
            replace(FINAL, epochs=epochs),
            recipe.seed,
        )
        p = predict(network, torch.from_numpy(data.x_test), Categorical()).double().exp().numpy()
        known = data.y_test
    return {**{k: round(v, 5) for k, v in metrics.scores(p, known).items()}, "chosen": chosen}


def flatten(recipes: list[LearningRecipe], records: list[Record]) -> Flat:
    """The committed fields."""
    fields = ("accuracy", "log_likelihood", "calibration_error", "chosen")
    return [
        {"model": r.model, "n": r.n, "seed": r.seed, **{name: record[name] for name in fields}}
        for r, record in zip(recipes, records, strict=True)
    ]


def curve(records: Flat, model: str, score: str) -> tuple[list[int], list[float]]:
    """Means over seeds, by number of examples."""
    sizes = sorted({r["n"] for r in records if r["model"] == model})
    return sizes, [
        float(np.mean([r[score] for r in records if r["model"] == model and r["n"] == n])) for n in sizes
    ]


def reaches(records: Flat, model: str, level: float = LEVEL) -> float:
    """Examples with which the model reaches the level, between sizes by a straight line on log axes."""
    sizes, accuracy = curve(records, model, "accuracy")
    for i, value in enumerate(accuracy):
        if value >= level:
            if i == 0:
                return float(sizes[0])
            share = (level - accuracy[i - 1]) / (value - accuracy[i - 1])
            return float(np.exp(np.interp(share, [0, 1], np.log(sizes[i - 1 : i + 1]))))
    return float("inf")


def table(records: Flat) -> str:
    """Accuracy by size, and the number of examples for 90 %."""
    sizes = sorted({r["n"] for r in records})
    rows = []
    for model in (m for m in MODELS if any(r["model"] == m for r in records)):
        by_size = dict(zip(*curve(records, model, "accuracy"), strict=True))
        needed = reaches(records, model)
        words = "–" if not np.isfinite(needed) else f"{float(f'{needed:.2g}'):,.0f}"
        rows.append([model, *(f"{100 * by_size[n]:.1f}" if n in by_size else "–" for n in sizes), words])
    return markdown(["model", *(f"n = {n:,}" for n in sizes), f"n for {LEVEL:.0%}"], rows)


def draw(records: Flat, folder: Path) -> list[Path]:
    """Accuracy and log likelihood against the number of examples."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, 3.4))
        axes = figure.subplots(1, 2)
        for model, color in MODELS.items():
            if not any(r["model"] == model for r in records):
                continue
            for axis, score in zip(axes, ("accuracy", "log_likelihood"), strict=True):
                axis.plot(*curve(records, model, score), "o-", markersize=3, color=color, label=model)
                points = [(r["n"], r[score]) for r in records if r["model"] == model]
                axis.plot(*zip(*points, strict=True), ".", markersize=2, color=color, alpha=0.5)
        axes[0].axhline(LEVEL, linestyle=":", color="black", linewidth=0.8)
        axes[0].set(ylabel="test accuracy")
        axes[1].set(ylabel="test log likelihood, nats per image", ylim=(-1.5, 0.02))
        axes[0].legend(frameon=False, fontsize=7, loc="lower right")
        for axis in axes:
            axis.set(xscale="log", xlabel="training examples, each in one pose")
            axis.grid(alpha=0.3)
        figure.tight_layout()
        return save(figure, folder, "learning")
