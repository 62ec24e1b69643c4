"""What a network says of inputs, as a page shows it: a class with its probability, or a number with its error."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet import metrics
from invariantnet._system.words import READABLE, round_words
from invariantnet.data.arrays import DiskArray
from invariantnet.estimator import InvariantClassifier, InvariantRegressor
from invariantnet.inference.prices import predict_moved
from invariantnet.nn import Ensemble
from invariantnet.symmetries.ranges import AnySymmetry
from invariantnet.training.loop import predict

Estimator = InvariantClassifier | InvariantRegressor

LONGEST_NAME = 80
"""Characters of a class' name that are shown: two lines of a phone."""
BINS = 10
"""Groups of predictions by their probability, for the calibration."""
COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Probabilities of the intervals that the calibration of numbers is measured by."""
EXPECTED = 0.9
"""Probability of the interval outside of which an answer in numbers counts as wrong."""


@dataclass(frozen=True)
class Answer:
    """What a network says of one input."""

    text: str
    right: bool


@dataclass(frozen=True, eq=False)
class Predictions:
    """Outputs of a network for some inputs, of a classifier or of a regressor.

    Args:
        estimator: What the network belongs to.
        outputs: Log probabilities, or means and log scales, in standard units; one row per input.
    """

    estimator: Estimator
    outputs: Tensor

    @classmethod
    def of(cls, estimator: Estimator, network: nn.Module, x: Tensor | DiskArray) -> "Predictions":
        """Let a network predict.

        Args:
            estimator: What the network belongs to.
            network: Its final network, or the baseline.
            x: Inputs.

        Returns:
            The predictions.
        """
        return cls(estimator, predict(network, x, estimator.likelihood).cpu().double())

    @property
    def probabilities(self) -> np.ndarray:
        """Probability of every class."""
        return self.outputs.exp().numpy()

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard errors, in the units of the labels; a column for every number of a label."""
        estimator = self.estimator
        assert isinstance(estimator, InvariantRegressor)
        scale, mean = np.asarray(estimator.y_scale_), np.asarray(estimator.y_mean_)
        likelihood = estimator.likelihood
        return (
            likelihood.mean(self.outputs).numpy() * scale + mean,
            likelihood.error(self.outputs).numpy() * scale,
        )

    def answers(self, truth: np.ndarray) -> tuple[Answer, ...]:
        """The best answer to every input.

        Args:
            truth: Numbers of the true classes, or the true numbers; one, or one per input.

        Returns:
            One answer per input.
        """
        if isinstance(self.estimator, InvariantClassifier):
            p, names = self.probabilities, class_names(self.estimator)
            best = p.argmax(1)
            right = best == truth
            return tuple(
                Answer(f"{names[b]} {row[b]:.2f}", bool(r)) for b, row, r in zip(best, p, right, strict=True)
            )
        mean, error = self.numbers()
        inside = (abs(mean - _rows(truth)) <= self._reach(EXPECTED) * error).all(1)
        return tuple(Answer(shown_number(m, e), bool(r)) for m, e, r in zip(mean, error, inside, strict=True))

    def doubts(self) -> np.ndarray:
        """How unsure each prediction is: its entropy in nats, or its standard error."""
        if isinstance(self.estimator, InvariantClassifier):
            return metrics.entropy(self.probabilities)
        error: np.ndarray = self.numbers()[1].mean(1)
        return error

    def calibration(self, truth: np.ndarray) -> list[metrics.CalibrationBin]:
        """Compare what was stated with what was observed.

        Args:
            truth: Numbers of the true classes, or the true numbers.

        Returns:
            One bin per range of probabilities.
        """
        if isinstance(self.estimator, InvariantClassifier):
            return metrics.calibration_bins(self.probabilities, truth, BINS)
        mean, error = self.numbers()
        apart = abs(mean - _rows(truth)) / error
        return [
            metrics.CalibrationBin(level, float((apart <= self._reach(level)).mean()), len(apart))
            for level in (COVERAGES if len(apart) else ())
        ]

    def scores(self, truth: np.ndarray) -> dict[str, float]:
        """Usual numbers of quality, by name.

        Args:
            truth: Numbers of the true classes, or the true numbers.

        Returns:
            The numbers by their names.
        """
        if not len(truth):
            return {}
        if isinstance(self.estimator, InvariantClassifier):
            return metrics.scores(self.probabilities, truth)
        apart = self.numbers()[0] - _rows(truth)
        return {
            "mean_absolute_error": float(abs(apart).mean()),
            "root_mean_square_error": float((apart**2).mean() ** 0.5),
        }

    def _reach(self, coverage: float) -> float:
        """Standard errors on either side of the mean that hold this share of the observations."""
        assert isinstance(self.estimator, InvariantRegressor)
        return self.estimator.reach(coverage)


