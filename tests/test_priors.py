import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from invariantnet.priors import Dirichlet, as_prior

alphas = st.lists(st.floats(0.2, 5), min_size=2, max_size=4)


@given(alphas, st.integers(0, 1000))
def test_simplex_density_is_scipys(alpha, seed):
    pi = np.random.default_rng(seed).dirichlet(np.full(len(alpha), 2.0))
    ours = Dirichlet(tuple(alpha)).log_density(torch.from_numpy(pi).log())
    assert float(ours) == pytest.approx(stats.dirichlet(alpha).logpdf(pi), abs=1e-6)


def test_two_schemes_are_a_beta():
    ours = Dirichlet((0.5, 1.5)).log_density(torch.tensor([0.3, 0.7], dtype=torch.float64).log())
    assert float(ours) == pytest.approx(stats.beta(0.5, 1.5).logpdf(0.3))


def test_density_of_logits_integrates_to_one():
    prior = Dirichlet((0.5, 0.5), "logits")

    def density(logit):
        logits = torch.tensor([logit, 0.0], dtype=torch.float64)
        return float(prior.log_density(logits.log_softmax(-1)).exp())

    assert integrate.quad(density, -60, 60)[0] == pytest.approx(1, abs=1e-4)


def test_jeffreys_is_a_corner_on_the_simplex_but_not_in_logits():
    path = torch.tensor([[5.0, 0.0], [20.0, 0.0], [60.0, 0.0]], dtype=torch.float64).log_softmax(-1)
    simplex = [float(Dirichlet((0.5, 0.5)).log_density(p)) for p in path]
    logits = [float(Dirichlet((0.5, 0.5), "logits").log_density(p)) for p in path]
    assert simplex == sorted(simplex)
    assert logits == sorted(logits, reverse=True)


def test_a_flat_direction_says_nothing_at_a_corner():
    assert float(Dirichlet((1.0, 1.0)).log_density(torch.tensor([0.0, -torch.inf]))) == 0


def test_defaults_are_the_papers():
    assert as_prior(None, 2).alpha == (0.5, 0.5)
    assert as_prior(None, 3).alpha == (2.0, 2.0, 2.0)
    assert as_prior(1.0, 3).alpha == (1.0, 1.0, 1.0)
    assert as_prior([1.0, 2.0], 2).alpha == (1.0, 2.0)


@pytest.mark.parametrize("alpha", [(0.0, 1.0), (-1.0, 1.0), (1.0,), (float("nan"), 1.0), (float("inf"), 1.0)])
def test_bad_alpha(alpha):
    with pytest.raises(ValueError, match="no Dirichlet parameter"):
        Dirichlet(alpha)


def test_wrong_number_of_alphas():
    with pytest.raises(ValueError, match="2 parameters, but there are 3"):
        as_prior((1.0, 1.0), 3)
