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
        stride: int = 1,
        padding: int = 0,
        prior_std: float = 1.0,
    ) -> None:
        super().__init__((out_channels, in_channels, kernel_size, kernel_size), prior_std)
        self.stride, self.padding = stride, padding

    def forward(self, x: Float[Tensor, "batch channels h w"]) -> Float[Tensor, "batch filters h2 w2"]:
        """Draw the outputs."""
        return self._draw(lambda x, w, b: F.conv2d(x, w, b, self.stride, self.padding), x)
