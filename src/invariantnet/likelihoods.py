"""What the outputs of a network say about a target: which class it is, or which number and how surely."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

SMALLEST_ERROR = 1e-3
"""Smallest standard error of a number, in standard deviations of all targets: a density must stay bounded."""
BACKGROUND_ERROR = 3.0
"""Spread of the background prediction of numbers, in standard deviations of all targets: none is a surprise."""
JEFFREYS = 0.5
"""Count that every class starts with: Jeffreys' prior, under which no class is impossible."""
MOST_COLUMNS = 10
"""Columns of the curvature of one output. Each costs a backward pass, so more classes than this are sampled."""


@runtime_checkable
class Likelihood(Protocol):
    """The log density of targets, given the outputs of a network."""

    @property
    def averages_probabilities(self) -> bool:
        """Whether outputs are logits, so that the average over copies is one of probabilities."""

    def log_prob(self, output: Tensor, y: Tensor) -> Tensor:
        """Compute the log density of every target.

        Args:
            output: One row of outputs per target.
            y: The targets.

        Returns:
            One number of nats per target.
        """

    def background(self, output: Tensor, y: Tensor) -> Tensor:
        """Compute the log density of every target under a prediction that uses neither inputs nor examples.

        Args:
            output: One row of outputs per target; only its shape and type matter.
            y: The targets.

        Returns:
            One number of nats per target.
        """

    def guess(self, past: Tensor, weight: Tensor, y: Tensor) -> Tensor:
        """Predict targets from earlier targets alone, without any input.

        Args:
            past: Earlier targets.
            weight: Weight of each of them.
            y: The targets to predict; only their number and range matter.

        Returns:
            One row of outputs per target.
        """

    def score(self, output: Tensor, y: Tensor) -> float:
        """Tell how good predictions are; 1 is perfect.

        Args:
            output: One row of outputs per target.
            y: The targets.

        Returns:
            The score.
        """

    def normalised(self, output: Tensor) -> Tensor:
        """Bring outputs into the form in which the predictions of several networks can be combined.

        Args:
            output: One row of outputs per input.

        Returns:
            Outputs of the same shape that say the same.
        """

    def combined(self, draws: Tensor) -> Tensor:
        """Combine the predictions of several networks.

        Args:
            draws: Normalised outputs; the first axis counts the networks.

        Returns:
            One row of normalised outputs per input.
        """

    def curvature_roots(self, output: Tensor) -> Tensor:
        r"""Compute columns $r$ with $\sum_r r r^\top$ the Fisher information of every output.

        Args:
            output: One row of outputs per input.

        Returns:
            One row per column and input.
        """


