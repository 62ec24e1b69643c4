"""Classes."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from invariantnet.likelihoods.base import (
    GRID,
    LOG_TEMPERATURE,
    LOG_TEMPERATURE_SPREAD,
    Calibration,
    log_normal_prior,
    most_probable,
)

JEFFREYS = 0.5
"""Count that every class starts with: Jeffreys' prior, under which no class is impossible."""
MOST_COLUMNS = 10
"""Columns of the curvature of one output. Each costs a backward pass, so more classes than this are sampled."""


@dataclass(frozen=True)
class Categorical:
    """The outputs are logits of classes.

    >>> output = torch.tensor([[0.0, 0.0], [100.0, 0.0]])
    >>> Categorical().log_prob(output, torch.tensor([0, 0])).exp()
    tensor([0.5000, 1.0000])
    """

    averages_probabilities: bool = True

    def log_prob(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Compute the log probability of every label.

        Args:
            output: One row of logits per label.
            y: The labels.

        Returns:
            One number of nats per label.
        """
        return -F.cross_entropy(output, y, reduction="none")

    def objective(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Compute what training maximises: the log probability of every label.

        Args:
            output: One row of logits per label.
            y: The labels.

        Returns:
            One number of nats per label.
        """
        return self.log_prob(output, y)

    def calibration(
        self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"], weight: Float[Tensor, " n"] | None
    ) -> Calibration:
        """Find the temperature by which logits are divided.

        Args:
            output: One row of logits per label.
            y: The labels; the network did not learn from them.
            weight: Weight of each of them; None if all count alike.

        Returns:
            One over the temperature as the factor of every logit, and no summand.
        """
        log_prior = log_normal_prior(LOG_TEMPERATURE, LOG_TEMPERATURE_SPREAD)
        output = output.double().cpu()
        tried = torch.stack([self.log_prob(output * math.exp(-t), y.cpu()) for t in GRID.tolist()])
        best = most_probable(tried, log_prior, weight)[0]
        return Calibration(torch.full(output.shape[1:], math.exp(-best)), torch.zeros(output.shape[1:]))

    def background(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Give all classes the same probability.

        Args:
            output: One row per label; only its shape and type matter.
            y: The labels.

        Returns:
            The same number of nats for each label.
        """
        return torch.full_like(output[:, 0], -math.log(output.shape[1]))

    def guess(
        self, past: Int[Tensor, " m"], weight: Float[Tensor, " m"], y: Int[Tensor, " n"]
    ) -> Float[Tensor, "n classes"]:
        """Give every class the share that it has among the earlier labels.

        Args:
            past: Earlier labels.
            weight: Weight of each of them.
            y: The labels to predict; only their number and the largest of them matter.

        Returns:
            One row of logits per label, all equal.
        """
        classes = int(torch.cat([past, y]).max()) + 1
        counts = torch.bincount(past.cpu(), weight.cpu().double(), classes) + JEFFREYS
        return counts.log().to(y.device).expand(len(y), -1)

    def score(self, output: Float[Tensor, "n classes"], y: Int[Tensor, " n"]) -> float:
        """Compute the accuracy.

        Args:
            output: One row of logits per label.
            y: The labels.

        Returns:
            The share of labels that are most probable.
        """
        return float((output.argmax(-1) == y).double().mean())

    def normalised(self, output: Tensor) -> Tensor:
        """Compute log probabilities, in 32 bits at least: in 16 bits they would not sum to 1.

        Args:
            output: One row of logits per input.

        Returns:
            One row of log probabilities per input.
        """
        return F.log_softmax(output, dim=-1, dtype=torch.promote_types(output.dtype, torch.float32))

    def combined(self, draws: Tensor) -> Tensor:
        """Compute the log of the mean probability.

        Args:
            draws: Log probabilities; the first axis counts the networks.

        Returns:
            One row of log probabilities per input.
        """
        return draws.logsumexp(0) - math.log(len(draws))

    def curvature_roots(self, output: Float[Tensor, "n classes"]) -> Float[Tensor, "columns n classes"]:
        r"""Compute $\sqrt{p_c} (e_c - p)$ for every class; of many classes, for some that are drawn from $p$.

        Args:
            output: One row of logits per input.

        Returns:
            One row per column and input.
        """
        p = F.softmax(output, dim=-1)
        classes = p.shape[1]
        if classes <= MOST_COLUMNS:
            return p.mT[:, :, None].sqrt() * (torch.eye(classes).to(p)[:, None] - p)
        # Drawn on the CPU, so that every device gives the same columns.
        generator = torch.Generator().manual_seed(0)
        drawn = torch.multinomial(p.cpu(), MOST_COLUMNS, replacement=True, generator=generator).to(p.device)
        return (F.one_hot(drawn.mT, classes) - p) / math.sqrt(MOST_COLUMNS)
