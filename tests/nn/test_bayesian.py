import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

from invariantnet._system.torch_state import seeded
from invariantnet.nn import BayesianConv2d, BayesianLinear
from invariantnet.nn.bayesian import gaussian_kl

LAYERS = {
    "linear": (lambda: BayesianLinear(nn.Linear(6, 4), prior_std=0.7), (6,)),
    "conv": (lambda: BayesianConv2d(nn.Conv2d(2, 3, 3, stride=2, padding=1), prior_std=0.7), (2, 5, 5)),
}


def test_kl_against_torch_and_monte_carlo():
    with seeded(0):
        mu, sigma = torch.randn(50), torch.rand(50) + 0.1
        ours = float(gaussian_kl(mu, sigma, prior_std=0.7))
        q, p = Normal(mu, sigma), Normal(torch.zeros(50), 0.7)
        assert ours == pytest.approx(float(kl_divergence(q, p).sum()), rel=1e-5)
        w = q.sample((40_000,))
        draws = (q.log_prob(w) - p.log_prob(w)).sum(-1)
    error = float(draws.std() / 200)
    assert abs(float(draws.mean()) - ours) < 4 * error


@pytest.mark.parametrize("name", LAYERS)
def test_outputs_have_the_moments_of_drawn_weights(name):
    """The local trick draws outputs; drawing the weights themselves must give the same mean and variance."""
    make, shape = LAYERS[name]
    with seeded(1):
        layer = make()
        torch.nn.init.constant_(layer.weight_rho, -0.5)
        torch.nn.init.constant_(layer.bias_rho, -1.0)
        x = torch.randn(1, *shape)
        local = layer(x.expand(20_000, *shape)).flatten(1)
        plain = torch.nn.Linear(6, 4) if name == "linear" else torch.nn.Conv2d(2, 3, 3, stride=2, padding=1)
        naive = []
        for _ in range(4000):
            for p in ("weight", "bias"):
                sigma = torch.nn.functional.softplus(getattr(layer, f"{p}_rho"))
                getattr(plain, p).data = (getattr(layer, p) + sigma * torch.randn_like(sigma)).detach()
            naive.append(plain(x).flatten().detach())
        naive = torch.stack(naive)
    scale = naive.std(0)
    assert ((local.mean(0) - naive.mean(0)).abs() < 6 * scale / 4000**0.5).all()
    torch.testing.assert_close(local.std(0), scale, rtol=0.1, atol=0)


@pytest.mark.parametrize("name", LAYERS)
def test_divergence_counts_weights_and_biases(name):
    layer = LAYERS[name][0]()
    expected = sum(
        kl_divergence(Normal(mu, torch.nn.functional.softplus(rho)), Normal(torch.zeros_like(mu), 0.7)).sum()
        for mu, rho in ((layer.weight, layer.weight_rho), (layer.bias, layer.bias_rho))
    )
    torch.testing.assert_close(layer.kl(), expected)
