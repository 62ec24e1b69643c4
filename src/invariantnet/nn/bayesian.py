r"""Bayes by Backprop with the local reparametrisation trick (Blundell et al. 2015, Kingma et al. 2015).

Weights have a factorised Gaussian posterior $q = \mathcal{N}(\mu, \sigma^2)$ and the prior
$p = \mathcal{N}(0, s^2)$. A layer draws its *outputs*, whose mean and variance are linear in those of the
weights, so that every example of a batch has noise of its own.
"""

from abc import abstractmethod
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

INITIAL_RHO = -5.0
"""Initial ρ, with σ = softplus(ρ) = 0.007: small beside the weights, so that training starts as usual."""
SMALLEST_VARIANCE = 1e-12
"""Smallest variance of an output: the square root has no gradient at 0."""
PRIOR_STD = 0.3
"""Standard deviation of the prior of a network that is made Bayesian; the baselines of the paper have 1."""
Network = TypeVar("Network", bound=nn.Module)


def gaussian_kl(
    mu: Float[Tensor, "*shape"], sigma: Float[Tensor, "*shape"], prior_std: float
) -> Float[Tensor, ""]:
    r"""Compute $\mathrm{KL}(q \| p) = \sum \log\frac{s}{\sigma} + \frac{\sigma^2 + \mu^2}{2 s^2} - \frac12$."""
    ratio = (sigma / prior_std) ** 2
    return 0.5 * (ratio + (mu / prior_std) ** 2 - 1 - ratio.log()).sum()


class _Bayesian(nn.Module):
    """Gaussian weights and biases around those of a plain layer; a subclass knows their linear map.

    Args:
        plain: The layer whose weights are the initial means, and whose options are kept.
        prior_std: Standard deviation s of the prior.
    """

    def __init__(self, plain: nn.Linear | nn.Conv2d, prior_std: float = 1.0) -> None:
        super().__init__()
        self.prior_std = prior_std
        self.weight, self.bias = plain.weight, plain.bias
        self.weight_rho = nn.Parameter(torch.full_like(plain.weight, INITIAL_RHO))
        self.bias_rho = None if plain.bias is None else nn.Parameter(torch.full_like(plain.bias, INITIAL_RHO))

    def kl(self) -> Float[Tensor, ""]:
        """Compute KL(q‖p) of weights and biases."""
        of_weights = gaussian_kl(self.weight, F.softplus(self.weight_rho), self.prior_std)
        if self.bias is None or self.bias_rho is None:
            return of_weights
        return of_weights + gaussian_kl(self.bias, F.softplus(self.bias_rho), self.prior_std)

    def forward(self, x: Float[Tensor, "*inputs"]) -> Float[Tensor, "*outputs"]:
        """Draw the outputs."""
        mean = self._apply_to(x, self.weight, self.bias)
        spread = None if self.bias_rho is None else F.softplus(self.bias_rho).square()
        variance = self._apply_to(x.square(), F.softplus(self.weight_rho).square(), spread)
        return mean + variance.clamp_min(SMALLEST_VARIANCE).sqrt() * torch.randn_like(mean)

    @abstractmethod
    def _apply_to(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Apply the plain layer with these weights."""


class BayesianLinear(_Bayesian):
    """`nn.Linear` with a Gaussian posterior over its weights; every call is a new draw."""

    def _apply_to(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear(x, weight, bias)


class BayesianConv2d(_Bayesian):
    """`nn.Conv2d` with a Gaussian posterior over its weights; every call is a new draw."""

    def __init__(self, plain: nn.Conv2d, prior_std: float = 1.0) -> None:
        super().__init__(plain, prior_std)
        self.stride, self.dilation, self.groups = plain.stride, plain.dilation, plain.groups
        self.padding = plain.padding if plain.padding_mode == "zeros" else 0
        self.around = None if plain.padding_mode == "zeros" else plain._reversed_padding_repeated_twice
        self.padding_mode = plain.padding_mode

    def _apply_to(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x = F.pad(x, self.around, self.padding_mode) if self.around else x
        return F.conv2d(x, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def bayesian(network: Network, prior_std: float = PRIOR_STD) -> Network:
    """Give a network Gaussian weights in every `nn.Linear` and every `nn.Conv2d`.

    Other layers stay as they are, subclasses of these two included, since they may use their weights differently.
    A layer that is used twice stays one layer.

    Args:
        network: The network; it is changed in place.
        prior_std: Standard deviation of the prior of the weights.

    Returns:
        The same network.
    """
    replaced: dict[nn.Module, nn.Module] = {}
    for parent in list(network.modules()):
        for name, layer in parent._modules.items():
            if type(layer) is nn.Linear and layer not in replaced:
                replaced[layer] = BayesianLinear(layer, prior_std)
            if type(layer) is nn.Conv2d and layer not in replaced:
                replaced[layer] = BayesianConv2d(layer, prior_std)
            if layer in replaced:
                parent._modules[name] = replaced[layer]
    return network


def mean_weights(network: nn.Module) -> dict[str, Tensor]:
    """Collect the means of the Gaussian weights, and all other parameters and buffers.

    Args:
        network: A network with Bayesian layers.

    Returns:
        A state for the network as it was before `bayesian`.
    """
    spreads = {
        f"{name}.{which}_rho"
        for name, layer in network.named_modules(remove_duplicate=False)
        if isinstance(layer, _Bayesian)
        for which in ("weight", "bias")
    }
    return {name: value for name, value in network.state_dict().items() if name not in spreads}


@torch.no_grad()
def draw_weights(network: nn.Module, count: int, seed: int) -> dict[str, Float[Tensor, "draws ..."]]:
    """Draw all Gaussian weights from q.

    Args:
        network: A network with Bayesian layers.
        count: Number of draws.
        seed: Seed of the draws.

    Returns:
        The draws, by the names of the weights in the plain network.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = {}
    for name, layer in network.named_modules():
        if not isinstance(layer, _Bayesian):
            continue
        for which in ("weight",) if layer.bias is None else ("weight", "bias"):
            mean, rho = getattr(layer, which), getattr(layer, f"{which}_rho")
            noise = torch.randn(count, *mean.shape, generator=generator).to(mean)
            drawn[f"{name}.{which}"] = mean + F.softplus(rho) * noise
    return drawn
