r"""The Reynolds operator, and the space of weights that it leaves unchanged.

A neuron $\sigma(w^\top x + b)$ is invariant to $G$ if and only if
$w \in \Lambda = \{w : w^\top \bar T = w^\top\}$.
"""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from scipy.linalg import null_space
from torch import Tensor

from invariantnet.symmetries._orbits import signed_orbits
from invariantnet.symmetries.deviation import deviation
from invariantnet.symmetries.group import Group, transform
from invariantnet.symmetries.ranges import Range


def reynolds_operator(group: Group, dtype: torch.dtype | None = None) -> Float[Tensor, "dim dim"]:
    r"""Mean action $\bar T = \frac{1}{|G|} \sum_{g \in G} T_g$ (Definition 2).

    Args:
        group: The group.
        dtype: Type of the result; None takes torch's default.

    Returns:
        The projection onto invariant weights.

    Raises:
        ValueError: A group of matrices has too many elements to list.

    Example:
        The paper's worked example, quarter turns of 2×2 images:

        >>> from invariantnet import symmetry
        >>> reynolds_operator(symmetry("rot90", shape=(2, 2)))
        tensor([[0.2500, 0.2500, 0.2500, 0.2500],
                [0.2500, 0.2500, 0.2500, 0.2500],
                [0.2500, 0.2500, 0.2500, 0.2500],
                [0.2500, 0.2500, 0.2500, 0.2500]])
    """
    dtype = dtype or torch.get_default_dtype()
    if group.is_matrix_group:
        return group.elements.mean(dim=0).to(dtype)
    # Index arrays are orthogonal, so the mean is the orthogonal projection onto the fixed space.
    basis = invariant_basis(group, dtype=torch.float64)
    return (basis.mT @ basis.to_dense()).to(dtype)


def invariant_basis(
    group: Group, *, orthonormal: bool = True, dtype: torch.dtype | None = None
) -> Float[Tensor, "d dim"]:
    r"""Basis of $\Lambda$ as rows.

    Args:
        group: The group.
        orthonormal: Whether rows have length 1; if not, those of a permutation group are the 0/1 indicators of its
            orbits. The basis of a group of matrices is always orthonormal.
        dtype: Type of the result; None takes torch's default.

    Returns:
        A sparse (CSR) tensor with one row per orbit for index arrays, a dense one for matrices.

    Example:
        The paper's worked example:

        >>> from invariantnet import symmetry
        >>> invariant_basis(symmetry("rot90", shape=(2, 2)), orthonormal=False).to_dense()
        tensor([[1., 1., 1., 1.]])
    """
    dtype = dtype or torch.get_default_dtype()
    if group.is_matrix_group:
        return torch.from_numpy(_left_fixed_vectors(group)).to(dtype)
    labels, signs = signed_orbits(group.generators)
    columns = np.flatnonzero(signs)
    columns = columns[np.argsort(labels[columns], kind="stable")]
    sizes = np.bincount(labels[columns])
    values = signs[columns] / (np.sqrt(sizes).repeat(sizes) if orthonormal else 1.0)
    return _csr(np.concatenate([[0], sizes.cumsum()]), columns, values, group.dim, dtype)


def complement_basis(group: Group, dtype: torch.dtype | None = None) -> Float[Tensor, "rest dim"]:
    r"""Orthonormal basis, as rows, of the orthogonal complement of $\Lambda$.

    Args:
        group: The group.
        dtype: Type of the result; None takes torch's default.

    Returns:
        A sparse (CSR) tensor for index arrays, in which every row compares one input of an orbit with the mean of
        those before it; a dense one for matrices.
    """
    dtype = dtype or torch.get_default_dtype()
    if group.is_matrix_group:
        basis = invariant_basis(group, dtype=torch.float64).numpy()
        return torch.from_numpy(null_space(basis).T.copy()).to(dtype)
    labels, signs = signed_orbits(group.generators)
    rows: list[tuple[np.ndarray, np.ndarray]] = [
        (np.array([i]), np.array([1.0])) for i in np.flatnonzero(signs == 0)
    ]
    columns = np.flatnonzero(signs)
    columns = columns[np.argsort(labels[columns], kind="stable")]
    sizes = np.bincount(labels[columns])
    for orbit in np.split(columns, sizes.cumsum()[:-1]) if len(columns) else []:
        for k in range(1, len(orbit)):
            contrast = np.append(np.full(k, 1.0), -float(k)) / np.sqrt(k * (k + 1))
            rows.append((orbit[: k + 1], contrast * signs[orbit[: k + 1]]))
    crow = np.cumsum([0, *(len(c) for c, _ in rows)])
    empty = np.empty(0)
    all_columns = np.concatenate([empty.astype(np.int64), *(c for c, _ in rows)])
    return _csr(crow, all_columns, np.concatenate([empty, *(v for _, v in rows)]), group.dim, dtype)


