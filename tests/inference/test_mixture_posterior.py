"""The posterior over π."""

import sys

import numpy as np
import pytest
import torch
from scipy import stats

from invariantnet.inference import SymmetryPosterior
from invariantnet.inference.mixture_posterior import MixturePosterior, mixture_posterior

NAMES = ("trivial", "rot90", "flips")


def labels(n, share, seed=0):
    """Each scheme predicts one of two labels for every input; the label follows a scheme drawn for the input."""
    rng = np.random.default_rng(seed)
    predicted = rng.beta(0.2, 0.2, (len(share), n)).clip(0.001, 0.999)
    scheme = rng.choice(len(share), size=n, p=share)
    label = rng.random(n) < predicted[scheme, np.arange(n)]
    return np.log(np.where(label, predicted, 1 - predicted))


def exact_means(log_likelihood, alpha, weight=1.0, n=200):
    """Integrate over a grid on the simplex of three schemes."""
    p = torch.from_numpy(np.exp(log_likelihood).T.copy())
    a, b = np.meshgrid(*2 * [(np.arange(n) + 0.5) / n], indexing="ij")
    inside = a + b < 1
    pi = torch.from_numpy(np.stack([a[inside], b[inside], 1 - a[inside] - b[inside]], axis=1))
    density = (torch.log(pi @ p.mT) * weight).sum(-1) + ((torch.tensor(alpha) - 1) * pi.log()).sum(-1)
    mass = (density - density.max()).exp()
    return ((mass[:, None] * pi).sum(0) / mass.sum()).numpy()


@pytest.mark.parametrize("alpha", [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (0.5, 0.5, 0.5)])
def test_variational_posterior_against_the_exact_one(alpha):
    values = labels(60, (0.7, 0.2, 0.1))
    found = mixture_posterior(values, NAMES, alpha=alpha)
    np.testing.assert_allclose(found.mean, exact_means(values, alpha), atol=0.02)
    assert found.mean.sum() == pytest.approx(1)
    assert (found.r_hat < 1.01).all()
    assert found.method == "variational"
    np.testing.assert_allclose(np.divide(found.concentration, sum(found.concentration)), found.mean, atol=0.01)


def test_nuts_agrees_with_the_exact_and_the_variational_posterior(monkeypatch):
    """With weighted labels."""
    monkeypatch.setattr("invariantnet.inference.mixture_posterior.SAMPLES", 600)
    monkeypatch.setattr("invariantnet.inference.mixture_posterior.WARMUP", 100)
    values, weight = labels(40, (0.8, 0.1, 0.1), seed=1), np.linspace(0.5, 2.0, 40)
    sampled, fitted = (mixture_posterior(values, NAMES, weight=weight, method=m) for m in ("nuts", "variational"))
    exact = exact_means(values, (1.0, 1.0, 1.0), torch.from_numpy(weight))
    assert (sampled.method, sampled.concentration, sampled.samples.shape) == ("nuts", None, (2, 300, 3))
    error = sampled.samples.std((0, 1)) / np.sqrt(sampled.effective_sample_size)
    assert (abs(sampled.mean - exact) < 5 * error + 0.005).all()
    np.testing.assert_allclose(fitted.mean, exact, atol=0.02)
    np.testing.assert_allclose(fitted.interval(), sampled.interval(), atol=0.06)
    assert (sampled.r_hat < 1.05).all()
    assert (sampled.effective_sample_size > 100).all()


def test_more_labels_narrow_the_interval_around_the_truth():
    few, many = (mixture_posterior(labels(n, (0.9, 0.05, 0.05)), NAMES).interval()[0] for n in (30, 1000))
    assert many[1] - many[0] < 0.4 * (few[1] - few[0])
    assert many[0] < 0.9 < many[1]


def test_without_information_the_posterior_is_the_prior():
    found = mixture_posterior(np.zeros((3, 50)), NAMES, alpha=(2.0, 1.0, 1.0))
    np.testing.assert_allclose(found.mean, [0.5, 0.25, 0.25], atol=0.02)


def test_effective_sample_size_and_r_hat():
    rng = np.random.default_rng(0)
    independent = rng.dirichlet(np.ones(3), size=(2, 2000))
    slow = np.zeros((2, 2000, 1))
    for t in range(1, 2000):
        slow[:, t] = 0.9 * slow[:, t - 1] + rng.normal(size=(2, 1))
    free = MixturePosterior(NAMES, independent, "nuts")
    assert (free.effective_sample_size > 3000).all()
    assert (free.r_hat < 1.01).all()
    # An autoregression of 0.9 is worth 4000 · (1 − 0.9) / (1 + 0.9) independent draws.
    tied = MixturePosterior(("x",), slow, "nuts").effective_sample_size[0]
    assert tied == pytest.approx(4000 / 19, rel=0.5)
    assert MixturePosterior(("x",), slow / 1000, "nuts").effective_sample_size[0] == pytest.approx(tied)
    apart = independent + np.array([0.0, 0.5])[:, None, None]
    assert (MixturePosterior(NAMES, apart, "nuts").r_hat > 1.2).all()


