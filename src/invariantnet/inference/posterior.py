"""The answer: a posterior over hypotheses, and a verdict in words."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from invariantnet._system.words import count_words
from invariantnet.inference.mixture_posterior import MixturePosterior, mixture_posterior

DECISIVE = 0.99
STRONG = 0.90


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
class Stage:
    """Where a race stood after one block."""

    examples: int
    """Labels predicted so far."""
    log_evidence: dict[str, float]
    """Log evidence of every hypothesis still in the race."""
    probabilities: dict[str, float]


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
    race: tuple[Stage, ...] = field(default=(), repr=False)
    """After every block: labels predicted, and evidence and probability of each hypothesis so far."""
    guessing: float | None = None
    """Log evidence of predictions from the earlier labels alone, without inputs; None if not compared."""
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
    ) -> MixturePosterior:
        """The posterior over π from the labels that every hypothesis predicted; right after fitting only."""
        if self.pointwise is None:
            raise ValueError("the predictions behind this posterior were not stored: fit again, by evidence.")
        return mixture_posterior(
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
            shown = "–" if np.isnan(evidence) else f"{bound}{evidence:.1f}"
            lines.append(f"{name:{width}}  {count_words(order):>8}  {p:11.3f}  {shown:>12}")
        return "\n".join([*lines, self.verdict])

    def within(self, tolerance: float) -> str:
        """The largest group whose price is at most `tolerance` nats per example; the favourite for 0."""
        if tolerance <= 0:
            return self.favourite
        affordable = [price for price in self.prices if price.nats_per_example <= tolerance]
        largest = max(affordable, key=lambda price: (price.order, -price.nats_per_example), default=None)
        return largest.name if largest else self.favourite
