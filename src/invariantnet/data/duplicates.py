"""Merge duplicate examples and sum their weights."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped

from invariantnet.data.arrays import DiskArray
from invariantnet.data.fingerprint import hash_rows


class Distinct(NamedTuple):
    """Examples of which no two are equal."""

    x: Float32[np.ndarray, "n dim"] | DiskArray
    y: Shaped[np.ndarray, "n *outputs"]
    weight: Float32[np.ndarray, " n"] | None
    """Weight of each example, 1 on average; None if all are equal."""
    rows: Shaped[np.ndarray, " n"]
    """Digests of the inputs: nothing has to be hashed again to recognise them."""


def merge_duplicates(
    x: Float32[np.ndarray, "n dim"] | DiskArray,
    y: Shaped[np.ndarray, "n *outputs"],
    weight: Any = None,
    rows: Shaped[np.ndarray, " n"] | None = None,
) -> Distinct:
    """Keep each distinct example once, with the sum of its weights; examples of weight 0 are dropped.

    Duplicates would leak into the evaluation: a copy in the data to predict is known from the data to learn from.

    Args:
        x: Inputs.
        y: Targets.
        weight: One weight per example, or one for all; None weighs all alike.
        rows: Digests of the inputs, where the caller has them already.

    Returns:
        The distinct examples. Where there are duplicates, their order is that of their digests.

    Raises:
        ValueError: A weight is negative or not finite, all are 0, or their number is wrong.

    Example:
        >>> x = np.array([[1.0], [2.0], [1.0]], np.float32)
        >>> merge_duplicates(x, np.array([0, 1, 0])).weight
        array([1.3333334, 0.6666667], dtype=float32)
    """
    given = _checked(weight, len(x))
    kept = given > 0
    if not kept.any():
        raise ValueError("all sample weights are zero: give some example a weight.")
    x, y, given = x[kept], y[kept], given[kept]
    # Scaling by a power of two is exact, and keeps sums from overflowing or vanishing.
    given = np.ldexp(given, -np.frexp(given.max())[1])
    rows = hash_rows(x) if rows is None else rows[kept]
    _, inputs = np.unique(rows, return_inverse=True)
    values, targets = np.unique(y, axis=0 if y.ndim > 1 else None, return_inverse=True)
    _, first, which = np.unique(inputs * len(values) + targets, return_index=True, return_inverse=True)
    if len(first) == len(x) and (given == given[0]).all():
        return Distinct(x, y, None, rows)
    total = np.bincount(which, given)
    weights = None if (total == total[0]).all() else (total * (len(total) / total.sum())).astype(np.float32)
    return Distinct(x[first], y[first], weights, rows[first])


def _checked(weight: Any, n: int) -> np.ndarray:
    values = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    values = np.full(n, values) if values.ndim == 0 else values
    if values.shape != (n,):
        raise ValueError(f"{n} inputs, but sample_weight.shape == {values.shape}: pass one weight per input.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("sample weights must be finite and not negative: mend or drop them.")
    return values
