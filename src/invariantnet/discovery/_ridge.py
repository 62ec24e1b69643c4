"""Ridge regression on features or a kernel, judged on each example by what the others say about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64, Shaped
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

RIDGES = tuple(float(ridge) for ridge in np.logspace(-6, 2, 17))
"""Penalties to choose from, for features whose squares sum to 1 on average: from noise-free to hardly anything but
noise."""

DEGREES = (3.0, 6.0, 30.0)
"""Degrees of freedom of the residuals of real labels to choose from: with far outliers, or nearly without."""

SHARPEST = 6.0
"""Log of the largest factor from fitted scores to log odds."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted regression.

    Args:
        coefficients: Of features, or of the examples of a kernel.
        left_out: Log probability of each label, predicted from all others.
        ridge: The penalty.
        calibration: Turns fitted values into log probabilities.
    """

    coefficients: Float64[np.ndarray, "m outputs"]
    left_out: Float64[np.ndarray, " n"]
    ridge: float
    calibration: "Classes | Reals"

    @property
    def score(self) -> float:
        """Log probability of the labels, each predicted from all others."""
        return float(self.left_out.sum())


@dataclass(frozen=True, eq=False)
class Classes:
    """Probabilities of classes from fitted values: softmax of log shares plus a factor times the values."""

    shares: Float64[np.ndarray, " classes"]
    factor: float = 1.0

    def targets(self, y: Int64[np.ndarray, " n"]) -> Float64[np.ndarray, "n classes"]:
        """Indicators of the classes, less their shares."""
        return np.eye(len(self.shares))[y] - self.shares

    def log_prob(
        self, fitted: Float64[np.ndarray, "n classes"], y: Int64[np.ndarray, " n"]
    ) -> Float64[np.ndarray, " n"]:
        """Log probability of each label."""
        scores = np.log(self.shares) + self.factor * fitted
        return scores[np.arange(len(y)), y] - np.logaddexp.reduce(scores, axis=1)

    def calibrated(self, fitted: Float64[np.ndarray, "n classes"], y: Int64[np.ndarray, " n"]) -> "Classes":
        """Choose the factor for values that were fitted without the labels they predict."""
        best = minimize_scalar(
            lambda log_factor: -Classes(self.shares, np.exp(log_factor)).log_prob(fitted, y).sum(),
            bounds=(-SHARPEST, SHARPEST),
            method="bounded",
            options={"xatol": 0.01},
        )
        return Classes(self.shares, float(np.exp(best.x)))


@dataclass(frozen=True, eq=False)
class Reals:
    """Student's t density of real labels around fitted values."""

    mean: float
    scale: float
    degrees: float = 30.0

    def targets(self, y: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, "n 1"]:
        """Labels less their mean."""
        return (y - self.mean)[:, None]

    def log_prob(
        self, fitted: Float64[np.ndarray, "n 1"], y: Float64[np.ndarray, " n"]
    ) -> Float64[np.ndarray, " n"]:
        """Log density of each label."""
        v = self.degrees
        z = (y - self.mean - fitted[:, 0]) / self.scale
        constant = gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(v * np.pi) - np.log(self.scale)
        return np.asarray(constant - (v + 1) / 2 * np.log1p(z**2 / v))

    def calibrated(self, fitted: Float64[np.ndarray, "n 1"], y: Float64[np.ndarray, " n"]) -> "Reals":
        """Choose scale and tails for values that were fitted without the labels they predict."""
        residual = y - self.mean - fitted[:, 0]
        smallest = 1e-6 * float(np.std(y)) + 1e-12
        found = []
        for degrees in DEGREES:
            scale = max(smallest, float(np.median(np.abs(residual))))
            for _ in range(20):
                # The maximum of the likelihood over the scale, by expectation and maximisation.
                weight = (degrees + 1) / (degrees + (residual / scale) ** 2)
                scale = max(smallest, float(np.sqrt(np.mean(weight * residual**2))))
            found.append(Reals(self.mean, scale, degrees))
        return max(found, key=lambda reals: float(reals.log_prob(fitted, y).sum()))


def calibration_of(y: Shaped[np.ndarray, " n"], classes: int | None) -> Classes | Reals:
    """What labels are like before any input is known."""
    if classes is None:
        return Reals(float(np.mean(y)), max(1e-12, float(np.std(y))))
    return Classes((np.bincount(y, minlength=classes) + 0.5) / (len(y) + 0.5 * classes))