@dataclass(frozen=True)
class Categorical:
    """The outputs are logits of classes.

    >>> output = torch.tensor([[0.0, 0.0], [100.0, 0.0]])
    >>> Categorical().log_prob(output, torch.tensor([0, 0])).exp()
    tensor([0.5000, 1.0000])
    """

    averages_probabilities: bool = True

    def log_prob(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Compute the log probability of every label."""
        return -F.cross_entropy(output, y, reduction="none")

    def background(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Give all classes the same probability."""
        return torch.full_like(output[:, 0], -math.log(output.shape[1]))

    def guess(
        self, past: Int[Tensor, " m"], weight: Float[Tensor, " m"], y: Int[Tensor, " n"]
    ) -> Float[Tensor, "n classes"]:
        """Give every class the share that it has among the earlier labels."""
        classes = int(torch.cat([past, y]).max()) + 1
        counts = torch.bincount(past.cpu(), weight.cpu().double(), classes) + JEFFREYS
        return counts.log().to(y.device).expand(len(y), -1)

    def score(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> float:
        """Compute the accuracy."""
        return float((output.argmax(-1) == y).double().mean())

    def normalised(self, output: Tensor) -> Tensor:
        """Compute log probabilities, in 32 bits at least: in 16 bits they would not sum to 1."""
        return F.log_softmax(output, dim=-1, dtype=torch.promote_types(output.dtype, torch.float32))

    def combined(self, draws: Tensor) -> Tensor:
        """Compute the log of the mean probability."""
        return draws.logsumexp(0) - math.log(len(draws))

    def curvature_roots(self, output: Float[Tensor, "n classes"]) -> Float[Tensor, "columns n classes"]:
        r"""Compute $\sqrt{p_c} (e_c - p)$ for every class; of many classes, for some that are drawn from $p$."""
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
    r"""The outputs are a mean, and the number whose softplus is its standard error; targets are of order one.

    >>> output = torch.tensor([[2.0, 0.0]])
    >>> Gaussian().score(output, torch.tensor([2.0]))
    1.0
    """

    averages_probabilities: bool = False

    def log_prob(self, output: Float[Tensor, "n 2"], y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Compute the log density of every target."""
        return _log_normal(y - output[:, 0], self.error(output))

    def background(self, output: Float[Tensor, "n 2"], y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Expect any number within a few standard deviations of all targets."""
        return _log_normal(y, torch.full_like(y, BACKGROUND_ERROR))

    def guess(
        self, past: Float[Tensor, " m"], weight: Float[Tensor, " m"], y: Float[Tensor, " n"]
    ) -> Float[Tensor, "n 2"]:
        """Predict the mean of the earlier targets, with their standard deviation as its error."""
        past, share = past.double(), (weight / weight.sum()).double()
        mean = share @ past
        return self._output(mean, (share @ (past - mean).square()).sqrt()).expand(len(y), -1)

    def score(self, output: Float[Tensor, "n 2"], y: Float[Tensor, " n"]) -> float:
        """Compute the share of the variance that the means explain."""
        variance = float(y.double().var(correction=0))
        error = float((output[:, 0] - y).double().square().mean())
        return 1 - error / variance if variance > 0 else float(error == 0)

    def normalised(self, output: Tensor) -> Tensor:
        """Return the outputs as they are: means and errors can be combined."""
        return output

    def combined(self, draws: Float[Tensor, "draws n 2"]) -> Float[Tensor, "n 2"]:
        """Take the mean and the variance of the mixture of all predictions."""
        mean = draws[..., 0].mean(0)
        error = self.error(draws)
        variance = (error.square() + draws[..., 0].square()).mean(0) - mean.square()
        # Rounding can make the variance of equal predictions negative.
        return self._output(mean, variance.clamp_min(0).sqrt())

    def curvature_roots(self, output: Float[Tensor, "n 2"]) -> Float[Tensor, "2 n 2"]:
        r"""Compute $e_1 / \sigma$ for the mean, $\sqrt2\, \sigma' e_2 / \sigma$ for the number that gives σ."""
        error = self.error(output)
        zero = torch.zeros_like(error)
        slope = math.sqrt(2) * torch.sigmoid(output[:, 1])
        return torch.stack([torch.stack([1 / error, zero], -1), torch.stack([zero, slope / error], -1)])

    def error(self, output: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n"]:
        """Compute the standard error of every mean.

        Args:
            output: Outputs of a network.

        Returns:
            One error per output, in units of the targets.
        """
        return F.softplus(output[..., 1]) + SMALLEST_ERROR

    def _output(self, mean: Float[Tensor, "*n"], error: Float[Tensor, "*n"]) -> Float[Tensor, "*n 2"]:
        """Find the outputs that give this mean and this error: the inverse of `error`."""
        excess = (error - SMALLEST_ERROR).clamp_min(1e-3 * SMALLEST_ERROR)
        return torch.stack([mean, excess + torch.log(-torch.expm1(-excess))], dim=-1)


def _log_normal(difference: Tensor, error: Tensor) -> Tensor:
    return -0.5 * (difference / error).square() - error.log() - 0.5 * math.log(2 * math.pi)
