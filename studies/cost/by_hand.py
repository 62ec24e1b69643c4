"""What does the same choice cost by hand, and how good is a network that is told the symmetry?

All get the same 5,000 rotated MNIST images and one thread. Ours: the MLPs of the package compete. By hand:
scikit-learn's MLP of the same width is trained on every pose of the training part under each of four
augmentations, with early stopping; the augmentation that does best on a fifth kept aside is used to train on
everything. Told: e2cnn with C4, an equivariant convolutional network, in an environment of its own
(`studies/others/e2cnn_turns.py` says how to make it):

    E2CNN_PYTHON=E2CNN/bin/python python -m studies run by_hand
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from sklearn.neural_network import MLPClassifier

import invariantnet as inv
from studies.datasets import BOTH, Arrays, draw_examples, load
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.framework.records import select
from studies.others.e2cnn_turns import lacks_e2cnn, train_elsewhere

Method = Literal["ours", "by hand", "e2cnn, C4 given"]
AUGMENTATIONS = ("trivial", "flips", "rot90", "d4")
"""What someone would try by hand: no augmentation, and three symmetries of images."""
EXAMPLES, QUICK_EXAMPLES, SEEDS = 5000, 300, 3
"""Images to train on, and seeds: each takes half a minute."""
ASIDE = 5
"""One in five examples judges the augmentations."""


@dataclass(frozen=True)
class ByHandRecipe:
    """One way to a network."""

    method: Method
    seed: int
    n: int = EXAMPLES


@dataclass(frozen=True)
class Record:
    """What was chosen, how good it is and what it cost."""

    method: str
    seed: int
    accuracy: float
    """Test accuracy in percent."""
    cpu_seconds: float
    chosen: str = "given"


def here(seed: int) -> list[ByHandRecipe]:
    """Ours, and the choice by hand."""
    return [ByHandRecipe("ours", seed), ByHandRecipe("by hand", seed)]


def with_the_symmetry_given(seed: int) -> list[ByHandRecipe]:
    """The network that is told the symmetry."""
    return [ByHandRecipe("e2cnn, C4 given", seed)]


def run(recipe: ByHandRecipe) -> list[Record]:
    """Choose, train, and measure."""
    data = load("mnist:rotated", recipe.seed)
    x, y = draw_examples(data, recipe.n, recipe.seed)
    if recipe.method == "e2cnn, C4 given":
        told = train_elsewhere((x, y), (data.x_test, data.y_test), 4, recipe.seed)
        return [Record(recipe.method, recipe.seed, told.accuracy, told.seconds)]
    start = time.process_time()
    chosen, model = (_ours if recipe.method == "ours" else _by_hand)(x, y, recipe.seed)
    seconds = time.process_time() - start
    accuracy = 100 * float(model.score(data.x_test, data.y_test))
    return [Record(recipe.method, recipe.seed, round(accuracy, 2), round(seconds, 1), chosen)]


def _ours(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[str, inv.InvariantClassifier]:
    clf = inv.InvariantClassifier(BOTH, (28, 28), backbone="mlp", random_state=seed).fit(x, y)
    return clf.symmetry_.name, clf


def _by_hand(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[str, MLPClassifier]:
    def fit(x: np.ndarray, y: np.ndarray, name: str) -> MLPClassifier:
        mlp = MLPClassifier((100,), early_stopping=True, n_iter_no_change=5, max_iter=100, random_state=seed)
        return mlp.fit(*_augmented(x, y, name))

    aside = len(x) // ASIDE
    scores = {n: fit(x[aside:], y[aside:], n).score(x[:aside], y[:aside]) for n in AUGMENTATIONS}
    best = max(scores, key=lambda name: scores[name])
    return best, fit(x, y, best)


def _augmented(x: np.ndarray, y: np.ndarray, name: str) -> Arrays:
    copies = inv.symmetry(name, shape=(28, 28)).act(torch.from_numpy(x)).numpy()
    return copies.reshape(-1, x.shape[1]), np.repeat(y, copies.shape[1])


def table(records: Sequence[Record]) -> str:
    """One row per method and seed."""
    rows = [
        [r.method, str(r.seed), r.chosen, f"{r.accuracy:.1f} %", f"{r.cpu_seconds:.0f}"]
        for r in sorted(records, key=lambda r: r.method)
    ]
    return markdown(["method", "seed", "chose", "test accuracy", "CPU seconds"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    ours, hand = (select(records, method=m) for m in ("ours", "by hand"))
    pairs = list(zip(ours, hand, strict=True))
    return {
        "cheaper and better": Claim(
            "Ours is more accurate than the choice by hand and costs less, with every seed.",
            all(a.accuracy > b.accuracy and a.cpu_seconds < b.cpu_seconds for a, b in pairs),
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"here": Part(here, SEEDS), "told": Part(with_the_symmetry_given, SEEDS, lacks_e2cnn)},
    run=run,
    quick=lambda recipe: replace(recipe, n=QUICK_EXAMPLES),
    table=table,
    claims=claims,
    alone=True,
    depends_on=(*FITS, "studies.others.e2cnn_turns"),
)
