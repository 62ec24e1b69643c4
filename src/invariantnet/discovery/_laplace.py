r"""Evidence of linear models in closed form, or nearly so.

Real labels: with weights $w \sim N(0, \sigma^2/\lambda)$, noise $\sigma^2$ of unknown size and an unknown offset,
$$\ln p(y) = -\tfrac12 \ln\det(I + \Phi\Phi^\top/\lambda)
             - \tfrac{n-1}{2} \ln\big(y^\top (I + \Phi\Phi^\top/\lambda)^{-1} y\big) + \text{const}.$$

Two classes: logistic regression with weights $w \sim N(0, s^2)$, by Laplace's method. More classes are told apart
one after another: the first from the rest, the second from what is left, and so on; the product of these
probabilities is the probability of the labels.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64, Int64
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

PENALTIES = tuple(float(p) for p in np.logspace(-6, 3, 19))
"""Penalties λ of real labels, for features whose squares sum to 1: from free of noise to nothing but noise."""

SCALES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Standard deviations of the log odds of a class before labels are seen."""

OFFSET = 5.0
"""Standard deviation of the offset of log odds."""

NO_SHARE = 15.0
"""Nats behind the best scale from which on larger scales are left out: less than a millionth of the mean."""

NEWTON = 40
"""Steps of Newton's method at most; about six are needed."""

Features = Float64[np.ndarray, "n m"]
"""One row per example; squares sum to 1 on average."""


def evidence_of_reals(features: Features, y: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " penalties"]:
    """Log evidence of real labels for every penalty, up to a constant that depends on the labels alone."""
    centred, target = features - features.mean(axis=0), y - y.mean()
    if centred.shape[1] <= len(y):
        values, vectors = np.linalg.eigh(centred.T @ centred)
        projected = (vectors.T @ (centred.T @ target)) ** 2
        values = values.clip(0)
        remains = [target @ target - (projected / (values + penalty)).sum() for penalty in PENALTIES]
    else:
        values, vectors = np.linalg.eigh(centred @ centred.T)
        projected = (vectors.T @ target) ** 2
        values = values.clip(0)
        remains = [(projected / (1 + values / penalty)).sum() for penalty in PENALTIES]
    least = 1e-12 * float(target @ target) + 1e-300
    spread = [np.log1p(values / penalty).sum() for penalty in PENALTIES]
    return np.array(
        [-0.5 * s - 0.5 * (len(y) - 1) * np.log(max(least, r)) for s, r in zip(spread, remains, strict=True)]
    )


def evidence_of_classes(
    features: Features, y: Int64[np.ndarray, " n"], classes: int
) -> Float64[np.ndarray, " scales"]:
    """Log evidence of class numbers for every scale."""
    parts = []
    left = np.arange(len(y))
    for number in range(classes - 1):
        is_it = y[left] == number
        if 0 < is_it.sum() < len(left):
            parts.append(_of_two(features[left], is_it.astype(np.float64)))
        left = left[~is_it]
    total = np.full(len(SCALES), -np.inf)
    for i in range(len(SCALES)):
        total[i] = sum(next(part) for part in parts)
        # The evidence has one maximum over scales.
        if total[i] < total.max() - NO_SHARE:
            break
    return total


def _of_two(features: Features, y: Float64[np.ndarray, " n"]) -> Iterator[float]:
    """Log evidence of each scale, the smallest first."""
    centred = features - features.mean(axis=0)
    if centred.shape[1] > len(y):
        # As many features as examples hold all that matters.
        values, vectors = np.linalg.eigh(centred @ centred.T)
        centred = vectors * np.sqrt(values.clip(0))
    design = np.column_stack([centred, np.ones(len(y))])
    weights = np.zeros(design.shape[1])
    for scale in SCALES:
        precision = np.full(design.shape[1], scale**-2)
        precision[-1] = OFFSET**-2
        weights, log_z = _laplace(design, y, precision, weights)
        yield log_z


def _laplace(
    design: Features, y: Float64[np.ndarray, " n"], precision: Float64[np.ndarray, " m"], weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Weights at the mode, and the log evidence around it."""
    value = _log_joint(design, y, precision, weights)
    diagonal = np.ones(1)
    for _ in range(NEWTON):
        p = 1 / (1 + np.exp(-(design @ weights)))
        weighted = design * np.sqrt(p * (1 - p))[:, None]
        # LAPACK itself: scipy's functions around it take as long as the work does.
        hessian = dsyrk(1.0, weighted.T, lower=1)
        hessian[np.diag_indices_from(hessian)] += precision
        factor, _ = dpotrf(hessian, lower=1, overwrite_a=1)
        step, _ = dpotrs(factor, design.T @ (y - p) - precision * weights, lower=1)
        diagonal = np.diag(factor)
        size = 1.0
        while (further := _log_joint(design, y, precision, weights + size * step)) < value and size > 1e-4:
            size /= 2
        if further < value:
            break
        weights, gained, value = weights + size * step, further - value, further
        if gained < 1e-4:
            break
    return weights, value + 0.5 * float(np.log(precision).sum()) - float(np.log(diagonal).sum())


def _log_joint(design: Features, y: np.ndarray, precision: np.ndarray, weights: np.ndarray) -> float:
    odds = design @ weights
    return float(y @ odds - np.logaddexp(0, odds).sum() - 0.5 * (precision @ weights**2))
