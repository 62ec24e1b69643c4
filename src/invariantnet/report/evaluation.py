"""How a network does on data it has not seen: accuracies, calibration, examples, and its doubts."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet import metrics
from invariantnet._system.progress import training_bar
from invariantnet.data.arrays import DiskArray, as_inputs, read
from invariantnet.data.examples import Examples
from invariantnet.estimator import InvariantClassifier, final_training
from invariantnet.inference.prices import predict_moved
from invariantnet.likelihoods import Categorical
from invariantnet.nn import Draws, Symmetrized, mlp
from invariantnet.symmetries.group import Group, transform
from invariantnet.symmetries.measure import Measure
from invariantnet.training.loop import log_probabilities, train

EPOCHS = 50
SHOWN = 8
"""Examples on the page: of as many classes, and as many doubtful ones."""
COPIES = 8
"""Copies of each example on the page."""
BINS = 10
"""Groups of predictions by their probability, for the calibration."""


@dataclass(frozen=True)
class Answer:
    """What a network says of one input."""

    label: int
    """Index of the class."""
    probability: float


@dataclass(frozen=True)
class ShownExample:
    """A test input of which copies are shown, with the answers to each copy."""

    label: int
    """Index of the true class."""
    chosen: tuple[Answer, ...]
    baseline: tuple[Answer, ...]


@dataclass(frozen=True)
class Doubt:
    """A test input that the network is unsure of."""

    label: int
    """Index of the true class."""
    answers: tuple[Answer, ...]
    """The most probable classes."""
    entropy: float
    """Of the predicted probabilities, in nats."""
    epistemic: float | None
    """The part of the entropy that drawn networks disagree about; None for a single network."""


@dataclass(frozen=True)
class Accuracies:
    """Share of right answers on test inputs moved by each symmetry, by its name; `trivial` moves none."""

    chosen: dict[str, float]
    baseline: dict[str, float]


@dataclass(frozen=True)
class CalibrationBin:
    """Predictions of similar probability."""

    stated: float
    """Mean probability that the network gave its answers."""
    observed: float
    """Share of them that were right."""
    count: int


@dataclass(frozen=True)
class Evaluation:
    """How the final network does on the test data, beside the baseline."""

    test_examples: int
    accuracy: Accuracies
    scores: dict[str, float]
    calibration: tuple[CalibrationBin, ...]
    doubtful: tuple[Doubt, ...]
    examples: tuple[ShownExample, ...]


@dataclass(frozen=True, eq=False)
class ShownInputs:
    """The test inputs that a page shows, one row each, in the order of the evaluation."""

    examples: Tensor
    doubtful: Tensor


def evaluate(
    clf: InvariantClassifier, baseline: nn.Module, x: np.ndarray | DiskArray, y: np.ndarray
) -> tuple[Evaluation, ShownInputs]:
    """Evaluate a fitted classifier on test data.

    Args:
        clf: The fitted classifier.
        baseline: The network to compare it with.
        x: Test inputs.
        y: Their labels.

    Returns:
        The evaluation, and the inputs that a page of it shows.
    """
    known = np.isin(y, clf.classes_)
    x, codes = x[known], np.searchsorted(clf.classes_, y[known])
    inputs, labels = as_inputs(x), torch.from_numpy(codes)
    p = log_probabilities(clf.network_, inputs).double().exp().numpy()
    doubtful = np.argsort(-metrics.entropy(p), kind="stable")[:SHOWN].tolist()
    first = _first_of_each_class(codes)
    shown = ShownInputs(*(read(inputs[torch.tensor(which, dtype=torch.long)]) for which in (first, doubtful)))
    evaluation = Evaluation(
        test_examples=len(x),
        accuracy=Accuracies(
            *(
                {g.name: _accuracy(network, g, inputs, labels) for g in clf.hypotheses_}
                for network in (clf.network_, baseline)
            )
        ),
        scores=metrics.scores(p, codes) if len(codes) else {},
        calibration=tuple(
            CalibrationBin(b["stated"], b["observed"], int(b["count"]))
            for b in metrics.calibration_bins(p, codes, BINS)
        ),
        doubtful=_doubts(clf, shown.doubtful, p[doubtful], codes[doubtful]),
        examples=tuple(
            _shown_example(clf, baseline, row[None], code)
            for row, code in zip(shown.examples, codes[first].tolist(), strict=True)
        ),
    )
    return evaluation, shown


def fit_plain(clf: InvariantClassifier, x: np.ndarray | DiskArray, y: np.ndarray, seed: int) -> nn.Module:
    """A plain network of the same width, trained for as long, for comparison."""
    codes = np.searchsorted(clf.classes_, y)
    trivial = next(g for g in clf.hypotheses_ if g.order == 1)

    def make() -> nn.Module:
        return Symmetrized(mlp(clf.input_shape_, clf.outputs_, clf.hidden), [trivial], scale=clf.scale_)

    config = final_training(clf.epochs, EPOCHS)
    with training_bar(config.steps(len(x)), "a plain network, to compare", visible=clf.verbose > 0) as on_step:
        network, _ = train(make, Examples(as_inputs(x), torch.from_numpy(codes)), config, seed, on_step=on_step)
    assert isinstance(network, Symmetrized)
    return network.fold().eval()


def shown_symmetry(clf: InvariantClassifier) -> Group:
    """The symmetry whose copies are shown: the chosen one, or the largest candidate if none was chosen."""
    return clf.symmetry_ if clf.symmetry_.order > 1 else clf.hypotheses_[-1]


def shown_copies(group: Group, x: Tensor) -> Tensor:
    """Copies of one input, of shape (1, dim), under some elements of a group."""
    elements = Measure.of([group], sampled=COPIES).elements[:COPIES]
    copies: Tensor = transform(x, elements)[0]
    return copies


def _first_of_each_class(codes: np.ndarray) -> list[int]:
    """Indices of the first example of each class, for as many classes as are shown."""
    _, first = np.unique(codes, return_index=True)
    return sorted(first.tolist())[:SHOWN]


def _accuracy(network: nn.Module, group: Group, x: Tensor | DiskArray, y: Tensor) -> float:
    return Categorical().score(predict_moved(network, group, x, Categorical()), y)


def _shown_example(clf: InvariantClassifier, baseline: nn.Module, x: Tensor, label: int) -> ShownExample:
    copies = shown_copies(shown_symmetry(clf), x)
    said = (log_probabilities(network, copies).exp() for network in (clf.network_, baseline))
    return ShownExample(label, *(tuple(_answer(p, int(p.argmax())) for p in each) for each in said))


def _doubts(clf: InvariantClassifier, x: Tensor, p: np.ndarray, codes: np.ndarray) -> tuple[Doubt, ...]:
    draws = isinstance(clf.network_, Draws) and len(p) > 0
    epistemic = clf.predict_uncertainty(x)["epistemic"].tolist() if draws else [None] * len(p)
    return tuple(
        Doubt(
            label=int(code),
            answers=tuple(_answer(row, c) for c in np.argsort(-row)[:2].tolist()),
            entropy=round(float(entropy), 4),
            epistemic=None if part is None else round(part, 4),
        )
        for row, code, entropy, part in zip(p, codes, metrics.entropy(p), epistemic, strict=True)
    )


def _answer(p: np.ndarray | Tensor, label: int) -> Answer:
    return Answer(label, round(float(p[label]), 4))
