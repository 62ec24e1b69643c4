"""The answer: a posterior over hypotheses, and a verdict in words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from invariantnet.actions import count_words
from invariantnet.inference.schemes import SchemePosterior, scheme_posterior

DECISIVE = 0.99
STRONG = 0.90
BOOTSTRAPS = 2000
MIXES = 40
CHUNK = 20_000_000


@dataclass(frozen=True)
class Price:
    """What invariance to one group costs, and what it buys."""

    name: str
    order: int
    nats_per_example: float
    """Held-out loss above that of the best hypothesis, where all saw the same data."""
    accuracy: dict[str, float]
    """Held-out accuracy on inputs moved by each candidate's transformations; `trivial` is as they are."""


@dataclass(frozen=True)
class SymmetryPosterior:
    """Which symmetry the data has, with its probability."""

    names: tuple[str, ...]
    orders: tuple[int, ...]
    probabilities: tuple[float, ...]
    log_evidence: tuple[float, ...]
    """Log probability of every label after the first block, each predicted from those before it."""
    log_evidence_spread: tuple[float, ...]
    """Standard deviation of the log evidence over networks, of the blocks that a hypothesis had several for."""
    examples: int
    """Labels that were predicted."""
    dropped: tuple[str, ...] = ()
    """Hypotheses given up early as hopeless; their log evidence is an upper bound."""
    prices: tuple[Price, ...] = ()
    race: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    """After every block: labels predicted, and evidence and probability of each hypothesis so far."""
    guessing: float | None = None
    """Log evidence of one who knows the earlier labels but no input; None where it was not compared."""
    laplace: tuple[float, ...] = ()
    """Laplace's approximation of the log marginal likelihood, if a second opinion was asked for."""
    pointwise: Float[np.ndarray, "schemes n"] | None = field(default=None, repr=False, compare=False)
    """Log probability of every label that every hypothesis predicted, by equally many networks of each; in memory
    only, as its `counts`."""
    counts: Float[np.ndarray, " n"] | None = field(default=None, repr=False, compare=False)
    """How often each of these labels counts."""

    @property
    def favourite(self) -> str:
        """The most probable hypothesis."""
        return self.names[int(np.argmax(self.probabilities))]

    @property
    def second_opinion(self) -> str | None:
        """What Laplace's approximation favours, if it was asked."""
        return self.names[int(np.argmax(self.laplace))] if self.laplace else None

    @property
    def log_bayes_factors(self) -> tuple[float, ...]:
        """Log evidence of each hypothesis against the best: 0 for the best, negative for the others."""
        best = max(self.log_evidence)
        return tuple(value - best for value in self.log_evidence)

    @property
    def learned_nothing(self) -> bool:
        """Whether guessing predicts the labels as well as the best hypothesis: noise has every symmetry."""
        return self.guessing is not None and max(self.log_evidence) <= self.guessing

    @property
    def strength(self) -> str:
        """`decisive` from 99 %, `strong` from 90 %, else `inconclusive`."""
        best = round(max(self.probabilities), 3)  # as it is shown
        return "decisive" if best >= DECISIVE else "strong" if best >= STRONG else "inconclusive"

    @property
    def verdict(self) -> str:
        """One sentence."""
        ranked = sorted(zip(self.probabilities, self.names, strict=True), key=lambda each: -each[0])
        (p, name), *others = ranked
        said = "no symmetry" if name == "trivial" else f"the symmetry {name}"
        sentence = f"{self.strength}: {said}, with probability {p:.3f} after {self.examples} predictions"
        if others:
            sentence += f"; next {others[0][1]} with {others[0][0]:.3f}"
        if self.learned_nothing:
            sentence += "; but no network has learned to predict the labels: guessing does as well"
        if self.second_opinion:
            agrees = self.second_opinion == name
            sentence += f"; Laplace's approximation {'agrees' if agrees else f'favours {self.second_opinion}'}"
        return sentence

    def over_schemes(
        self, method: Literal["variational", "nuts"] = "variational", alpha: float = 1.0, seed: int = 0
    ) -> SchemePosterior:
        """The posterior over π from the labels that every hypothesis predicted; right after fitting only."""
        if self.pointwise is None:
            raise ValueError("the predictions behind this posterior were not stored: fit again, by evidence.")
        return scheme_posterior(
            self.pointwise, self.names, weight=self.counts, alpha=alpha, method=method, seed=seed
        )

    def __str__(self) -> str:
        """A small table, and the verdict."""
        width = max(len("hypothesis"), *map(len, self.names))
        lines = [f"{'hypothesis':{width}}  elements  probability  log evidence"]
        for name, order, p, evidence in zip(
            self.names, self.orders, self.probabilities, self.log_evidence, strict=True
        ):
            bound = "≤ " if name in self.dropped else ""
            lines.append(
                f"{name:{width}}  {count_words(order):>8}  {p:11.3f}  {bound + format(evidence, '.1f'):>12}"
            )
        return "\n".join([*lines, self.verdict])

    def within(self, tolerance: float) -> str:
        """The largest group whose price is at most `tolerance` nats per example; the favourite for 0."""
        if tolerance <= 0:
            return self.favourite
        affordable = [price for price in self.prices if price.nats_per_example <= tolerance]
        largest = max(affordable, key=lambda price: (price.order, -price.nats_per_example), default=None)
        return largest.name if largest else self.favourite


