"""How a network does on data it has not seen: accuracies, calibration, examples, and its doubts."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet import metrics
from invariantnet.data.arrays import DiskArray, as_inputs, read
from invariantnet.estimator import InvariantClassifier
from invariantnet.inference.prices import predict_moved
from invariantnet.likelihoods import Categorical
from invariantnet.nn import Ensemble
from invariantnet.symmetries.group import transform
from invariantnet.symmetries.measure import Measure
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.training.loop import log_probabilities

SHOWN = 8
"""Examples on the page: of as many classes, and as many doubtful ones."""
COPIES = 8
"""Copies of each example on the page."""
LONGEST_NAME = 80
"""Characters of a class' name that are shown."""
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
class Evaluation:
    """How the final network does on the test data, beside the baseline."""

    test_examples: int
    """Number of test examples of known classes."""
    unknown: dict[str, int]
    """Number of test examples left out of each class that the examples to learn from lack."""
    accuracy: Accuracies
    scores: dict[str, float]
    calibration: tuple[metrics.CalibrationBin, ...]
    doubtful: tuple[Doubt, ...]
    examples: tuple[ShownExample, ...]

    @property
    def left_out(self) -> str:
        """Say which test examples could not be used, and why; empty if there are none."""
        if not self.unknown:
            return ""
        named = [f"{shortened(name)} ({count:,})" for name, count in self.unknown.items()]
        more = [f"{len(named) - SHOWN} more classes"] if len(named) > SHOWN else []
        total = sum(self.unknown.values())
        return (
            f"{total:,} example{' is' if total == 1 else 's are'} left out, because no training example has the "
            f"class: {', '.join([*named[:SHOWN], *more])}"
        )


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
    unknown = {str(name): int(n) for name, n in zip(*np.unique(y[~known], return_counts=True), strict=True)}
    x, codes = x[known], np.searchsorted(clf.classes_, y[known])
    inputs, labels = as_inputs(x), torch.from_numpy(codes)
    p = log_probabilities(clf.network_, inputs).cpu().double().exp().numpy()
    doubtful = np.argsort(-metrics.entropy(p), kind="stable")[:SHOWN].tolist()
    first = _first_of_each_class(codes)
    shown = ShownInputs(*(read(inputs[torch.tensor(which, dtype=torch.long)]) for which in (first, doubtful)))
    evaluation = Evaluation(
        test_examples=len(x),
        unknown=unknown,
        accuracy=Accuracies(
            *(
                {g.name: _accuracy(network, g, inputs, labels) for g in clf.candidates_}
                for network in (clf.network_, baseline)
            )
        ),
        scores=metrics.scores(p, codes) if len(codes) else {},
        calibration=tuple(metrics.calibration_bins(p, codes, BINS)),
        doubtful=_doubts(clf, shown.doubtful, p[doubtful], codes[doubtful]),
        examples=tuple(
            _shown_example(clf, baseline, row[None], code)
            for row, code in zip(shown.examples, codes[first].tolist(), strict=True)
        ),
    )
    return evaluation, shown


def shortened(name: object) -> str:
    """Name a class in a length that fits a page."""
    text = str(name)
    return f"{text[:LONGEST_NAME]}…" if len(text) > LONGEST_NAME else text


def shown_symmetry(clf: InvariantClassifier) -> AnySymmetry:
    """The symmetry whose copies are shown: the chosen one, or the largest candidate if none was chosen."""
    return clf.symmetry_ if clf.symmetry_.copies > 1 else clf.candidates_[-1]


def shown_copies(symmetry: AnySymmetry, x: Tensor) -> Tensor:
    """Copies of one input, of shape (1, dim), under some elements of a group, or along a range."""
    if isinstance(symmetry, Range):
        shares = torch.linspace(-1, 1, COPIES).tolist()
        return torch.cat([x, *(symmetry.move(x, (share,) * symmetry.parameters) for share in shares[1:])])
    elements = Measure.of([symmetry], sampled=COPIES).elements[:COPIES]
    copies: Tensor = transform(x, elements)[0]
    return copies


def _first_of_each_class(codes: np.ndarray) -> list[int]:
    """Indices of the first example of each class, for as many classes as are shown."""
    _, first = np.unique(codes, return_index=True)
    return sorted(first.tolist())[:SHOWN]


def _accuracy(network: nn.Module, group: AnySymmetry, x: Tensor | DiskArray, y: Tensor) -> float:
    return Categorical().score(predict_moved(network, group, x, Categorical()).cpu(), y)


def _shown_example(clf: InvariantClassifier, baseline: nn.Module, x: Tensor, label: int) -> ShownExample:
    copies = shown_copies(shown_symmetry(clf), x)
    said = (log_probabilities(network, copies).cpu().exp() for network in (clf.network_, baseline))
    return ShownExample(label, *(tuple(_answer(p, int(p.argmax())) for p in each) for each in said))


def _doubts(clf: InvariantClassifier, x: Tensor, p: np.ndarray, codes: np.ndarray) -> tuple[Doubt, ...]:
    draws = isinstance(clf.network_, Ensemble) and len(p) > 0
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