def class_names(estimator: Estimator) -> list[str]:
    """Names of the classes, none of them so long that it would fill a page; none of a regressor.

    Args:
        estimator: A fitted estimator.

    Returns:
        One name per class.
    """
    return [shortened(c) for c in estimator.classes_] if isinstance(estimator, InvariantClassifier) else []


def shortened(name: object) -> str:
    """Name a class in a length that fits a page."""
    text = str(name)
    return f"{text[:LONGEST_NAME]}…" if len(text) > LONGEST_NAME else text


def shown_number(mean: np.ndarray, error: np.ndarray | None = None) -> str:
    """Write a number, or several, with its standard error; both have the same decimals."""
    if error is None:
        return ", ".join(map(round_words, mean.tolist()))
    return ", ".join(_with_error(m, e) for m, e in zip(mean.tolist(), error.tolist(), strict=True))


def _with_error(mean: float, error: float) -> str:
    """Write two digits of an error, and a number to the last of them."""
    decimals = 1 - math.floor(math.log10(error)) if READABLE[0] <= error < 10 else 0
    if decimals:
        return f"{mean:,.{decimals}f} ± {error:.{decimals}f}"
    return f"{round_words(mean)} ± {round_words(error, 2)}"


def encoded(estimator: Estimator, y: np.ndarray) -> np.ndarray:
    """Labels as a network learns them: numbers of classes, or numbers in standard units.

    Args:
        estimator: A fitted estimator.
        y: Labels as the estimator was given them.

    Returns:
        One code per label.
    """
    if isinstance(estimator, InvariantClassifier):
        return np.searchsorted(estimator.classes_, y)
    scale, mean = np.asarray(estimator.y_scale_), np.asarray(estimator.y_mean_)
    return ((_rows(y) - mean) / scale).astype(np.float32).reshape(y.shape)


def score_moved(
    estimator: Estimator, network: nn.Module, symmetry: AnySymmetry, x: Tensor | DiskArray, y: np.ndarray
) -> float:
    """Share of right answers, or of the variance that is explained, on inputs that are moved at random.

    Args:
        estimator: What the network belongs to.
        network: Its final network, or the baseline.
        symmetry: What moves the inputs.
        x: Inputs.
        y: Encoded labels.

    Returns:
        The share; 1 is perfect.
    """
    likelihood = estimator.likelihood
    return likelihood.score(predict_moved(network, symmetry, x, likelihood).cpu(), torch.from_numpy(y))


def epistemic_of(estimator: Estimator, x: Tensor) -> list[float | None]:
    """The part of each doubt that drawn networks disagree about; None for a single network."""
    if not isinstance(estimator.network_, Ensemble) or not len(x):
        return [None] * len(x)
    found = estimator.predict_uncertainty(x)["epistemic"].reshape(len(x), -1).mean(1)
    return [round(value, 4) for value in found.tolist()]


def _rows(y: np.ndarray) -> np.ndarray:
    y = np.asarray(y)
    return y.reshape(len(y), -1) if y.ndim else y.reshape(1, 1)
