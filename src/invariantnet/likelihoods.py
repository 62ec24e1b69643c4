"""What the outputs of a network say about a target: which class, or which number and how surely."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

SMALLEST_ERROR = 1e-3
BACKGROUND_ERROR = 3.0
MOST_COLUMNS = 10


@runtime_checkable
class Likelihood(Protocol):
    """The log density of targets, given a network's outputs."""

    @property
    def averages_probabilities(self) -> bool:
        """Whether outputs are logits, so that their average over transformed inputs is one of probabilities."""

    def log_prob(self, output: Tensor, y: Tensor) -> Tensor:
        """Of every target."""

    def background(self, output: Tensor, y: Tensor) -> Tensor:
        """Log density of every target for one who knows nothing."""

    def guess(self, past: Tensor, weight: Tensor, y: Tensor) -> Tensor:
        """Outputs for every target of one who knows earlier targets, each with its weight, but no input."""

    def score(self, output: Tensor, y: Tensor) -> float:
        """How good the predictions are; 1 is perfect."""

    def normalised(self, output: Tensor) -> Tensor:
        """Outputs in the form in which draws of stochastic networks can be combined."""

    def combined(self, draws: Tensor) -> Tensor:
        """One prediction from several normalised ones along the first axis."""

    def curvature_roots(self, output: Tensor) -> Tensor:
        r"""Columns $r$ with $\sum_r r r^\top$ the Fisher information of every output."""


@dataclass(frozen=True)
class Categorical:
    """The outputs are logits of classes.

    >>> output = torch.tensor([[0.0, 0.0], [100.0, 0.0]])
    >>> Categorical().log_prob(output, torch.tensor([0, 0])).exp()
    tensor([0.5000, 1.0000])
    """

    averages_probabilities: bool = True

    def log_prob(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Log probability of every label."""
        return -F.cross_entropy(output, y, reduction="none")

    def background(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Every class is as probable as every other."""
        return torch.full_like(output[:, 0], -math.log(output.shape[1]))

    def guess(
        self, past: Int[Tensor, " m"], weight: Float[Tensor, " m"], y: Int[Tensor, " n"]
    ) -> Float[Tensor, "n classes"]:
        """Every class is as probable as it was frequent."""
        classes = int(torch.cat([past, y]).max()) + 1
        counts = torch.bincount(past.cpu(), weight.cpu().double(), classes) + 0.5  # Jeffreys' prior
        return counts.log().to(y.device).expand(len(y), -1)

    def score(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> float:
        """Accuracy."""
        return float((output.argmax(-1) == y).double().mean())

    def normalised(self, output: Tensor) -> Tensor:
        """Log probabilities, in 32 bits at least: 8 of a mantissa are too few for them to sum to 1."""
        return F.log_softmax(output, dim=-1, dtype=torch.promote_types(output.dtype, torch.float32))

    def combined(self, draws: Tensor) -> Tensor:
        """The mean probability."""
        return draws.logsumexp(0) - math.log(len(draws))

    def curvature_roots(self, output: Float[Tensor, "n classes"]) -> Float[Tensor, "columns n classes"]:
        r"""$\sqrt{p_c} (e_c - p)$ for every class; of many classes, a few that are drawn from $p$."""
        p = F.softmax(output, dim=-1)
        classes = p.shape[1]
        if classes <= MOST_COLUMNS:
            return p.mT[:, :, None].sqrt() * (torch.eye(classes).to(p)[:, None] - p)
        # Drawn on the CPU, so that every device gives the same columns.
        generator = torch.Generator().manual_seed(0)
        drawn = torch.multinomial(p.cpu(), MOST_COLUMNS, replacement=True, generator=generator).to(p.device)
        return (F.one_hot(drawn.mT, classes) - p) / math.sqrt(MOST_COLUMNS)


@dataclass(frozen=True)
class Gaussian:
    r"""The outputs are a mean, and its standard error through a softplus; targets are of order one.

    >>> output = torch.tensor([[2.0, 0.0]])
    >>> Gaussian().score(output, torch.tensor([2.0]))
    1.0
    """

    averages_probabilities: bool = False

    def log_prob(self, output: Float[Tensor, "n 2"], y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Log density of every target."""
        return _normal(y - output[:, 0], self.error(output))

    def background(self, output: Float[Tensor, "n 2"], y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Anything within a few standard deviations of all targets."""
        return _normal(y, torch.full_like(y, BACKGROUND_ERROR))

    def guess(
        self, past: Float[Tensor, " m"], weight: Float[Tensor, " m"], y: Float[Tensor, " n"]
    ) -> Float[Tensor, "n 2"]:
        """The mean and the spread of what was there before."""
        past, share = past.double(), (weight / weight.sum()).double()
        mean = share @ past
        return self._output(mean, (share @ (past - mean).square()).sqrt()).expand(len(y), -1)

    def score(self, output: Float[Tensor, "n 2"], y: Float[Tensor, " n"]) -> float:
        """The share of the variance that is explained."""
        variance = float(y.double().var(correction=0))
        error = float((output[:, 0] - y).double().square().mean())
        return 1 - error / variance if variance > 0 else float(error == 0)

    def normalised(self, output: Tensor) -> Tensor:
        """As they are."""
        return output

    def combined(self, draws: Float[Tensor, "draws n 2"]) -> Float[Tensor, "n 2"]:
        """The normal distribution with the mean and the variance of the mixture."""
        mean = draws[..., 0].mean(0)
        error = self.error(draws)
        variance = (error.square() + draws[..., 0].square()).mean(0) - mean.square()
        # With one draw this is its own error, up to rounding.
        return self._output(mean, variance.clamp_min(0).sqrt())

    def curvature_roots(self, output: Float[Tensor, "n 2"]) -> Float[Tensor, "2 n 2"]:
        r"""$e_1 / \sigma$, and $\sqrt2\, \sigma' e_2 / \sigma$ for the number that gives σ."""
        error = self.error(output)
        zero = torch.zeros_like(error)
        slope = math.sqrt(2) * torch.sigmoid(output[:, 1])
        return torch.stack([torch.stack([1 / error, zero], -1), torch.stack([zero, slope / error], -1)])

    def _output(self, mean: Float[Tensor, "*n"], error: Float[Tensor, "*n"]) -> Float[Tensor, "*n 2"]:
        excess = (error - SMALLEST_ERROR).clamp_min(1e-3 * SMALLEST_ERROR)
        return torch.stack([mean, excess + torch.log(-torch.expm1(-excess))], dim=-1)

    def error(self, output: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n"]:
        """Standard error of the mean."""
        return F.softplus(output[..., 1]) + SMALLEST_ERROR


def _normal(difference: Tensor, error: Tensor) -> Tensor:
    return -0.5 * (difference / error).square() - error.log() - 0.5 * math.log(2 * math.pi)
