r"""One network for all hypotheses: weights learn from the training part, π from a held-out part.

Training likelihood never rewards a constraint, held-out likelihood does. So the weights maximise
$\log p(D_\text{train} \mid w, \pi)$, and π in alternation $\log p(D_\text{held} \mid w, \pi) + \log p(\pi)$.
Either π is a point, or has $q(\pi) = \mathrm{Dir}(\beta)$, whose draws are differentiated implicitly and whose
objective is $E_q[\log p(D_\text{held} \mid w, \pi)] - \mathrm{KL}(q \| p)$. Or every feature j has a scheme of its
own, $z_j \sim \mathrm{Cat}(\pi)$ with $q(z_j) = \mathrm{Cat}(r_j)$, and then
$q(\pi) = \mathrm{Dir}(\alpha + \sum_j r_j)$.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence
from torch.nn import functional as F

from invariantnet._system.torch_state import seeded
from invariantnet.choices import Placement
from invariantnet.data.arrays import read
from invariantnet.data.examples import Examples
from invariantnet.inference.mixture_posterior import MixturePosterior
from invariantnet.likelihoods import Categorical, Likelihood
from invariantnet.nn.symmetrized import Symmetrized
from invariantnet.priors import alphas
from invariantnet.symmetries.group import Group
from invariantnet.training.config import History, Training
from invariantnet.training.loop import train

BRIEF = Training(
    epochs=8,
    batch_size=64,
    learning_rate=3e-3,
    weight_decay=1e-2,
    validation=0.0,
    schedule="one-cycle",
    min_steps=600,
)
"""Long enough for π to leave its middle; weights that have learned their examples by heart mislead it."""


SMALLEST = 1e-3
"""A concentration is larger."""


@dataclass(frozen=True)
class HeldOut:
    """How π is learned."""

    share: float = 0.3
    """Part of the data that π learns from, and the weights do not."""
    posterior: Literal["point", "dirichlet", "neurons"] = "point"
    learning_rate: float = 0.05
    batch_size: int = 256
    training: Training = BRIEF


@dataclass(frozen=True, eq=False)
class HeldOutResult:
    """The network, its π and how it came about."""

    network: Symmetrized
    probabilities: Float[Tensor, " schemes"]
    concentration: Float[Tensor, " schemes"] | None
    """Parameters of q(π), if it is a Dirichlet."""
    responsibilities: Float[Tensor, "features schemes"] | None
    history: History

    def over_schemes(self, seed: int = 0) -> MixturePosterior:
        """The posterior over π, where every feature has a scheme of its own."""
        if self.concentration is None or self.responsibilities is None:
            raise ValueError("features have no schemes of their own here: fit with posterior='neurons'.")
        with seeded(seed):
            return MixturePosterior.of_dirichlet(self.network.names, self.concentration, "neurons")


def fit_heldout(
    make_module: Callable[[], nn.Module],
    symmetries: Sequence[Group],
    examples: Examples,
    *,
    config: HeldOut,
    likelihood: Likelihood | None = None,
    alpha: float | Sequence[float] = 1.0,
    placement: Placement = "features",
    scale: float = 1.0,
    seed: int = 0,
) -> HeldOutResult:
    """Fit weights and π in alternation."""
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
    size = max(1, round(config.share * len(examples)))
    held, kept = order[:size], order[size:]
    if not len(kept):
        raise ValueError(f"{len(examples)} examples leave none to train on: pass more data.")
    if config.posterior == "neurons" and placement != "features":
        raise ValueError(f"features have schemes of their own with placement 'features', not {placement!r}.")
    likelihood = likelihood or Categorical()
    prior = alphas(alpha, len(symmetries)).tolist()
    chooser = _MixtureLearner(examples[held], likelihood, prior, config)

    def make() -> nn.Module:
        return Symmetrized(
            make_module(),
            symmetries,
            placement,
            scale=scale,
            prior=prior,
            probabilities=likelihood.averages_probabilities,
        )

    network, history = train(
        make,
        examples[kept],
        config.training,
        seed,
        likelihood=likelihood,
        on_step=chooser,
        skip=("logits",),
    )
    assert isinstance(network, Symmetrized)
    concentration = None if config.posterior == "point" else chooser.concentration()
    each = chooser.parameter.detach().softmax(-1) if config.posterior == "neurons" else None
    return HeldOutResult(network, network.probabilities, concentration, each, history)


class _MixtureLearner:
    """Takes one step in π, on held-out examples, after every step of the weights."""

    def __init__(
        self,
        examples: Examples,
        likelihood: Likelihood,
        alpha: Sequence[float],
        config: HeldOut,
    ) -> None:
        self.examples, self.likelihood, self.config = examples, likelihood, config
        self.prior, schemes = Dirichlet(torch.tensor(alpha, device=examples.device)), len(alpha)
        # q starts as the uniform distribution; a point, and every feature's scheme, starts at its middle.
        start = torch.ones(schemes).expm1().log() if config.posterior == "dirichlet" else torch.zeros(schemes)
        self._start(start)

    def _start(self, value: Tensor) -> None:
        self.parameter = nn.Parameter(value.to(self.examples.device))
        self.optimizer = torch.optim.Adam([self.parameter], lr=self.config.learning_rate)

    def concentration(self) -> Tensor:
        if self.config.posterior == "neurons":
            return self.prior.concentration + F.softmax(self.parameter.detach(), dim=-1).sum(0)
        return _positive(self.parameter.detach())

    def __call__(self, network: nn.Module) -> None:
        assert isinstance(network, Symmetrized)
        if self.config.posterior == "neurons" and self.parameter.ndim == 1:
            self._start(torch.zeros(network.features, len(self.parameter)))
        n = len(self.examples)
        batch = self.examples[torch.randint(n, (min(self.config.batch_size, n),))]
        if self.config.posterior == "point":
            pi = F.softmax(self.parameter, dim=-1)
            # On logits, with the Jacobian, so that no corner is infinite.
            rest = (self.prior.concentration * F.log_softmax(self.parameter, dim=-1)).sum()
        elif self.config.posterior == "neurons":
            pi = F.softmax(self.parameter, dim=-1)
            beta = self.concentration()
            log_pi = torch.digamma(beta) - torch.digamma(beta.sum())
            rest = (pi * (log_pi - F.log_softmax(self.parameter, dim=-1))).sum()
        else:
            q = Dirichlet(_positive(self.parameter))
            pi = q.rsample()
            rest = -kl_divergence(q, self.prior)
        # As it would predict: running statistics must not learn from what is held out.
        log_prob = self.likelihood.log_prob(network.eval()(read(batch.x), pi), batch.y)
        network.train()
        log_likelihood = batch.weighted_mean(log_prob)
        (gradient,) = torch.autograd.grad(-(log_likelihood + rest / n), [self.parameter])
        self.parameter.grad = gradient
        self.optimizer.step()
        with torch.no_grad():
            mean = pi if self.config.posterior == "point" else F.normalize(self.concentration(), p=1, dim=0)
            network.logits.copy_(mean.log())


def _positive(parameter: Tensor) -> Tensor:
    return F.softplus(parameter) + SMALLEST
