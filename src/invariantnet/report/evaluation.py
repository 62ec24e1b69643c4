"""How a network does on data it has not seen: scores, calibration, examples, and its doubts."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import confusion_matrix
from torch import Tensor, nn

from invariantnet import metrics
from invariantnet.data.arrays import DiskArray, as_inputs, read
from invariantnet.estimator import InvariantClassifier
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.report.answers import (
    Answer,
    Estimator,
    Predictions,
    class_names,
    encoded,
    epistemic_of,
    score_moved,
    shortened,
    shown_number,
)
from invariantnet.symmetries.group import transform
from invariantnet.symmetries.measure import Measure
from invariantnet.symmetries.ranges import AnySymmetry, Range

SHOWN = 8
"""Examples on the page: of as many classes, and as many doubtful ones."""
COPIES = 8
"""Copies of each example on the page: one for each element of the largest group of images."""
PREDICTED_IN_ALL, FEWEST_MOVED = 200_000, 500
"""Copies predicted for the scores on moved inputs, by each network: a minute or two of a small CNN. If there are
many symmetries, fewer inputs are moved; the fewest tell changes to one or two percentage points."""
MOST_CONFUSED = 20
"""Classes of a confusion matrix that fits on a page."""


@dataclass(frozen=True)
class ShownExample:
    """A test input of which copies are shown, with the answers to each copy."""

    truth: str
    """Name of the true class, or the true number."""
    chosen: tuple[Answer, ...]
    baseline: tuple[Answer, ...]


@dataclass(frozen=True)
class Doubt:
    """A test input that the network is unsure of."""

    truth: str
    """Name of the true class, or the true number."""
    said: str
    """The most probable classes, or the number."""
    size: float
    """Entropy of the predicted probabilities in nats, or the standard error of a number."""
    epistemic: float | None
    """The part of it that drawn networks disagree about; None for a single network."""


@dataclass(frozen=True)
class Accuracies:
    """Share of right answers on test inputs moved by each symmetry, by its name; `trivial` moves none.

    Of numbers it is the share of the variance that is explained.
    """

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
    confusion: tuple[tuple[int, ...], ...]
    """Test examples of each class, a row, by the answer of the network; empty for numbers and many classes."""
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
    estimator: Estimator, baseline: nn.Module, x: np.ndarray | DiskArray, y: np.ndarray
) -> tuple[Evaluation, ShownInputs]:
    """Evaluate a fitted estimator on test data.

    Args:
        estimator: The fitted estimator.
        baseline: The network to compare it with.
        x: Test inputs.
        y: Their labels.

    Returns:
        The evaluation, and the inputs that a page of it shows.
    """
    classes = isinstance(estimator, InvariantClassifier)
    known = np.isin(y, estimator.classes_) if classes else np.ones(len(y), bool)
    unknown = {str(name): int(n) for name, n in zip(*np.unique(y[~known], return_counts=True), strict=True)}
    x, y = x[known], y[known]
    codes = encoded(estimator, y)
    truth = codes if classes else y
    inputs, said = as_inputs(x), Predictions.of(estimator, estimator.network_, as_inputs(x))
    doubtful = np.argsort(-said.doubts(), kind="stable")[:SHOWN].tolist()
    first = _first_of_each_class(codes) if classes else list(range(min(SHOWN, len(y))))
    shown = ShownInputs(*(read(inputs[torch.tensor(which, dtype=torch.long)]) for which in (first, doubtful)))
    evaluation = Evaluation(
        test_examples=len(x),
        unknown=unknown,
        accuracy=Accuracies(
            *(_scores_moved(estimator, network, inputs, codes) for network in (estimator.network_, baseline))
        ),
        scores=said.scores(truth),
        confusion=_confusion(estimator, said, codes),
        calibration=tuple(said.calibration(truth)),
        doubtful=_doubts(Predictions(estimator, said.outputs[doubtful]), shown.doubtful, truth[doubtful]),
        examples=tuple(
            _shown_example(estimator, baseline, row[None], label)
            for row, label in zip(shown.examples, truth[first], strict=True)
        ),
    )
    return evaluation, shown


def _scores_moved(
    estimator: Estimator, network: nn.Module, x: Tensor | DiskArray, y: np.ndarray
) -> dict[str, float]:
    """The score on inputs moved by each symmetry, by its name.

    Of many test inputs only some are moved. What the moves change on these is added to the score on all, so that
    the score of a network that is exactly invariant does not change by the choice of the inputs.
    """
    symmetries = estimator.candidates_
    copies = min(SAMPLED, estimator.symmetry_.copies)
    count = min(len(x), max(FEWEST_MOVED, PREDICTED_IN_ALL // (len(symmetries) * (1 + copies))))
    # Test data may be sorted by class: take inputs from all of it.
    some = torch.arange(count) * len(x) // max(1, count)
    first = symmetries[0]
    whole = score_moved(estimator, network, first, x, y)
    if count == len(x):
        return {first.name: whole} | {g.name: score_moved(estimator, network, g, x, y) for g in symmetries[1:]}
    few, labels = read(x[some]), y[some.numpy()]
    still = score_moved(estimator, network, first, few, labels)
    changes = {g.name: score_moved(estimator, network, g, few, labels) - still for g in symmetries[1:]}
    return {first.name: whole} | {name: min(1.0, whole + change) for name, change in changes.items()}


def shown_symmetry(estimator: Estimator) -> AnySymmetry:
    """The symmetry whose copies are shown: the chosen one, or the most probable other if none was chosen."""
    if estimator.symmetry_.copies > 1 or len(estimator.candidates_) == 1:
        return estimator.symmetry_
    found = dict(zip(estimator.posterior_.names, estimator.posterior_.probabilities, strict=True))
    return max((s for s in estimator.candidates_ if s.copies > 1), key=lambda s: found[s.name])


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


def _confusion(estimator: Estimator, said: Predictions, codes: np.ndarray) -> tuple[tuple[int, ...], ...]:
    classes = len(class_names(estimator))
    if not 2 <= classes <= MOST_CONFUSED or not len(codes):
        return ()
    counts = confusion_matrix(codes, said.probabilities.argmax(1), labels=range(classes))
    return tuple(tuple(row) for row in counts.tolist())


def _shown_example(estimator: Estimator, baseline: nn.Module, x: Tensor, label: np.ndarray) -> ShownExample:
    copies = shown_copies(shown_symmetry(estimator), x)
    said = (Predictions.of(estimator, network, copies) for network in (estimator.network_, baseline))
    return ShownExample(_truth(estimator, label), *(each.answers(np.asarray(label)) for each in said))


def _truth(estimator: Estimator, label: np.ndarray) -> str:
    names = class_names(estimator)
    return names[int(label)] if names else shown_number(np.atleast_1d(label))


def _doubts(said: Predictions, x: Tensor, truth: np.ndarray) -> tuple[Doubt, ...]:
    estimator, sizes = said.estimator, said.doubts().tolist()
    return tuple(
        Doubt(_truth(estimator, label), words, float(f"{size:.4g}"), part)
        for label, words, size, part in zip(
            truth, _likeliest(said), sizes, epistemic_of(estimator, x), strict=True
        )
    )


def _likeliest(said: Predictions) -> list[str]:
    """The two most probable classes of each prediction, or its number."""
    names = class_names(said.estimator)
    if not names:
        return [shown_number(mean, error) for mean, error in zip(*said.numbers(), strict=True)]
    return [
        " or ".join(f"{names[c]} {row[c]:.2f}" for c in np.argsort(-row)[:2].tolist())
        for row in said.probabilities
    ]
