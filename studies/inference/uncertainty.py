"""Do networks know what they do not know? Trained on plain images, asked about turned and scrambled ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from invariantnet import metrics
from invariantnet._system.torch_state import seeded
from invariantnet.choices import Uncertainty
from invariantnet.data import Dataset
from invariantnet.data.examples import Examples
from invariantnet.inference.models import MLPS
from invariantnet.likelihoods import Categorical
from invariantnet.nn import Symmetrized, cnn, mlp
from invariantnet.nn.standardize import InputStatistics
from invariantnet.symmetries import lookup as catalogue
from invariantnet.training.config import Training
from invariantnet.training.loop import predict, train
from invariantnet.uncertainty import train_uncertain
from studies.datasets import SHIFTS, SIX_AND_NINE, draw_examples, load, shifted_test_sets
from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown, spread
from studies.framework.records import select

BASELINES = ("MLP", "CNN", "BMLP", "BCNN")
"""Networks of the paper."""
OURS: dict[str, Uncertainty] = {
    "InvariantNet": "none",
    "InvariantNet, ensemble": "ensemble",
    "InvariantNet, Bayes by Backprop": "bbb",
    "InvariantNet, Laplace": "laplace",
}
"""Our network with each way to estimate its uncertainty."""
SHIFT_COLORS = (COLORS["trivial"], COLORS["rot90"], COLORS["flips"])
"""Colours of the test sets."""
DRAWS = 16
"""Draws that predictions of stochastic networks are averaged over."""
SEEDS = 5
"""Networks of each model."""
QUICK_EXAMPLES, QUICK_EPOCHS = 500, 2
"""Size of a quick run: seconds per network."""


@dataclass(frozen=True)
class UncertaintyRecipe:
    """One model, trained on n plain images without 6 and 9."""

    model: str
    seed: int
    n: int = 10_000
    epochs: int = 30


@dataclass(frozen=True)
class Scores:
    """How good predictions are on one test set."""

    accuracy: float
    log_likelihood: float
    """Nats per image."""
    brier: float
    calibration_error: float


@dataclass(frozen=True)
class Record:
    """How good one model's predictions are, and how well its entropy tells scrambled images from plain ones."""

    model: str
    seed: int
    n: int
    plain: Scores
    rotated: Scores
    flipped: Scores
    auroc: float


def recipes(seed: int) -> list[UncertaintyRecipe]:
    """Every model, once."""
    return [UncertaintyRecipe(model, seed) for model in (*BASELINES, *OURS)]


def quick(recipe: UncertaintyRecipe) -> UncertaintyRecipe:
    """Make a recipe small."""
    return replace(recipe, n=QUICK_EXAMPLES, epochs=QUICK_EPOCHS)


def run(recipe: UncertaintyRecipe) -> list[Record]:
    """Train one model and score it on every test set."""
    data = load("mnist:plain", recipe.seed, SIX_AND_NINE)
    x, y = map(torch.from_numpy, draw_examples(data, recipe.n, recipe.seed))
    network = train_model(recipe, data, Examples(x, y))
    tests = shifted_test_sets(data, recipe.seed)
    p = {name: _probabilities(network, images) for name, (images, _) in tests.items()}
    scores = {
        name: Scores(**{score: round(v, 5) for score, v in metrics.scores(p[name], labels).items()})
        for name, (_, labels) in tests.items()
    }
    scrambled = data.x_test[:, np.random.default_rng(recipe.seed).permutation(data.dim)]
    entropies = [metrics.entropy(q) for q in (p["plain"], _probabilities(network, scrambled))]
    return [Record(recipe.model, recipe.seed, recipe.n, **scores, auroc=round(metrics.auroc(*entropies), 5))]


