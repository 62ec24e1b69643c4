"""What training maximises: a sum of named terms, each per example."""

import functools
import operator
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from invariantnet._system.torch_state import computing_in
from invariantnet.choices import Precision
from invariantnet.likelihoods import Categorical, Likelihood


@runtime_checkable
class HasLogPrior(Protocol):
    """A module with a prior on its π."""

    @property
    def learns_pi(self) -> bool:
        """Whether π is learned rather than given."""

    def log_prior(self) -> Tensor:
        """Log density of the prior at the current π."""


@runtime_checkable
class HasKL(Protocol):
    """A layer with stochastic weights."""

    def kl(self) -> Tensor:
        """Divergence of the posterior of the weights from their prior."""


class LogPosterior:
    r"""$\frac1N \big(\sum_i \log p(y_i \mid x_i, \pi, A, W) + \log p(\pi \mid \alpha) - \mathrm{KL}(q \| p)\big)$.

    The prior of π is a term if a module of the network learns π, and the divergence if a layer has stochastic
    weights. Both count once per data set, so each example of a batch gets 1/N of them.

    Args:
        network: The network to train.
        examples: Number N of examples in the data set.
        likelihood: Log density of the targets; classes by default.
        precision: Numbers that the network computes with; all terms have 32 bits or more.
    """

    def __init__(
        self,
        network: nn.Module,
        examples: int,
        likelihood: Likelihood | None = None,
        precision: Precision = "32-true",
    ) -> None:
        self.network, self.precision = network, precision
        self.likelihood = likelihood or Categorical()
        self.examples = examples
        self.with_prior = [m for m in network.modules() if isinstance(m, HasLogPrior) and m.learns_pi]
        self.with_kl = [m for m in network.modules() if isinstance(m, HasKL)]

    def terms(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> dict[str, Tensor]:
        """Estimate the terms of the objective on a batch.

        Args:
            x: Inputs.
            y: Targets.
            weight: Weight of each example, 1 on average; None if all count alike.

        Returns:
            The terms by name; their sum is the objective.
        """
        # A divergence of weights is balanced against a likelihood, not against a squared error.
        measure = self.likelihood.log_prob if self.with_kl else self.likelihood.objective
        with computing_in(self.precision, x.device):
            outputs = self.network(x)
        each = measure(outputs if self.precision == "32-true" else outputs.float(), y)
        terms = {"log_likelihood": each.mean() if weight is None else (weight * each).mean()}
        if self.with_prior:
            terms["log_prior_pi"] = total([m.log_prior() for m in self.with_prior]) / self.examples
        if self.with_kl:
            terms["minus_kl"] = -total([m.kl() for m in self.with_kl]) / self.examples
        return terms


def total(terms: Iterable[Tensor]) -> Tensor:
    """Add up scalars."""
    return functools.reduce(operator.add, terms)
