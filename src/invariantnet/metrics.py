"""How good predicted probabilities are: right, sure when right, and unsure where they should be."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.metrics import roc_auc_score

Probabilities = Float[np.ndarray, "n classes"]
Labels = Int[np.ndarray, " n"]
SMALLEST = 1e-12
BINS = 15


def accuracy(p: Probabilities, y: Labels) -> float:
    """Share of the labels that have the largest probability."""
    return float((p.argmax(1) == y).mean())


def log_likelihood(p: Probabilities, y: Labels) -> float:
    """Mean log probability of the labels, in nats; 0 is perfect."""
    return float(np.log(np.maximum(_of_labels(p, y), SMALLEST)).mean())


def brier(p: Probabilities, y: Labels) -> float:
    r"""Mean of $\sum_c (p_c - [y = c])^2$; 0 is perfect, 2 the worst."""
    return float((p**2).sum(1).mean() - 2 * _of_labels(p, y).mean() + 1)


def calibration_bins(p: Probabilities, y: Labels, bins: int = BINS) -> list[dict[str, float]]:
    """Stated probability and observed frequency of the favourite class, in bins of equally many examples."""
    stated = p.max(1)
    right = p.argmax(1) == y
    parts = np.array_split(np.argsort(stated, kind="stable"), max(1, min(bins, len(y))))
    return [
        {"stated": float(stated[part].mean()), "observed": float(right[part].mean()), "count": len(part)}
        for part in parts
        if len(part)
    ]


def calibration_error(p: Probabilities, y: Labels, bins: int = BINS) -> float:
    """Expected distance of stated and observed, over bins of equally many examples (adaptive bins)."""
    found = calibration_bins(p, y, bins)
    return sum(b["count"] * abs(b["stated"] - b["observed"]) for b in found) / max(1, len(y))


def entropy(p: Float[np.ndarray, "... classes"]) -> Float[np.ndarray, "..."]:
    r"""$-\sum_c p_c \log p_c$ in nats: 0 if one class is certain."""
    return -(p * np.log(np.maximum(p, SMALLEST))).sum(-1)


def split_uncertainty(draws: Float[np.ndarray, "draws n classes"]) -> dict[str, Float[np.ndarray, " n"]]:
    r"""Entropy of the mean prediction = mean entropy (aleatoric) + mutual information (epistemic).

    What the networks agree is uncertain no further data will tell; what they disagree about, it might.

    >>> split = split_uncertainty(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]))
    >>> {name: values.round(2).tolist() for name, values in split.items()}
    {'total': [0.69, 0.69], 'aleatoric': [0.0, 0.69], 'epistemic': [0.69, 0.0]}
    """
    total, aleatoric = entropy(draws.mean(0)), entropy(draws).mean(0)
    return {"total": total, "aleatoric": aleatoric, "epistemic": np.maximum(total - aleatoric, 0)}


def auroc(inside: Float[np.ndarray, " n"], outside: Float[np.ndarray, " m"]) -> float:
    """Probability that an input from outside scores higher than one from inside; ties count half.

    With entropies as scores: how well uncertainty tells inputs that are like nothing in training.

    >>> auroc(np.array([0.1, 0.2]), np.array([0.2, 0.9]))
    0.875
    """
    is_outside = np.repeat([False, True], [len(inside), len(outside)])
    return float(roc_auc_score(is_outside, np.concatenate([inside, outside])))


def scores(p: Probabilities, y: Labels) -> dict[str, float]:
    """All of them by name."""
    return {
        "accuracy": accuracy(p, y),
        "log_likelihood": log_likelihood(p, y),
        "brier": brier(p, y),
        "calibration_error": calibration_error(p, y),
    }


def _of_labels(p: Any, y: Any) -> Any:
    return p[np.arange(len(y)), y]
