"""How good predicted probabilities are: right, sure when right, and unsure where they should be."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.metrics import roc_auc_score

Probabilities = Float[np.ndarray, "n classes"]
Labels = Int[np.ndarray, " n"]
SMALLEST_PROBABILITY = 1e-12
"""A probability counts as at least this much, so that one surprise costs at most 28 nats."""
BINS = 15
"""Bins of a calibration error, as is usual in the literature."""


@dataclass(frozen=True)
class CalibrationBin:
    """Predictions of similar probability."""

    stated: float
    """Mean probability that was given to the predicted class."""
    observed: float
    """Share of the predictions that were right."""
    count: int
    """Number of predictions."""


def accuracy(p: Probabilities, y: Labels) -> float:
    """Compute the share of the labels that have the largest probability.

    Args:
        p: Predicted probabilities, one row per example.
        y: Labels.

    Returns:
        The share, between 0 and 1.
    """
    return float((p.argmax(1) == y).mean())


def log_likelihood(p: Probabilities, y: Labels) -> float:
    """Compute the mean log probability of the labels.

    Args:
        p: Predicted probabilities, one row per example.
        y: Labels.

    Returns:
        Nats per label; 0 is perfect.
    """
    return float(np.log(np.maximum(_of_labels(p, y), SMALLEST_PROBABILITY)).mean())


def brier(p: Probabilities, y: Labels) -> float:
    r"""Compute the Brier score, the mean of $\sum_c (p_c - [y = c])^2$.

    Args:
        p: Predicted probabilities, one row per example.
        y: Labels.

    Returns:
        The score; 0 is perfect, 2 the worst.
    """
    return float((p**2).sum(1).mean() - 2 * _of_labels(p, y).mean() + 1)


def calibration_bins(p: Probabilities, y: Labels, bins: int = BINS) -> list[CalibrationBin]:
    """Compare stated probabilities with observed frequencies, in bins of equally many examples.

    Args:
        p: Predicted probabilities.
        y: Labels.
        bins: Number of bins; fewer if there are fewer examples.

    Returns:
        The bins, in ascending order of the stated probability.
    """
    stated = p.max(1)
    right = p.argmax(1) == y
    parts = np.array_split(np.argsort(stated, kind="stable"), max(1, min(bins, len(y))))
    return [
        CalibrationBin(float(stated[part].mean()), float(right[part].mean()), len(part))
        for part in parts
        if len(part)
    ]


def calibration_error(p: Probabilities, y: Labels, bins: int = BINS) -> float:
    """Compute the expected distance of stated and observed probabilities, over bins of equally many examples.

    Args:
        p: Predicted probabilities.
        y: Labels.
        bins: Number of bins; fewer if there are fewer examples.

    Returns:
        The error; 0 is perfect, 1 the worst.
    """
    found = calibration_bins(p, y, bins)
    return sum(b.count * abs(b.stated - b.observed) for b in found) / max(1, len(y))


def entropy(p: Float[np.ndarray, "... classes"]) -> Float[np.ndarray, "..."]:
    r"""Compute the entropy $-\sum_c p_c \log p_c$.

    Args:
        p: Probabilities, with the classes along the last axis.

    Returns:
        Nats; 0 if one class is certain.
    """
    return -(p * np.log(np.maximum(p, SMALLEST_PROBABILITY))).sum(-1)


def split_uncertainty(draws: Float[np.ndarray, "draws n classes"]) -> dict[str, Float[np.ndarray, " n"]]:
    r"""Split the entropy of the mean prediction into an aleatoric and an epistemic part.

    The aleatoric part is the mean entropy: all networks agree on it, and more data will not reduce it. The
    epistemic part is the mutual information: the networks disagree, and more data may settle it.

    Args:
        draws: Probabilities predicted by several networks.

    Returns:
        `total`, `aleatoric` and `epistemic`, in nats per input; the last two add up to the first.

    >>> split = split_uncertainty(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]))
    >>> {name: values.round(2).tolist() for name, values in split.items()}
    {'total': [0.69, 0.69], 'aleatoric': [0.0, 0.69], 'epistemic': [0.69, 0.0]}
    """
    total, aleatoric = entropy(draws.mean(0)), entropy(draws).mean(0)
    return {"total": total, "aleatoric": aleatoric, "epistemic": np.maximum(total - aleatoric, 0)}


def auroc(inside: Float[np.ndarray, " n"], outside: Float[np.ndarray, " m"]) -> float:
    """Compute the probability that an input from outside scores higher than one from inside; ties count half.

    With entropies as scores, it tells how well uncertainty recognises inputs that are like nothing in training.

    Args:
        inside: Scores of inputs like those in training.
        outside: Scores of inputs unlike them.

    Returns:
        The area under the ROC curve; 1 is perfect, 0.5 chance.

    >>> auroc(np.array([0.1, 0.2]), np.array([0.2, 0.9]))
    0.875
    """
    is_outside = np.repeat([False, True], [len(inside), len(outside)])
    return float(roc_auc_score(is_outside, np.concatenate([inside, outside])))


def scores(p: Probabilities, y: Labels) -> dict[str, float]:
    """Compute accuracy, log likelihood, Brier score and calibration error.

    Args:
        p: Predicted probabilities, one row per example.
        y: Labels.

    Returns:
        Every score by its name.
    """
    return {
        "accuracy": accuracy(p, y),
        "log_likelihood": log_likelihood(p, y),
        "brier": brier(p, y),
        "calibration_error": calibration_error(p, y),
    }


def _of_labels(p: Any, y: Any) -> Any:
    return p[np.arange(len(y)), y]