def mean_prediction(log_likelihood: Float[np.ndarray, "schemes seeds n"]) -> Float[np.ndarray, "schemes n"]:
    r"""$\log \frac1S \sum_s p_{iks}$: a hypothesis predicts with the average of its networks."""
    return np.logaddexp.reduce(log_likelihood, axis=1) - np.log(log_likelihood.shape[1])


def bootstrap_probabilities(
    log_likelihood: Float[np.ndarray, "schemes seeds examples"],
    log_prior: Float[np.ndarray, " schemes"],
    seed: int,
    weight: Float[np.ndarray, " examples"] | float = 1.0,
    draws: int = BOOTSTRAPS,
) -> Float[np.ndarray, " schemes"]:
    r"""Posterior that knows its evidence is a finite sample (pseudo-BMA+, Yao et al. 2018).

    The sum over the examples seen would be other examples' sum on another day, and other networks' predictions.
    Bayesian bootstrap: average $\mathrm{softmax}_k(\log p_k + n \sum_i w_i \log \sum_s u_s p_{iks})$ over $w$ and
    $u$ uniform on their simplices.
    """
    schemes, seeds, examples = log_likelihood.shape
    rng = np.random.default_rng(seed)
    total = np.zeros(schemes)
    mixes = MIXES if seeds > 1 else 1
    for count in _shares(draws, mixes):
        u = rng.dirichlet(np.ones(seeds))
        mixed = np.logaddexp.reduce(log_likelihood + np.log(u)[:, None], axis=1) * weight
        for size in _shares(count, -(-count * examples // CHUNK)):
            w = rng.standard_exponential((size, examples))
            w *= examples / w.sum(1, keepdims=True)
            score = w @ mixed.T + log_prior
            score -= score.max(1, keepdims=True)
            p = np.exp(score)
            total += (p / p.sum(1, keepdims=True)).sum(0)
    return total / draws


def _shares(total: int, parts: int) -> list[int]:
    """A number, split as evenly as it goes."""
    return [len(part) for part in np.array_split(np.arange(total), max(1, parts))]


def alphas(alpha: float | Sequence[float], schemes: int) -> Float[np.ndarray, " schemes"]:
    """One α for each hypothesis, from one for all or one for each."""
    values = np.full(schemes, alpha, dtype=float) if np.ndim(alpha) == 0 else np.array(alpha, float)
    if values.shape != (schemes,) or not (values > 0).all() or not np.isfinite(values).all():
        raise ValueError(f"α = {alpha} is no prior for {schemes} hypotheses: pass positive numbers, one for each.")
    return values


def log_prior_of(alpha: float | Sequence[float], schemes: int) -> Float[np.ndarray, " schemes"]:
    r"""$\log E[\pi_k] = \log \alpha_k / \sum_j \alpha_j$ of a Dirichlet prior on π."""
    logs = np.log(alphas(alpha, schemes))
    return logs - np.logaddexp.reduce(logs)
