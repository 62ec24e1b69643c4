r"""What is learned about π on held-out data.

- `PointEstimate`: the maximum of $\log p(D \mid w, \pi) + \log p(\pi)$.
- `DirichletPosterior`: $q(\pi) = \mathrm{Dir}(\beta)$, which maximises
  $E_q[\log p(D \mid w, \pi)] - \mathrm{KL}(q \| p)$, with implicit gradients through its draws.
- `FeaturePosterior`: every feature j has its own scheme $z_j \sim \mathrm{Cat}(\pi)$, with
  $q(z_j) = \mathrm{Cat}(r_j)$; then $q(\pi) = \mathrm{Dir}(\alpha + \sum_j r_j)$.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence
from torch.nn import functional as F

SMALLEST_CONCENTRATION = 1e-3
"""Added to every learned parameter of a Dirichlet: draws of smaller ones underflow."""


class LearnedPi(ABC):
    """What is known about π, as one parameter that Adam learns.

    Args:
        prior: The prior on π.
        start: Initial value of the parameter.
        learning_rate: Adam's rate.
    """

    def __init__(self, prior: Dirichlet, start: Tensor, learning_rate: float) -> None:
        self.prior = prior
        self.parameter = nn.Parameter(start.to(prior.concentration.device))
        self.optimizer = torch.optim.Adam([self.parameter], lr=learning_rate)

    @abstractmethod
    def draw(self) -> tuple[Tensor, Tensor]:
        """Return π to predict with, and the terms of the objective besides the log likelihood."""

    @abstractmethod
    def mean(self, drawn: Tensor) -> Tensor:
        """Return the π that the network should use until the next step, given the last draw."""

    @property
    def concentration(self) -> Tensor | None:
        """Parameters of q(π), if it is a Dirichlet."""
        return None

    @property
    def responsibilities(self) -> Tensor | None:
        """Probability of each scheme for each feature, if features have their own."""
        return None

    def ascend(self, objective: Tensor) -> None:
        """Take one step up the gradient of an objective."""
        (gradient,) = torch.autograd.grad(-objective, [self.parameter])
        self.parameter.grad = gradient
        self.optimizer.step()


class PointEstimate(LearnedPi):
    """The maximum of the posterior, as logits that start at 0."""

    def __init__(self, prior: Dirichlet, learning_rate: float) -> None:
        super().__init__(prior, torch.zeros_like(prior.concentration), learning_rate)

    def draw(self) -> tuple[Tensor, Tensor]:
        pi = F.softmax(self.parameter, dim=-1)
        # With the Jacobian of the softmax, the density is finite everywhere: see `priors.Dirichlet`.
        return pi, (self.prior.concentration * F.log_softmax(self.parameter, dim=-1)).sum()

    def mean(self, drawn: Tensor) -> Tensor:
        return drawn


class DirichletPosterior(LearnedPi):
    """A Dirichlet q(π), which starts almost uniform."""

    def __init__(self, prior: Dirichlet, learning_rate: float) -> None:
        start = torch.ones_like(prior.concentration).expm1().log()  # softplus of it is 1
        super().__init__(prior, start, learning_rate)

    def draw(self) -> tuple[Tensor, Tensor]:
        q = Dirichlet(_positive(self.parameter))
        return q.rsample(), -kl_divergence(q, self.prior)

    def mean(self, drawn: Tensor) -> Tensor:
        return F.normalize(self.concentration, p=1, dim=0)

    @property
    def concentration(self) -> Tensor:
        return _positive(self.parameter.detach())


class FeaturePosterior(LearnedPi):
    """One categorical distribution over schemes per feature, as logits that start at 0."""

    def __init__(self, prior: Dirichlet, learning_rate: float, features: int) -> None:
        start = torch.zeros(features, len(prior.concentration))
        super().__init__(prior, start, learning_rate)

    def draw(self) -> tuple[Tensor, Tensor]:
        pi, beta = F.softmax(self.parameter, dim=-1), self.concentration
        log_pi = torch.digamma(beta) - torch.digamma(beta.sum())
        return pi, (pi * (log_pi - F.log_softmax(self.parameter, dim=-1))).sum()

    def mean(self, drawn: Tensor) -> Tensor:
        return F.normalize(self.concentration, p=1, dim=0)

    @property
    def responsibilities(self) -> Tensor:
        return F.softmax(self.parameter.detach(), dim=-1)

    @property
    def concentration(self) -> Tensor:
        return self.prior.concentration + self.responsibilities.sum(0)


def _positive(parameter: Tensor) -> Tensor:
    return F.softplus(parameter) + SMALLEST_CONCENTRATION