@torch.no_grad()
def check_invariance(
    function: Callable[[Tensor], Any],
    symmetry: Group | Range,
    x: Shaped[Tensor, "*batch dim"] | Shaped[np.ndarray, "*batch dim"],
) -> float:
    """Measure how far a function is from being invariant.

    A group too large to list is checked on its generators: a function invariant to these is invariant to all. A
    range is checked on a fine grid of its transformations (`deviation`).

    Args:
        function: Function of a batch of inputs, such as a network, or `predict_proba` of an estimator.
        symmetry: The group or range.
        x: Inputs to try, a tensor or an array; they may have the shape of the symmetry instead of flat rows.
            A network gets numbers of the type of its parameters, anything else what is passed.

    Returns:
        The largest `|f(T x) - f(x)|` over the symmetry and the batch; 0 for an invariant function.

    Example:
        >>> from invariantnet import symmetry
        >>> x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
        >>> check_invariance(lambda x: x.sum(-1), symmetry("rot90", shape=(2, 2)), x)
        0.0
        >>> check_invariance(lambda x: x[..., 0], symmetry("rot90", shape=(2, 2)), x)
        3.0
    """
    x = torch.as_tensor(x)
    if x.shape[-1] != symmetry.dim:
        x = x.reshape(-1, symmetry.dim)
    if isinstance(function, torch.nn.Module) and x.is_floating_point():
        x = x.to(next((p.dtype for p in function.parameters() if p.is_floating_point()), x.dtype))

    def value(x: Tensor) -> Tensor:
        return torch.as_tensor(function(x))

    if isinstance(symmetry, Range):
        return deviation(value, symmetry, x.reshape(-1, symmetry.dim)).largest
    group = symmetry
    elements = group.elements if group.can_list_elements else torch.from_numpy(group.generators)
    reference = value(x)
    return float(torch.stack([(value(transform(x, g)) - reference).abs().max() for g in elements]).max())


def _left_fixed_vectors(group: Group) -> Float[np.ndarray, "d dim"]:
    # A projection has singular values 0 and at least 1, whatever the units of the coordinates.
    _, values, rows = np.linalg.svd(group.elements.numpy().mean(0))
    return rows[values > 0.5]


def product(basis: Float[Tensor, "d dim"], x: Float[Tensor, "dim n"]) -> Float[Tensor, "d n"]:
    """Multiply a sparse or dense basis by columns of any floating-point type.

    torch has no sparse product for 16-bit numbers, so these are multiplied in 32 bits.

    Args:
        basis: Rows of a basis.
        x: Columns.

    Returns:
        The product, of the type of `x`.
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    device = x.device.type
    # Mixed precision would make both factors 16-bit numbers again.
    mixed = torch.is_autocast_enabled(device)
    with torch.autocast(device, enabled=False) if mixed else contextlib.nullcontext():
        return (basis.to(dtype) @ x.to(dtype)).to(x.dtype)


def _csr(crow: np.ndarray, columns: np.ndarray, values: np.ndarray, dim: int, dtype: torch.dtype) -> Tensor:
    # Rows are filled orbit by orbit with ascending columns, so torch need not check its invariants.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(crow.astype(np.int64)),
            torch.from_numpy(columns.astype(np.int64)),
            torch.from_numpy(values).to(dtype),
            size=(len(crow) - 1, dim),
            check_invariants=False,
        )
