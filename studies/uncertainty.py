"""Do networks know what they do not know? Trained on plain images, asked about turned and scrambled ones."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from invariantnet.symmetries import lookup as catalogue
from invariantnet import metrics
from invariantnet.estimator import FINAL
from studies.plots import COLORS, STYLE, save
from studies.recipes import SIX_AND_NINE, file_name
from studies.results import Flat
from studies.run import Record, load_without, shifted_test_sets
from studies.tables import markdown, spread
from invariantnet.choices import Uncertainty
from invariantnet.uncertainty import train_uncertain
from invariantnet.likelihoods import Categorical
from invariantnet.nn import Symmetrized, cnn, mlp
from invariantnet.training.config import Training
from invariantnet.training.loop import predict, train
from invariantnet._system.torch_state import seeded

BASELINES = ("MLP", "CNN", "BMLP", "BCNN")
OURS: dict[str, Uncertainty] = {
    "InvariantNet": "none",
    "InvariantNet, ensemble": "ensemble",
    "InvariantNet, Bayes by Backprop": "bbb",
    "InvariantNet, Laplace": "laplace",
}
SETS = ("plain", "rotated", "flipped")
SET_COLORS = (COLORS["trivial"], COLORS["rot90"], COLORS["flips"])
SCORES = ("accuracy", "log_likelihood", "brier", "calibration_error")
SAMPLES = 16


@dataclass(frozen=True)
class UncertaintyRecipe:
    """One model, trained on n plain images without 6 and 9."""

    model: str
    seed: int
    n: int = 10_000
    epochs: int = 30

    @property
    def key(self) -> str:
        """File name: readable, and different for every difference."""
        return file_name(f"uncertainty-{self.model}-seed{self.seed}", self)


def uncertainty(seed: int) -> list[UncertaintyRecipe]:
    """Every model, once."""
    return [UncertaintyRecipe(model, seed) for model in (*BASELINES, *OURS)]


def run_uncertainty(recipe: UncertaintyRecipe) -> Record:
    """Train one model; its scores on every test set, and how well its entropy tells scrambled images."""
    data = load_without("mnist:plain", recipe.seed, SIX_AND_NINE)
    keep = np.random.default_rng(recipe.seed).permutation(len(data.x_train))[: recipe.n]
    x, y = torch.from_numpy(data.x_train[keep]), torch.from_numpy(data.y_train[keep])
    network = _trained(recipe, data.shape, len(data.class_names), x, y)
    tests = shifted_test_sets(data, recipe.seed)
    p = {name: _probabilities(network, images) for name, (images, _) in tests.items()}
    scrambled = data.x_test[:, np.random.default_rng(recipe.seed).permutation(data.dim)]
    return {
        "scores": {
            name: {k: round(v, 5) for k, v in metrics.scores(p[name], labels).items()}
            for name, (_, labels) in tests.items()
        },
        "auroc": round(
            metrics.auroc(metrics.entropy(p["plain"]), metrics.entropy(_probabilities(network, scrambled))), 5
        ),
    }


def _trained(
    recipe: UncertaintyRecipe, shape: tuple[int, ...], classes: int, x: torch.Tensor, y: torch.Tensor
) -> nn.Module:
    if recipe.model in BASELINES:
        make: Any = mlp if recipe.model.endswith("MLP") else cnn
        bayesian = recipe.model.startswith("B")
        network, _ = train(
            lambda: make(shape, classes, bayesian=bayesian), x, y, Training(epochs=2 * recipe.epochs), recipe.seed
        )
        return network
    d4 = catalogue.symmetry("d4", shape)
    network, _ = train_uncertain(
        lambda: Symmetrized(mlp(shape, classes), [d4], pool="max"),
        x,
        y,
        replace(FINAL, epochs=recipe.epochs),
        recipe.seed,
        uncertainty=OURS[recipe.model],
        likelihood=Categorical(),
    )
    return network


def _probabilities(network: nn.Module, images: np.ndarray) -> np.ndarray:
    with seeded(0):
        found = predict(network, torch.from_numpy(images), Categorical(), samples=SAMPLES)
    return found.double().exp().numpy()


def flatten(recipes: list[UncertaintyRecipe], records: list[Record]) -> Flat:
    """The committed fields."""
    return [
        {"model": r.model, "seed": r.seed, "n": r.n, **record["scores"], "auroc": record["auroc"]}
        for r, record in zip(recipes, records, strict=True)
    ]


def table(records: Flat) -> str:
    """Log likelihood and calibration error on each test set, accuracy, and the area for scrambled images."""
    rows = []
    for model in dict.fromkeys(r["model"] for r in records):
        found = [r for r in records if r["model"] == model]
        cells = [model]
        for name in SETS:
            cells.append(spread([100 * r[name]["accuracy"] for r in found]))
            cells.append(f"{np.mean([r[name]['log_likelihood'] for r in found]):.3f}")
            cells.append(spread([100 * r[name]["calibration_error"] for r in found]))
        rows.append([*cells, f"{np.mean([r['auroc'] for r in found]):.3f}", str(len(found))])
    header = ["model", *(f"{name}: {what}" for name in SETS for what in ("accuracy", "nats", "calibration error"))]
    return markdown([*header, "AUROC, scrambled", "seeds"], rows)


def draw(records: Flat, folder: Path) -> list[Path]:
    """Every seed's log likelihood and calibration error on each test set, and the area for scrambled images."""
    models = list(dict.fromkeys(r["model"] for r in records))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 3.2))
        axes = figure.subplots(1, 3, sharey=True)
        for row, model in enumerate(models):
            found = [r for r in records if r["model"] == model]
            for name, color, shift in zip(SETS, SET_COLORS, (-0.22, 0.0, 0.22), strict=True):
                style = {"color": color, "markersize": 3, "label": name if row == 0 else None}
                place = [row + shift] * len(found)
                axes[0].plot([-r[name]["log_likelihood"] for r in found], place, "o", **style)
                axes[1].plot([100 * r[name]["calibration_error"] for r in found], place, "o", **style)
            axes[2].plot([r["auroc"] for r in found], [row] * len(found), "o", color="black", markersize=3)
        axes[0].set(xscale="log", xlabel="nats lost per image", ylim=(len(models) - 0.5, -0.5))
        axes[0].set_yticks(range(len(models)), models)
        axes[1].set(xscale="log", xlabel="calibration error, points")
        axes[2].set(xlabel="AUROC, scrambled images", xlim=(None, 1))
        axes[0].legend(frameon=False, fontsize=7, loc="lower right")
        for axis in axes:
            axis.grid(alpha=0.3)
        figure.tight_layout()
        return save(figure, folder, "uncertainty")
