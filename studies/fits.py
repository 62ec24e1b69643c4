"""Our answer on a data set: the posterior, how it was reached, and how accurate the network is."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from invariantnet.data import Dataset
from invariantnet.estimator import InvariantClassifier
from studies.recipes import BOTH, file_name
from studies.run import Record, load_without, shifted_test_sets

TABULAR = {"breast_cancer": (6, 426), "wine": (4, 133)}
"""Tables of scikit-learn: side of the square that their columns are padded to, and all rows to learn from."""
MOST_CONFUSED = 3


@dataclass(frozen=True)
class FitRecipe:
    """One classifier, fitted to n examples of a data set."""

    data: str
    n: int
    seed: int
    truth: str
    """The symmetry that was put into the data."""
    method: Literal["evidence", "heldout"] = "evidence"
    groups: tuple[str, ...] = BOTH
    backbone: str = "mlp"
    hidden: int = 100
    epochs: int | None = None
    """By default the classifier's own choice."""
    tolerance: float = 0.0
    without: tuple[int, ...] = ()
    """Classes left out of training and test data."""
    second_opinion: bool = False

    @property
    def key(self) -> str:
        """File name: readable, and different for every difference."""
        return file_name(f"{self.method}-{self.data}-{self.n}-seed{self.seed}", self)


def fitted(recipe: FitRecipe) -> tuple[InvariantClassifier, Dataset]:
    """The classifier of a recipe, and the data it comes from."""
    data = load(recipe.data, recipe.seed, recipe.without)
    clf = InvariantClassifier(
        recipe.groups,
        data.shape,
        recipe.method,
        backbone=recipe.backbone,
        hidden=recipe.hidden,
        epochs=recipe.epochs,
        tolerance=recipe.tolerance,
        second_opinion=recipe.second_opinion,
        random_state=recipe.seed,
    )
    return clf.fit(*learned(recipe, data)), data


def learned(recipe: FitRecipe, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The n examples."""
    keep = np.random.default_rng(recipe.seed).permutation(len(data.x_train))[: recipe.n]
    return data.x_train[keep], data.y_train[keep]


def run_fit(recipe: FitRecipe) -> Record:
    """Fit, and keep the posterior, its path and the test accuracy."""
    clf, data = fitted(recipe)
    found = clf.posterior_
    test_sets = {"own": (data.x_test, data.y_test)}
    if recipe.data == "mnist:plain":
        test_sets |= shifted_test_sets(data, recipe.seed)
    return {
        "names": list(found.names),
        "probabilities": [round(p, 6) for p in found.probabilities],
        "log_evidence": [round(v, 3) for v in found.log_evidence],
        "spread": [round(v, 3) for v in found.log_evidence_spread],
        "dropped": list(found.dropped),
        "predicted": [row["examples"] for row in found.race],
        "trajectory": _trajectory(clf),
        "prices": {price.name: round(price.nats_per_example, 5) for price in found.prices},
        "chosen": clf.symmetry_.name,
        **second_opinion(clf),
        "accuracy": {name: round(100 * float(clf.score(*arrays)), 3) for name, arrays in test_sets.items()},
        "confused": confused(data, clf.predict(data.x_test)),
    }


def confused(data: Dataset, predicted: np.ndarray) -> list[tuple[str, str, float]]:
    """Classes that are most often taken for each other in the test data, with their share of the errors."""
    wrong = data.y_test != predicted
    pairs = Counter(tuple(sorted(pair)) for pair in zip(data.y_test[wrong], predicted[wrong], strict=True))
    names = data.class_names
    return [(names[a], names[b], round(n / pairs.total(), 4)) for (a, b), n in pairs.most_common(MOST_CONFUSED)]


def second_opinion(clf: InvariantClassifier) -> Record:
    """What Laplace's approximation favours, if it was asked, and what both answers cost."""
    found = clf.posterior_.second_opinion
    return {"laplace": found, "seconds": [round(v, 2) for v in clf.cpu_seconds_.values()]} if found else {}


def _trajectory(clf: InvariantClassifier) -> list[list[float]]:
    """The posterior from the prior on: after every block, or, where π is learned, after every epoch."""
    if clf.method == "heldout":
        return [[round(p, 5) for p in pi] for pi in clf.path_]
    names = clf.posterior_.names
    rows = [[row["probabilities"][name] for name in names] for row in clf.posterior_.race]
    return [[round(p, 5) for p in row] for row in [[1 / len(names)] * len(names), *rows]]


def load(name: str, seed: int, without: tuple[int, ...] = ()) -> Dataset:
    """A data set by name; `table:NAME` is a table of scikit-learn, its columns laid out as if they were pixels."""
    kind, _, which = name.partition(":")
    return table_as_images(which, seed) if kind == "table" else load_without(name, seed, without)


def table_as_images(name: str, seed: int) -> Dataset:
    """Standardised columns in a random order, padded with zeros to a square."""
    from sklearn import datasets as tables

    x, y = getattr(tables, f"load_{name}")(return_X_y=True)
    rng = np.random.default_rng(seed)
    x = (x - x.mean(0)) / x.std(0)
    side, _ = TABULAR[name]
    square = np.zeros((len(x), side * side), np.float32)
    square[:, : x.shape[1]] = x[:, rng.permutation(x.shape[1])]
    order = rng.permutation(len(x))
    train, test = order[: -len(x) // 4], order[-len(x) // 4 :]
    labels = y.astype(np.int64)
    return Dataset(
        square[train],
        labels[train],
        square[test],
        labels[test],
        (side, side),
        tuple(str(c) for c in np.unique(labels)),
        f"{name} of scikit-learn, columns in random order as a {side}×{side} image, seed {seed}",
    )
