"""How many examples does it take? Learning curves on rotated images, the symmetry not told to us."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from invariantnet import metrics
from invariantnet.data import Dataset
from invariantnet.data.examples import Examples
from invariantnet.estimator import InvariantClassifier
from invariantnet.inference.models import CNNS, MLPS
from invariantnet.likelihoods import Categorical
from invariantnet.nn.standardize import InputStatistics
from invariantnet.symmetries import lookup as catalogue
from invariantnet.training.loop import predict, train
from studies.datasets import BOTH, draw_examples, load
from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.framework.records import select

SIZES, ALL = (100, 300, 1000, 3000, 10_000), 60_000
"""Training examples."""
SEEDS, ALL_SEEDS = 5, 1
"""All of MNIST takes a CPU hour, and seeds differ little there."""
MODELS = {
    "InvariantNet": COLORS["rot90"],
    "MLP, augmented by hand": COLORS["d4"],
    "CNN": COLORS["flips"],
    "MLP": COLORS["trivial"],
}
"""The models and their colours."""
EPOCHS, LARGE_EPOCHS, CNN_EPOCHS = 50, 20, 12
"""As our classifier takes by itself; fewer with all of MNIST, where they make enough steps."""
LEVEL = 0.9
"""Accuracy that the table compares the models by."""
QUICK_EXAMPLES = 300
"""Examples of a quick run at most."""


@dataclass(frozen=True)
class LearningRecipe:
    """One model, trained on n rotated images."""

    model: str
    n: int
    seed: int


@dataclass(frozen=True)
class Record:
    """How good one model is on rotated test images."""

    model: str
    n: int
    seed: int
    accuracy: float
    log_likelihood: float
    """Nats per image."""
    calibration_error: float
    chosen: str | None
    """The symmetry of our network."""


def few_examples(seed: int) -> list[LearningRecipe]:
    """Every model and size."""
    return [LearningRecipe(model, n, seed) for n in SIZES for model in MODELS]


def all_of_mnist(seed: int) -> list[LearningRecipe]:
    """Every model, trained on everything."""
    return [LearningRecipe(model, ALL, seed) for model in MODELS]


def quick(recipe: LearningRecipe) -> LearningRecipe:
    """Make a recipe small."""
    return replace(recipe, n=min(recipe.n, QUICK_EXAMPLES))


def run(recipe: LearningRecipe) -> list[Record]:
    """Train a model, and score it on the test images."""
    data = load("mnist:rotated", recipe.seed)
    p, labels, chosen = _ours(recipe, data) if recipe.model == "InvariantNet" else _rival(recipe, data)
    found = {name: round(value, 5) for name, value in metrics.scores(p, labels).items()}
    return [
        Record(
            recipe.model,
            recipe.n,
            recipe.seed,
            found["accuracy"],
            found["log_likelihood"],
            found["calibration_error"],
            chosen,
        )
    ]


def _ours(recipe: LearningRecipe, data: Dataset) -> tuple[np.ndarray, np.ndarray, str | None]:
    """Probabilities, labels as numbers of classes, and the symmetry that was found."""
    epochs = None if recipe.n < ALL else LARGE_EPOCHS
    clf = InvariantClassifier(BOTH, data.shape, epochs=epochs, random_state=recipe.seed)
    clf.fit(*draw_examples(data, recipe.n, recipe.seed))
    known = np.searchsorted(clf.classes_, data.y_test)
    return clf.predict_proba(data.x_test).astype(float), known, clf.symmetry_.name


def _rival(recipe: LearningRecipe, data: Dataset) -> tuple[np.ndarray, np.ndarray, str | None]:
    """The same for a CNN, an MLP, or an MLP that learns from all four turns of every image; trained like ours."""
    x, y = map(torch.from_numpy, draw_examples(data, recipe.n, recipe.seed))
    epochs = CNN_EPOCHS if recipe.model == "CNN" else EPOCHS if recipe.n < ALL else LARGE_EPOCHS
    if recipe.model.endswith("by hand"):
        copies = catalogue.symmetry("rot90", data.shape).act(x)
        x, y = copies.flatten(0, 1), y.repeat_interleave(copies.shape[1])
        epochs = -(-epochs // 2)
    model = (CNNS if recipe.model == "CNN" else MLPS)[0]
    nothing = catalogue.symmetry("trivial", data.shape)
    inputs = InputStatistics.of(x, [nothing], data.shape)

    def make() -> nn.Module:
        assert model.make is not None
        return nn.Sequential(inputs.for_symmetry(nothing), model.make(data.shape, len(data.class_names)))

    config = replace(model.final, epochs=epochs)
    network, _ = train(make, Examples(x, y), config, recipe.seed)
    output = predict(network, torch.from_numpy(data.x_test), Categorical())
    return np.asarray(output.double().exp().numpy()), data.y_test, None


def curve(records: Sequence[Record], model: str, score: str) -> dict[int, float]:
    """Mean of a score over seeds, by number of examples."""
    found = select(records, model=model)
    return {
        n: float(np.mean([getattr(r, score) for r in select(found, n=n)])) for n in sorted({r.n for r in found})
    }


def examples_for(records: Sequence[Record], model: str, level: float = LEVEL) -> float:
    """Estimate how many examples a model needs for an accuracy.

    Args:
        records: Accuracies at some numbers of examples.
        model: Name of the model.
        level: The accuracy.

    Returns:
        The number, between measured ones by a straight line over the logarithm; infinite if it is never reached.
    """
    accuracy = curve(records, model, "accuracy")
    sizes, values = list(accuracy), list(accuracy.values())
    for i, value in enumerate(values):
        if value >= level:
            if i == 0:
                return float(sizes[0])
            share = (level - values[i - 1]) / (value - values[i - 1])
            return float(np.exp(np.interp(share, [0, 1], np.log(sizes[i - 1 : i + 1]))))
    return float("inf")


def _rounded(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.0f}"


def table(records: Sequence[Record]) -> str:
    """Accuracy by number of examples, and the number of examples for 90 %."""
    sizes = sorted({r.n for r in records})
    rows = []
    for model in (m for m in MODELS if select(records, model=m)):
        accuracy = curve(records, model, "accuracy")
        cells = [f"{100 * accuracy[n]:.1f}" if n in accuracy else "–" for n in sizes]
        needed = examples_for(records, model)
        rows.append([model, *cells, _rounded(needed) if np.isfinite(needed) else "–"])
    return markdown(["model", *(f"n = {n:,}" for n in sizes), f"n for {LEVEL:.0%}"], rows)


def draw(records: Sequence[Record]) -> Figure:
    """Draw accuracy and log likelihood against the number of examples."""
    figure = Figure(figsize=(9, 3.4))
    axes = figure.subplots(1, 2)
    for model, color in MODELS.items():
        found = select(records, model=model)
        if not found:
            continue
        for axis, score in zip(axes, ("accuracy", "log_likelihood"), strict=True):
            means = curve(records, model, score)
            axis.plot(list(means), list(means.values()), "o-", markersize=3, color=color, label=model)
            values = [getattr(r, score) for r in found]
            axis.plot([r.n for r in found], values, ".", markersize=2, color=color, alpha=0.5)
    axes[0].axhline(LEVEL, linestyle=":", color="black", linewidth=0.8)
    axes[0].set(ylabel="test accuracy")
    axes[1].set(ylabel="test log likelihood, nats per image", ylim=(-1.5, 0.02))
    axes[0].legend(frameon=False, fontsize=7, loc="lower right")
    for axis in axes:
        axis.set(xscale="log", xlabel="training examples, each in one pose")
        axis.grid(alpha=0.3)
    figure.tight_layout()
    return figure


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    ours, *rivals = (examples_for(records, model) for model in MODELS)
    times = ", ".join(
        f"the {model} {n / ours:.1f} times as many" for model, n in zip(list(MODELS)[1:], rivals, strict=True)
    )
    return {
        "fewest": Claim(
            f"For {LEVEL:.0%} InvariantNet needs about {_rounded(ours)} examples; {times}.", ours < min(rivals)
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"few examples": Part(few_examples, SEEDS), "all of MNIST": Part(all_of_mnist, ALL_SEEDS)},
    run=run,
    quick=quick,
    table=table,
    draw=draw,
    claims=claims,
    depends_on=FITS,
)
