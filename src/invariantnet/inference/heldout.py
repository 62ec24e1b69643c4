r"""One network for all hypotheses: the weights learn from a training part, π from a held-out part.

The training likelihood never rewards a constraint; the likelihood of held-out data does. So the weights maximise
$\log p(D_\text{train} \mid w, \pi)$ and π, in alternation, $\log p(D_\text{held} \mid w, \pi) + \log p(\pi)$.
`_learned_pi` has the three kinds of answer: a point, a Dirichlet, or one scheme per feature.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Dirichlet

from invariantnet._system.torch_state import seeded
from invariantnet.choices import MixtureKind, require_choice
from invariantnet.data.arrays import read
from invariantnet.data.examples import Examples
from invariantnet.inference._learned_pi import DirichletPosterior, FeaturePosterior, LearnedPi, PointEstimate
from invariantnet.inference.mixture_posterior import MixturePosterior
from invariantnet.likelihoods import Categorical, Likelihood
from invariantnet.nn.symmetrized import Symmetrized
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
"""Long enough for π to leave its starting point, and short enough that the weights do not overfit: overfitted
weights mislead π."""


@dataclass(frozen=True)
class HeldOut:
    """How π is learned on held-out data."""

    share: float = 0.3
    """Share of the examples that π learns from and the weights do not."""
    posterior: MixtureKind = "point"
    """What is learned about π."""
    learning_rate: float = 0.05
    """Adam's rate for π."""
    batch_size: int = 256
    """Held-out examples per step of π."""
    training: Training = BRIEF
    """How the weights are trained; π takes one step after each of theirs."""

    def __post_init__(self) -> None:
        require_choice("posterior", self.posterior, get_args(MixtureKind))


@dataclass(frozen=True, eq=False)
class HeldOutResult:
    """What was learned: the network, and π."""

    network: Symmetrized
    """The trained network, averaged over the symmetries with the learned π."""
    probabilities: Float[Tensor, " schemes"]
    """The learned π, or its mean."""
    concentration: Float[Tensor, " schemes"] | None
    """Parameters of q(π), if it is a Dirichlet."""
    responsibilities: Float[Tensor, "features schemes"] | None
    """Probability of each scheme for each feature, with posterior `neurons`."""
    history: History
    """The training, epoch by epoch."""

    def over_schemes(self, seed: int = 0) -> MixturePosterior:
        """Sample the posterior over π that follows from the schemes of the features.

        Args:
            seed: Seed of the samples.

        Returns:
            Samples of π.

        Raises:
            ValueError: The fit was not made with posterior `neurons`.
        """
        if self.concentration is None or self.responsibilities is None:
            raise ValueError("this fit has no scheme per feature: use HeldOut(posterior='neurons').")
        with seeded(seed):
            return MixturePosterior.of_dirichlet(self.network.names, self.concentration, "neurons")


def fit_heldout(
    make_network: Callable[[], Symmetrized],
    examples: Examples,
    *,
    config: HeldOut,
    likelihood: Likelihood | None = None,
    seed: int = 0,
) -> HeldOutResult:
    """Fit the weights of one network and π in alternation.

    Args:
        make_network: Makes the untrained network, averaged over the hypotheses; it also has the prior on π.
        examples: The data, in any order.
        config: How π is learned.
        likelihood: Log density of the targets; classes by default.
        seed: Seed of the split, the initial weights and the batches.

    Returns:
        The network and what was learned about π.

    Raises:
        ValueError: There are too few examples, or the placement does not suit the kind of posterior.
    """
    held, kept = _split(examples, config.share, seed)
    likelihood = likelihood or Categorical()
    learner = _MixtureLearner(held, likelihood, config)
    network, history = train(
        make_network, kept, config.training, seed, likelihood=likelihood, on_step=learner, skip=("logits",)
    )
    assert isinstance(network, Symmetrized)
    found = learner.posterior_for(network)
    return HeldOutResult(network, network.probabilities, found.concentration, found.responsibilities, history)


def _split(examples: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    """Split the examples at random into a part for π and a part for the weights."""
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
    size = max(1, round(share * len(examples)))
    if size >= len(examples):
        raise ValueError(f"{len(examples)} examples leave none to train on: pass more data.")
    return examples[order[:size]], examples[order[size:]]


class _MixtureLearner:
    """Takes one step in π, on held-out examples, after every step of the weights."""

    def __init__(self, examples: Examples, likelihood: Likelihood, config: HeldOut) -> None:
        self.examples, self.likelihood, self.config = examples, likelihood, config
        self._posterior: LearnedPi | None = None

    def __call__(self, network: nn.Module) -> None:
        assert isinstance(network, Symmetrized)
        posterior = self.posterior_for(network)
        batch = self._draw_batch()
        pi, regulariser = posterior.draw()
        log_likelihood = self._log_likelihood(network, batch, pi)
        posterior.ascend(log_likelihood + regulariser / len(self.examples))
        with torch.no_grad():
            network.logits.copy_(posterior.mean(pi).log())

    def posterior_for(self, network: Symmetrized) -> LearnedPi:
        """Return what is known about π; the first call starts it, because its size depends on the network."""
        if self._posterior is None:
            self._posterior = self._start(network)
        return self._posterior

    def _start(self, network: Symmetrized) -> LearnedPi:
        alpha = network.prior.alpha if network.learns_pi else (1.0,)
        prior = Dirichlet(torch.tensor(alpha, device=self.examples.device))
        if self.config.posterior == "point":
            return PointEstimate(prior, self.config.learning_rate)
        if self.config.posterior == "dirichlet":
            return DirichletPosterior(prior, self.config.learning_rate)
        if network.averages != "features":
            raise ValueError(f"posterior='neurons' needs placement='features', not {network.averages!r}.")
        return FeaturePosterior(prior, self.config.learning_rate, network.features)

    def _draw_batch(self) -> Examples:
        n = len(self.examples)
        return self.examples[torch.randint(n, (min(self.config.batch_size, n),))]

    def _log_likelihood(self, network: Symmetrized, batch: Examples, pi: Tensor) -> Tensor:
        """Mean log likelihood of a batch, in evaluation mode: running statistics must not see held-out data."""
        outputs = network.eval()(read(batch.x), pi)
        network.train()
        return batch.weighted_mean(self.likelihood.log_prob(outputs, batch.y))
