"""From what a user passes to inputs and labels that can be searched."""

from typing import Any, get_args

import numpy as np
from jaxtyping import Float64

from invariantnet.choices import Task, require_choice
from invariantnet.data.conversion import have_fractions
from invariantnet.discovery.predictors import Labelled

MOST_CLASSES = 0.5
"""Classes per example above which whole numbers must be numbers to predict: a class then hardly ever repeats."""


def checked(X: Any, y: Any, task: Task) -> Labelled:
    """Check inputs and labels, and decide whether labels are classes or numbers.

    Args:
        X: Inputs, one row per example; further axes are flattened.
        y: One label per example.
        task: `classes`, `numbers`, or `auto`: numbers if some label has a fraction, as on the command line.

    Returns:
        Inputs with class numbers or real labels.

    Raises:
        ValueError: If they cannot be used; also if `auto` would make classes of labels that hardly ever repeat.
    """
    require_choice("task", task, get_args(Task))
    x = _inputs(X)
    labels = np.asarray(y)
    if labels.shape != (len(x),):
        raise ValueError(f"{len(x)} inputs have labels of shape {labels.shape}: pass one label per input.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y holds NaN or infinite values: drop those examples.")
    if task == "numbers" or (task == "auto" and have_fractions(labels)):
        if labels.dtype.kind not in "buif":
            raise ValueError(f"y of type {labels.dtype} holds no numbers: convert it, or pass task='classes'.")
        return Labelled(x, labels.astype(np.float64), None)
    names, numbers = np.unique(labels, return_inverse=True)
    if task == "auto" and labels.dtype.kind in "iuf" and len(names) > max(2, MOST_CLASSES * len(labels)):
        raise ValueError(
            f"{len(labels)} whole numbers as labels have {len(names)} different values: pass task='numbers', or "
            "task='classes' if each value is a class."
        )
    return Labelled(x, numbers.astype(np.int64), len(names))


def _inputs(X: Any) -> Float64[np.ndarray, "n dim"]:
    x = np.asarray(X)
    if x.ndim < 2 or x.dtype.kind not in "biuf":
        raise ValueError(f"inputs of shape {x.shape} and type {x.dtype} are no matrix: pass n×D real numbers.")
    x = x.reshape(len(x), -1).astype(np.float64)
    if not np.isfinite(x).all():
        raise ValueError("X holds NaN or infinite values: clean or drop those examples.")
    return x
