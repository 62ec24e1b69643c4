r"""Bayes by Backprop with the local reparametrisation trick (Blundell et al. 2015, Kingma et al. 2015).

Weights have a factorised Gaussian posterior $q = \mathcal{N}(\mu, \sigma^2)$ and the prior
$p = \mathcal{N}(0, s^2)$. A layer draws its *outputs*, whose mean and variance are linear in those of the
weights, so that every example of a batch has noise of its own.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

INITIAL_RHO = -5.0
PRIOR_STD = 0.3
"""Of the weights of a network that is made Bayesian; the paper's baselines have 1."""


def gaussian_kl(
    mu: Float[Tensor, "*shape"], sigma: Float[Tensor, "*shape"], prior_std: float
) -> Float[Tensor, ""]:
    r"""$\mathrm{KL}(q \| p) = \sum \log\frac{s}{\sigma} + \frac{\sigma^2 + \mu^2}{2 s^2} - \frac12$."""
    ratio = (sigma / prior_std) ** 2
    return 0.5 * (ratio + (mu / prior_std) ** 2 - 1 - ratio.log()).sum()


class _Bayesian(nn.Module):
    """Gaussian weights and biases; a subclass says which linear map they make."""

    def __init__(self, weight_shape: tuple[int, ...], prior_std: float) -> None:
        super().__init__()
        fan_in = math.prod(weight_shape[1:])
        bound = 1 / math.sqrt(fan_in)
        self.prior_std = prior_std
        self.weight = nn.Parameter(torch.empty(weight_shape).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(weight_shape[0]).uniform_(-bound, bound))
        self.weight_rho = nn.Parameter(torch.full(weight_shape, INITIAL_RHO))
        self.bias_rho = nn.Parameter(torch.full(weight_shape[:1], INITIAL_RHO))

    def kl(self) -> Float[Tensor, ""]:
        """KL(q‖p) of weights and biases."""
        return gaussian_kl(self.weight, F.softplus(self.weight_rho), self.prior_std) + gaussian_kl(
            self.bias, F.softplus(self.bias_rho), self.prior_std
        )

    def _draw(self, apply: Callable[[Tensor, Tensor, Tensor], Tensor], x: Tensor) -> Tensor:
        mean = apply(x, self.weight, self.bias)
        variance = apply(x.square(), F.softplus(self.weight_rho).square(), F.softplus(self.bias_rho).square())
        return mean + variance.clamp_min(1e-12).sqrt() * torch.randn_like(mean)


class BayesianLinear(_Bayesian):
    """`nn.Linear` with a Gaussian posterior over its weights; every call is a new draw."""

    def __init__(self, in_features: int, out_features: int, prior_std: float = 1.0) -> None:
        super().__init__((out_features, in_features), prior_std)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        """Draw the outputs."""
        return self._draw(F.linear, x)


class BayesianConv2d(_Bayesian):
    """`nn.Conv2d` with a Gaussian posterior over its weights; every call is a new draw."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        prior_std: float = 1.0,
    ) -> None:
        super().__init__((out_channels, in_channels, kernel_size, kernel_size), prior_std)
        self.stride, self.padding = stride, padding

    def forward(self, x: Float[Tensor, "batch channels h w"]) -> Float[Tensor, "batch filters h2 w2"]:
        """Draw the outputs."""
        return self._draw(lambda x, w, b: F.conv2d(x, w, b, self.stride, self.padding), x)


def bayesian(network: nn.Module, prior_std: float = PRIOR_STD) -> nn.Module:
    """The network with Gaussian weights, in every linear and every convolutional layer; others stay as they are.

    Convolutions must be plain: square, undilated and ungrouped.
    """
    for name, layer in network.named_children():
        setattr(network, name, _bayesian_layer(layer, prior_std) or bayesian(layer, prior_std))
    return network


def _bayesian_layer(layer: nn.Module, prior_std: float) -> _Bayesian | None:
    if isinstance(layer, nn.Linear):
        return BayesianLinear(layer.in_features, layer.out_features, prior_std)
    if not isinstance(layer, nn.Conv2d):
        return None
    if layer.groups > 1 or set(layer.dilation) != {1} or len(set(layer.kernel_size)) > 1:
        raise ValueError("Gaussian weights are for plain, square convolutions: use uncertainty='ensemble'.")
    return BayesianConv2d(
        layer.in_channels,
        layer.out_channels,
        layer.kernel_size[0],
        stride=layer.stride,
        padding=layer.padding,
        prior_std=prior_std,
    )


@torch.no_grad()
def draw_weights(network: nn.Module, count: int, seed: int) -> dict[str, Float[Tensor, "draws ..."]]:
    """Draws from q of all Gaussian weights, under the names that they have in a plain network."""
    generator = torch.Generator().manual_seed(seed)
    drawn = {}
    for name, layer in network.named_modules():
        if not isinstance(layer, _Bayesian):
            continue
        for which in ("weight", "bias"):
            mean, rho = getattr(layer, which), getattr(layer, f"{which}_rho")
            noise = torch.randn(count, *mean.shape, generator=generator).to(mean)
            drawn[f"{name}.{which}"] = mean + F.softplus(rho) * noise
    return drawn
