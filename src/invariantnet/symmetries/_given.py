"""Generators as users pass them: lists, arrays or tensors."""

import warnings
from typing import Any

import numpy as np
from torch import Tensor

from invariantnet.symmetries._closure import Indices, Matrices


def given_indices(generators: Any) -> Indices:
    """Read index arrays; raise a ValueError if there are none."""
    try:
        indices = np.array(to_numpy(generators))
    except ValueError:
        raise ValueError("the index arrays are not equally long: pass one index per input in each.") from None
    if indices.ndim != 2 or indices.size == 0:
        raise ValueError(
            f"generators of shape {indices.shape} are not a list of index arrays: pass n arrays of length D."
        )
    if not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"generators must hold integers, not {indices.dtype}: pass index arrays.")
    return indices.astype(np.int64)


def warn_if_counted_from_one(indices: Indices) -> None:
    """Warn about index arrays of 1 to n in an order that moves inputs: n stands for the negative of input 0."""
    dim = indices.shape[1]
    counted = (np.sort(indices, axis=1) == np.arange(1, dim + 1)).all(axis=1)
    if dim > 2 and (counted & (indices % dim != np.arange(dim)).any(axis=1)).any():
        warnings.warn(
            f"in an index array of {dim} inputs, {dim} stands for the negative of input 0: if you count inputs "
            "from 1, subtract 1.",
            stacklevel=3,
        )


def given_matrices(generators: Any) -> Matrices:
    """Read square matrices; raise a ValueError if there are none."""
    try:
        matrices = np.array(to_numpy(generators), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "the generators are not square matrices of one size: pass a list of n×D×D. A Group, such as "
            "inv.lift makes, is a symmetry already: pass it as it is."
        ) from None
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or not len(matrices):
        raise ValueError(f"generators of shape {matrices.shape} are not a list of square matrices: pass n×D×D.")
    return matrices


def to_numpy(values: Any) -> Any:
    """Turn tensors, also those in lists, into arrays."""
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    if isinstance(values, list | tuple):
        return [to_numpy(v) for v in values]
    return values