def train_model(recipe: UncertaintyRecipe, data: Dataset, examples: Examples) -> nn.Module:
    """Train the model of a recipe: a baseline as in the paper, or ours, invariant to D4.

    Args:
        recipe: The model.
        data: Says the shape of images and the number of classes.
        examples: What to train on.

    Returns:
        The network.
    """
    classes = len(data.class_names)
    if recipe.model in BASELINES:
        make: Any = mlp if recipe.model.endswith("MLP") else cnn
        bayesian = recipe.model.startswith("B")
        # The baselines stop early, so they may have more epochs.
        config = Training(epochs=2 * recipe.epochs)
        network, _ = train(lambda: make(data.shape, classes, bayesian=bayesian), examples, config, recipe.seed)
        return network
    d4 = catalogue.symmetry("d4", data.shape)
    inputs = InputStatistics.of(examples.x, [d4], data.shape)

    def ours() -> nn.Module:
        standardize = inputs.for_symmetry(d4)
        return Symmetrized(mlp(data.shape, classes), [d4], pool="max", standardize=standardize, outputs=classes)

    network, _ = train_uncertain(
        ours,
        examples,
        replace(MLPS[0].final, epochs=recipe.epochs),
        recipe.seed,
        uncertainty=OURS[recipe.model],
        likelihood=Categorical(),
    )
    return network


def _probabilities(network: nn.Module, images: np.ndarray) -> np.ndarray:
    with seeded(0):
        found = predict(network, torch.from_numpy(images), Categorical(), samples=DRAWS)
    return np.asarray(found.double().exp().numpy())


def table(records: Sequence[Record]) -> str:
    """Accuracy, log likelihood and calibration error on each test set, and the area for scrambled images."""
    rows = []
    for model in dict.fromkeys(r.model for r in records):
        found, cells = select(records, model=model), [model]
        for shift in SHIFTS:
            scores: list[Scores] = [getattr(r, shift) for r in found]
            cells.append(spread([100 * s.accuracy for s in scores]))
            cells.append(f"{np.mean([s.log_likelihood for s in scores]):.3f}")
            cells.append(spread([100 * s.calibration_error for s in scores]))
        rows.append([*cells, f"{np.mean([r.auroc for r in found]):.3f}", str(len(found))])
    columns = [f"{shift}: {score}" for shift in SHIFTS for score in ("accuracy", "nats", "calibration error")]
    return markdown(["model", *columns, "AUROC, scrambled", "seeds"], rows)


def draw(records: Sequence[Record]) -> Figure:
    """Draw log likelihood, calibration error and the area for scrambled images, with every seed."""
    models = list(dict.fromkeys(r.model for r in records))
    figure = Figure(figsize=(10, 3.2))
    axes = figure.subplots(1, 3, sharey=True)
    for row, model in enumerate(models):
        found = select(records, model=model)
        for shift, color, offset in zip(SHIFTS, SHIFT_COLORS, (-0.22, 0.0, 0.22), strict=True):
            scores: list[Scores] = [getattr(r, shift) for r in found]
            style: Any = {"color": color, "markersize": 3, "label": shift if row == 0 else None}
            place = [row + offset] * len(found)
            axes[0].plot([-s.log_likelihood for s in scores], place, "o", **style)
            axes[1].plot([100 * s.calibration_error for s in scores], place, "o", **style)
        axes[2].plot([r.auroc for r in found], [row] * len(found), "o", color="black", markersize=3)
    axes[0].set(xscale="log", xlabel="nats lost per image", ylim=(len(models) - 0.5, -0.5))
    axes[0].set_yticks(range(len(models)), models)
    axes[1].set(xscale="log", xlabel="calibration error, points")
    axes[2].set(xlabel="AUROC, scrambled images", xlim=(None, 1))
    axes[0].legend(frameon=False, fontsize=7, loc="lower right")
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.tight_layout()
    return figure


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    return {
        "examples": Claim(
            f"All networks were trained on {records[0].n:,} plain images without 6 and 9; ours take the maximum "
            "over D4.",
            len({r.n for r in records}) == 1,
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"models": Part(recipes, SEEDS)},
    run=run,
    quick=quick,
    table=table,
    draw=draw,
    claims=claims,
    depends_on=FITS,
)
