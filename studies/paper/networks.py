"""The networks of the paper: how each is built, trained and tested."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from invariantnet._system.torch_state import seeded
from invariantnet.choices import Basis, Draw, Identity, Parametrisation
from invariantnet.data import Dataset
from invariantnet.data.examples import Examples
from invariantnet.nn import cnn, invariant_net, mlp
from invariantnet.priors import Dirichlet, as_prior
from invariantnet.symmetries import lookup as catalogue
from invariantnet.training.config import Training
from invariantnet.training.loop import log_probabilities, train
from studies.datasets import BOTH, draw_examples, load, shifted_test_sets

VERSIONS = {"rot": ("rot90",), "flip": ("flips",), "both": BOTH}
"""The candidates of InvariantNet (rot), (flip) and (both)."""

QUICK_EXAMPLES, QUICK_EPOCHS = 4000, 6
"""Size of a quick run: seconds per network, and π has started to move."""


@dataclass(frozen=True)
class Reading:
    """How the text is read where it leaves something open; the defaults are what is printed."""

    basis: Basis = "orthonormal"
    draw: Draw = "batch"
    hard: bool = False
    identity: Identity = "paper"
    prior_per_example: bool = False
    """Count the prior once per example, instead of once."""
    parametrisation: Parametrisation = "simplex"
    scheme: tuple[float, ...] | None = None
    """A fixed π, instead of a learned one."""


PRINTED = Reading()
"""The layer as printed."""


@dataclass(frozen=True)
class NetworkRecipe:
    """One network, trained on one data set with one seed."""

    method: Literal["paper", "baseline"]
    model: str
    data: str
    seed: int
    symmetries: tuple[str, ...] = ()
    hidden: int = 100
    reading: Reading = PRINTED
    without: tuple[int, ...] = ()
    """Digits left out of training and test data."""
    examples: int | None = None
    """Number of examples to train on; None for all."""
    epochs: int = 60

    @property
    def variant(self) -> str:
        """The data set without its family: permuted, rotated, flipped or plain."""
        return self.data.partition(":")[2]


@dataclass(frozen=True)
class NetworkResult:
    """What became of a network."""

    accuracy: dict[str, float]
    """Percent, by test set; `own` is the test part of the data it was trained on."""
    names: tuple[str, ...]
    """What each entry of π stands for."""
    trajectory: tuple[tuple[float, ...], ...]
    """π before training and after every epoch."""
    pi: tuple[float, ...] | None
    """π of the epoch whose weights were kept; None if π is not learned."""


def invariant_net_recipe(version: str, data: str, seed: int) -> NetworkRecipe:
    """InvariantNet as printed, with rotations, flips or both as candidates."""
    return NetworkRecipe("paper", f"InvariantNet ({version})", data, seed, VERSIONS[version])


def quick(recipe: NetworkRecipe) -> NetworkRecipe:
    """Make a recipe small."""
    return replace(recipe, examples=QUICK_EXAMPLES, epochs=min(recipe.epochs, QUICK_EPOCHS))


def run_network(recipe: NetworkRecipe) -> NetworkResult:
    """Train and test one network.

    Args:
        recipe: The network.

    Returns:
        Its accuracies, and the path of π.
    """
    data = load(recipe.data, recipe.seed, recipe.without)
    x, y = map(torch.from_numpy, draw_examples(data, recipe.examples, recipe.seed))
    config = Training(epochs=recipe.epochs)
    network, history = train(lambda: build(recipe, data, len(x)), Examples(x, y), config, recipe.seed)
    test_sets = {"own": (data.x_test, data.y_test)}
    if recipe.data == "mnist:plain":
        test_sets = shifted_test_sets(data, recipe.seed)
    path = tuple(tuple(round(p, 5) for p in pi) for pi in history.schemes)
    return NetworkResult(
        {name: accuracy(network, *arrays, config.samples) for name, arrays in test_sets.items()},
        tuple(history.scheme_names),
        path,
        path[history.best_epoch] if path else None,
    )


def build(recipe: NetworkRecipe, data: Dataset, examples: int) -> nn.Module:
    """Build the network of a recipe.

    Args:
        recipe: The recipe.
        data: What it is trained on.
        examples: Number of training examples, which weighs a prior that counts once per example.

    Returns:
        The untrained network.
    """
    classes = len(data.class_names)
    bayesian = recipe.model in ("BMLP", "BCNN")
    if recipe.model in ("MLP", "BMLP"):
        return mlp(data.shape, classes, recipe.hidden, bayesian=bayesian)
    if recipe.model in ("CNN", "BCNN"):
        return cnn(data.shape, classes, recipe.hidden, bayesian=bayesian)
    groups = [catalogue.symmetry(name, data.shape) for name in recipe.symmetries]
    reading = recipe.reading
    options: dict[str, Any] = {
        name: getattr(reading, name) for name in ("basis", "draw", "hard", "identity", "scheme")
    }
    prior = Dirichlet(as_prior(None, len(groups) + 1).alpha, reading.parametrisation)
    weight = float(examples) if reading.prior_per_example else 1.0
    return invariant_net(groups, classes, recipe.hidden, prior=prior, prior_weight=weight, **options)


def accuracy(network: nn.Module, x: np.ndarray, y: np.ndarray, samples: int) -> float:
    """Test accuracy in percent; the draws of stochastic networks are the same every time."""
    with seeded(0):
        predicted = log_probabilities(network, torch.from_numpy(x), samples=samples).argmax(-1)
    return round(100 * float((predicted == torch.from_numpy(y)).float().mean()), 3)
