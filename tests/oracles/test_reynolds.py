"""The Reynolds operator and its fixed space against the mean over all elements and dense linear algebra."""

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.linalg import null_space, subspace_angles
from strategies import TOLERANCE, any_group, dense, index_group, matrices

import invariantnet as inv
from invariantnet import Group
from invariantnet.symmetries._closure import as_matrices

dtypes = pytest.mark.parametrize("dtype", TOLERANCE)


def naive_operator(group: Group) -> np.ndarray:
    return matrices(group).mean(axis=0)


@given(any_group)
def test_operator_is_the_mean_action(group):
    operator = inv.reynolds_operator(group, dtype=torch.float64).numpy()
    np.testing.assert_allclose(operator, naive_operator(group), atol=1e-8)


@dtypes
@given(group=any_group)
def test_basis_is_orthonormal_and_spans_the_fixed_space(group, dtype):
    basis = dense(inv.invariant_basis(group, dtype=dtype))
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=TOLERANCE[dtype])
    fixed = null_space(naive_operator(group).T - np.eye(group.dim), rcond=1e-8)
    assert len(basis) == fixed.shape[1], "rank of R = dimension of Λ"
    if len(basis):
        assert subspace_angles(basis.T.astype(np.float64), fixed).max() < 1e-3


@given(index_group)
def test_sparse_path_equals_dense_path(group):
    sparse = dense(inv.invariant_basis(group, dtype=torch.float64))
    matrix_twin = Group(group.name, as_matrices(group.generators), known_order=group.order)
    full = inv.invariant_basis(matrix_twin, dtype=torch.float64).numpy()
    np.testing.assert_allclose(sparse.T @ sparse, full.T @ full, atol=1e-8)