def fit_features(
    features: Float64[np.ndarray, "n m"],
    y: Shaped[np.ndarray, " n"],
    classes: int | None,
    ridges: Sequence[float] = RIDGES,
) -> Fit:
    """Fit labels to features, with the penalty that predicts each label best from the others.

    Args:
        features: One row per example.
        y: Class numbers or real labels.
        classes: Number of classes; None for real labels.
        ridges: Penalties to choose from.

    Returns:
        The fit; its coefficients belong to the features.
    """
    values, vectors = np.linalg.eigh(features.T @ features)
    values = values.clip(0)
    start = calibration_of(y, classes)
    targets = start.targets(y)
    rotated = features @ vectors
    projected = rotated.T @ targets
    best = _Best(start, y)
    for ridge in ridges:
        shrunk = projected / (values + ridge)[:, None]
        leverage = (rotated**2) @ (1 / (values + ridge))
        error = (targets - rotated @ shrunk) / (1 - leverage).clip(1e-6)[:, None]
        best.offer(ridge, shrunk, error)
    return best.fit(lambda shrunk: vectors @ shrunk, targets)


def fit_kernel(
    kernel: Float64[np.ndarray, "n n"],
    y: Shaped[np.ndarray, " n"],
    classes: int | None,
    ridges: Sequence[float] = RIDGES,
) -> Fit:
    """Fit labels by a kernel, with the penalty that predicts each label best from the others.

    Args:
        kernel: Between all examples.
        y: Class numbers or real labels.
        classes: Number of classes; None for real labels.
        ridges: Penalties to choose from.

    Returns:
        The fit; its coefficients belong to the examples.
    """
    start = calibration_of(y, classes)
    targets = start.targets(y)
    if len(ridges) == 1:
        inverse = _inverse(kernel, ridges[0])
        if inverse is not None:
            one = _Best(start, y)
            weights = inverse @ targets
            one.offer(ridges[0], weights, weights / np.diag(inverse)[:, None])
            return one.fit(lambda shrunk: shrunk, targets)
    values, vectors = np.linalg.eigh(kernel)
    values = values.clip(0)
    rotated = vectors.T @ targets
    squares = vectors**2
    best = _Best(start, y)
    for ridge in ridges:
        shrunk = rotated / (values + ridge)[:, None]
        best.offer(ridge, shrunk, (vectors @ shrunk) / (squares @ (1 / (values + ridge)))[:, None])
    return best.fit(lambda shrunk: vectors @ shrunk, targets)


def _inverse(kernel: Float64[np.ndarray, "n n"], ridge: float) -> Float64[np.ndarray, "n n"] | None:
    """Invert a kernel with a penalty, ten times faster than by its eigenvectors; None if rounding prevents it."""
    padded = kernel + ridge * np.eye(len(kernel))
    factor, failed = dpotrf(padded, lower=1)
    if failed:
        return None
    lower, failed = dpotri(factor, lower=1)
    if failed:
        return None
    lower = np.tril(lower)
    return np.asarray(lower + lower.T - np.diag(np.diag(lower)))


@dataclass
class _Best:
    """The penalty with the smallest squared error of labels that were left out."""

    start: Classes | Reals
    y: Shaped[np.ndarray, " n"]
    shrunk: Float64[np.ndarray, "m outputs"] | None = None
    error: Float64[np.ndarray, "n outputs"] | None = None
    square: float = np.inf
    ridge: float = 0.0

    def offer(
        self, ridge: float, shrunk: Float64[np.ndarray, "m outputs"], error: Float64[np.ndarray, "n outputs"]
    ) -> None:
        square = float((error**2).sum())
        if square < self.square:
            self.ridge, self.shrunk, self.error, self.square = ridge, shrunk, error, square

    def fit(
        self,
        turn_back: Callable[[Float64[np.ndarray, "m outputs"]], Float64[np.ndarray, "m outputs"]],
        targets: Float64[np.ndarray, "n outputs"],
    ) -> Fit:
        assert self.shrunk is not None
        assert self.error is not None
        left_out = targets - self.error
        calibration = self.start.calibrated(left_out, self.y)
        return Fit(turn_back(self.shrunk), calibration.log_prob(left_out, self.y), self.ridge, calibration)
