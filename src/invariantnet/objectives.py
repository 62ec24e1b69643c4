"""What training maximises: a sum of named terms, each per example."""

import functools
import operator
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from invariantnet.likelihoods import Categorical, Likelihood


@runtime_checkable
class HasLogPrior(Protocol):
    """A layer with a prior on its scheme."""

    @property
    def learns_scheme(self) -> bool:
        """Whether there is anything to learn."""

    def log_prior(self) -> Tensor:
        """Log density of the prior at the layer's scheme."""


@runtime_checkable
class HasKL(Protocol):
    """A layer with stochastic weights."""

    def kl(self) -> Tensor:
        """Divergence of the weights' posterior from their prior."""


class LogPosterior:
    r"""$\frac1N \big(\sum_i \log p(y_i \mid x_i, \pi, A, W) + \log p(\pi \mid \alpha) - \mathrm{KL}(q \| p)\big)$.

    A term is there if the network has it: the prior of π with layers that learn it, the divergence
    of stochastic weights with layers that have a `kl()`. Both count once per data set of N examples.
    """

    def __init__(self, network: nn.Module, examples: int, likelihood: Likelihood | None = None) -> None:
        self.network = network
        self.likelihood = likelihood or Categorical()
        self.examples = examples
        self.with_prior = [m for m in network.modules() if isinstance(m, HasLogPrior) and m.learns_scheme]
        self.with_kl = [m for m in network.modules() if isinstance(m, HasKL)]

    def terms(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> dict[str, Tensor]:
        """The named terms, estimated on a batch; their sum is the objective."""
        log_prob = self.likelihood.log_prob(self.network(x), y)
        terms = {"log_likelihood": log_prob.mean() if weight is None else (weight * log_prob).mean()}
        if self.with_prior:
            terms["log_prior_pi"] = total([m.log_prior() for m in self.with_prior]) / self.examples
        if self.with_kl:
            terms["minus_kl"] = -total([m.kl() for m in self.with_kl]) / self.examples
        return terms


def total(terms: Iterable[Tensor]) -> Tensor:
    """Sum of scalars."""
    return functools.reduce(operator.add, terms)