@pytest.mark.parametrize("draws", [40, 41])
@pytest.mark.parametrize("memory", [0.7, -0.7])
def test_effective_sample_size_against_a_plain_loop(draws, memory):
    """Sum pairs of autocorrelations until a pair is not positive, each at most as large as the pair before it."""
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(2, draws, 2))
    for t in range(1, draws):
        samples[:, t, 0] += memory * samples[:, t - 1, 0]
    found = MixturePosterior(("x", "y"), samples, "nuts").effective_sample_size
    for column in (0, 1):
        chains = [chain - chain.mean() for chain in samples[..., column]]
        covariance = [sum(c[: draws - lag] @ c[lag:] for c in chains) for lag in range(draws)]
        total, smallest = 0.0, np.inf
        for lag in range(0, draws - 1, 2):
            pair = (covariance[lag] + covariance[lag + 1]) / covariance[0]
            if pair <= 0:
                break
            smallest = min(smallest, pair)
            total += smallest
        expected = 2 * draws / max(2 * total - 1, 1 / np.log10(2 * draws))
        assert found[column] == pytest.approx(expected)


@pytest.mark.parametrize("draws", [10, 11])
def test_r_hat_against_a_plain_loop(draws):
    """Each chain is cut in two, so that a chain that drifts disagrees with itself."""
    rng = np.random.default_rng(0)
    samples = rng.random((2, draws, 1)) + np.linspace(0, 1, draws)[:, None]
    halves = [half for chain in samples[..., 0] for half in (chain[: draws // 2], chain[-(draws // 2) :])]
    n = draws // 2
    within = sum(half.var(ddof=1) for half in halves) / 4
    means = np.array([half.mean() for half in halves])
    between = n * sum((means - means.mean()) ** 2) / 3
    expected = np.sqrt(((n - 1) / n * within + between / n) / within)
    found = MixturePosterior(("x",), samples, "nuts").r_hat
    assert found == pytest.approx([expected])


def test_interval_against_scipy():
    found = mixture_posterior(np.zeros((2, 1)), NAMES[:2], alpha=(8.0, 2.0))
    np.testing.assert_allclose(found.interval(0.9)[0], stats.beta(8, 2).ppf([0.05, 0.95]), atol=0.03)


def test_the_prior_is_uniform_by_default(monkeypatch):
    monkeypatch.setattr("invariantnet.inference.mixture_posterior.STEPS", 20)
    stored = SymmetryPosterior(
        NAMES, (1, 4, 4), (1.0, 0.0, 0.0), (0.0,) * 3, (0.0,) * 3, 10, pointwise=labels(10, (0.7, 0.2, 0.1))
    )
    expected = mixture_posterior(stored.pointwise, NAMES, alpha=1.0, seed=0)
    np.testing.assert_array_equal(stored.over_schemes().samples, expected.samples)


def test_nuts_without_pyro_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyro", None)
    with pytest.raises(ValueError, match=r"pyro is missing: pip install 'invariantnet\[bayes\]'"):
        mixture_posterior(np.zeros((2, 3)), NAMES[:2], method="nuts")


def test_what_cannot_be_computed_is_refused(annotations_unchecked):
    with pytest.raises(ValueError, match="method 'magic' is unknown: choose among variational, nuts"):
        mixture_posterior(np.zeros((2, 3)), NAMES[:2], method="magic")
    with pytest.raises(ValueError, match="no label was predicted by every hypothesis"):
        mixture_posterior(np.zeros((2, 0)), NAMES[:2])
    stored = SymmetryPosterior(NAMES, (1, 4, 4), (1.0, 0.0, 0.0), (0.0,) * 3, (0.0,) * 3, 10)
    with pytest.raises(ValueError, match="fit again"):
        stored.over_schemes()


def test_a_label_of_weight_two_counts_as_two():
    values = labels(60, (0.7, 0.2, 0.1))
    twice = mixture_posterior(np.concatenate([values, values], axis=1), NAMES)
    heavy = mixture_posterior(values, NAMES, weight=np.full(60, 2.0))
    assert heavy.concentration == pytest.approx(twice.concentration)
