"""Laws of the Reynolds operator, of its fixed space and of mixtures of measures, over all groups."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import CATALOGUE_GROUPS, TOLERANCE, any_group, dense, label, matrix_groups

import invariantnet as inv
from invariantnet.symmetries.group import transform
from invariantnet.symmetries.measure import Measure

dtypes = pytest.mark.parametrize("dtype", TOLERANCE)


@dtypes
@given(group=any_group)
def test_operator_is_an_invariant_projection(group, dtype):
    operator = inv.reynolds_operator(group, dtype=dtype)
    close = {"rtol": 0, "atol": 10 * TOLERANCE[dtype]}
    torch.testing.assert_close(operator @ operator, operator, **close)
    x = torch.randn(group.dim, dtype=dtype, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(group.act(x) @ operator.mT, (operator @ x).expand(group.order, -1), **close)
    values = np.linalg.eigvals(operator.numpy())
    assert np.minimum(np.abs(values), np.abs(values - 1)).max() < 1e-3


@pytest.mark.parametrize("group", [g for g in CATALOGUE_GROUPS if g.is_permutation_group], ids=label)
def test_one_basis_vector_per_orbit(group):
    basis = inv.invariant_basis(group, orthonormal=False)
    assert basis.layout == torch.sparse_csr
    indicators = basis.to_dense()
    labels = group.orbits()
    assert torch.equal(indicators.sum(0), torch.ones(group.dim)), "every input is in exactly one orbit"
    assert torch.equal(indicators.argmax(0), labels)


@given(any_group)
def test_complement_is_what_the_basis_leaves_over(group):
    basis = dense(inv.invariant_basis(group, dtype=torch.float64))
    rest = dense(inv.complement_basis(group, dtype=torch.float64))
    both = np.concatenate([basis, rest])
    np.testing.assert_allclose(both @ both.T, np.eye(group.dim), atol=1e-9)


@given(
    st.lists(st.sampled_from([g for g in CATALOGUE_GROUPS if g.shape == (2, 3, 3)]), min_size=1, max_size=3),
    st.integers(0, 99),
)
def test_weights_are_those_of_the_mixture(candidates, seed):
    pi = torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(len(candidates)))).float()
    measure = Measure.of(candidates)
    weights = measure.weights(pi)
    assert float(weights.sum()) == pytest.approx(1, abs=1e-5)
    x = torch.randn(18, generator=torch.Generator().manual_seed(seed))
    mean = (weights[:, None] * transform(x, measure.elements)).sum(0)
    expected = sum(p * g.act(x).mean(0) for p, g in zip(pi, candidates, strict=True))
    torch.testing.assert_close(mean, expected, atol=1e-5, rtol=1e-4)
    assert len(measure.elements.unique(dim=0)) == len(measure.elements)


@given(matrix_groups())
def test_matrix_elements_are_shared(group):
    assert len(Measure.of([group, group]).elements) == group.order
