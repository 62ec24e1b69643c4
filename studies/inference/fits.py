"""Fits of our classifier: the posterior, how it was reached, and how accurate the network is."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from invariantnet.choices import BackboneName
from invariantnet.data import Dataset
from invariantnet.estimator import InvariantClassifier
from studies.datasets import BOTH, draw_examples, load, shifted_test_sets

MOST_CONFUSED = 3
"""Pairs of classes that a record names: more share too few errors each."""

QUICK_EXAMPLES, QUICK_EPOCHS = 500, 3
"""Size of a quick fit: seconds, and too few examples for a result."""


@dataclass(frozen=True)
class FitRecipe:
    """One classifier, fitted to n examples of a data set."""

    data: str
    n: int
    seed: int
    truth: str
    """The symmetry that was put into the data."""
    method: Literal["evidence", "heldout"] = "evidence"
    symmetries: tuple[str, ...] = BOTH
    backbone: BackboneName = "auto"
    hidden: int = 100
    epochs: int | None = None
    """Epochs of the final network; None leaves it to the classifier."""
    tolerance: float = 0.0
    without: tuple[int, ...] = ()
    """Digits left out of training and test data."""
    second_opinion: bool = False

    @property
    def variant(self) -> str:
        """The data set without its family, as tables show it."""
        return self.data if self.data.startswith("table") else self.data.partition(":")[2]


Confusion = tuple[str, str, float]
"""Two classes, and the share of all errors that takes one of them for the other."""


@dataclass(frozen=True)
class FitResult:
    """What a fit found."""

    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    log_evidence: tuple[float, ...]
    predicted: tuple[int, ...]
    """Labels predicted after every block."""
    trajectory: tuple[tuple[float, ...], ...]
    """The posterior, from the prior on."""
    chosen: str
    accuracy: dict[str, float]
    """Percent, by test set; `own` is the test part of the data."""
    confused: tuple[Confusion, ...]
    laplace: str | None
    """What Laplace's approximation favours, if it was asked."""
    seconds: tuple[float, ...] | None
    """CPU seconds of the comparison and of Laplace's approximation, if it was asked."""


def quick(recipe: FitRecipe) -> FitRecipe:
    """Make a recipe small."""
    return replace(recipe, n=min(recipe.n, QUICK_EXAMPLES), epochs=QUICK_EPOCHS)


def fit(recipe: FitRecipe) -> tuple[InvariantClassifier, Dataset]:
    """Fit the classifier of a recipe; return it with the data set that its examples come from."""
    data = load(recipe.data, recipe.seed, recipe.without)
    clf = InvariantClassifier(
        recipe.symmetries,
        data.shape,
        recipe.method,
        backbone=recipe.backbone,
        hidden=recipe.hidden,
        epochs=recipe.epochs,
        tolerance=recipe.tolerance,
        second_opinion=recipe.second_opinion,
        random_state=recipe.seed,
    )
    return clf.fit(*draw_examples(data, recipe.n, recipe.seed)), data


def run_fit(recipe: FitRecipe) -> FitResult:
    """Fit and test one classifier.

    Args:
        recipe: The fit.

    Returns:
        The posterior, its path and the test accuracy.
    """
    clf, data = fit(recipe)
    found = clf.posterior_
    test_sets = {"own": (data.x_test, data.y_test)}
    if recipe.data == "mnist:plain":
        test_sets |= shifted_test_sets(data, recipe.seed)
    return FitResult(
        names=tuple(found.names),
        probabilities=tuple(round(p, 6) for p in found.probabilities),
        log_evidence=tuple(round(v, 3) for v in found.log_evidence),
        predicted=tuple(stage.examples for stage in found.race),
        trajectory=_trajectory(clf),
        chosen=clf.symmetry_.name,
        accuracy={name: round(100 * float(clf.score(*arrays)), 3) for name, arrays in test_sets.items()},
        confused=most_confused(data, clf.predict(data.x_test)),
        laplace=found.second_opinion,
        seconds=opinion_seconds(clf),
    )


def most_confused(data: Dataset, predicted: np.ndarray) -> tuple[Confusion, ...]:
    """Name the classes that are most often taken for each other in the test data.

    Args:
        data: The data set.
        predicted: A label for each of its test examples.

    Returns:
        Pairs of classes with their share of all errors, the most frequent first.
    """
    wrong = data.y_test != predicted
    pairs = Counter(tuple(sorted(pair)) for pair in zip(data.y_test[wrong], predicted[wrong], strict=True))
    names = data.class_names
    return tuple(
        (names[a], names[b], round(n / pairs.total(), 4)) for (a, b), n in pairs.most_common(MOST_CONFUSED)
    )


def opinion_seconds(clf: InvariantClassifier) -> tuple[float, ...] | None:
    """CPU seconds of the comparison and of the second opinion, if there was one."""
    asked = clf.posterior_.second_opinion
    return tuple(round(v, 2) for v in clf.cpu_seconds_.values()) if asked else None


def _trajectory(clf: InvariantClassifier) -> tuple[tuple[float, ...], ...]:
    """After every block of a race, or after every epoch where π is learned."""
    if clf.method == "heldout":
        return tuple(tuple(round(p, 5) for p in pi) for pi in clf.path_)
    names = clf.posterior_.names
    rows = [[stage.probabilities[name] for name in names] for stage in clf.posterior_.race]
    return tuple(tuple(round(p, 5) for p in row) for row in [[1 / len(names)] * len(names), *rows])
