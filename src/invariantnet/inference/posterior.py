"""The answer: a posterior over hypotheses, and a verdict in words."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from invariantnet._system.words import count_words
from invariantnet.inference.by_class import Gain, deciding_classes
from invariantnet.inference.kinds import best_of_each_kind, kind_of, probabilities_of_kinds
from invariantnet.inference.mixture_posterior import MixturePosterior, mixture_posterior
from invariantnet.inference.range_posterior import RangePosterior
from invariantnet.symmetries.catalogue import TRIVIAL

DECISIVE = 0.99
STRONG = 0.90
NOTHING_LEARNED = "nothing learned"
"""Strength of a verdict where no network predicts better than a guess."""
MOST_ADVISED = 20
"""Times the present number of examples beyond which more of them are no advice."""


@dataclass(frozen=True)
class Price:
    """What invariance to one symmetry costs, and what it buys."""

    name: str
    order: int
    """Elements of a group, or copies that stand for a range."""
    nats_per_example: float
    """Held-out loss above that of the best hypothesis, where all saw the same data."""
    accuracy: dict[str, float]
    """Held-out accuracy on inputs moved by each candidate's transformations; `trivial` is as they are."""
    size: float = 0.0
    """Orders symmetries of one order: a larger range has a larger size."""


@dataclass(frozen=True)
class ModelEvidence:
    """How well one model predicted, whatever the symmetry."""

    name: str
    probability: float
    """Posterior probability of the model, summed over symmetries."""
    log_evidence: float
    """Log evidence with the symmetry that suits it best; an upper bound if it was given up early."""


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
    learned: bool = True
    """Whether some network predicts better than a guess from labels alone; if not, there is no verdict."""
    models: tuple[ModelEvidence, ...] = ()
    """Every model that was compared, the best first."""
    best_models: tuple[str, ...] = ()
    """For each symmetry, the model that predicted best with it from the most examples."""
    by_class: tuple[Gain, ...] = ()
    """What each symmetry gains or loses in each class, against no symmetry."""
    examples_needed: int | None = None
    """Labels in all that would probably settle an open verdict; None if more of them would not."""
    laplace: tuple[float, ...] = ()
    """Laplace's approximation of the log marginal likelihood, if a second opinion was asked for."""
    ranges: dict[str, RangePosterior] = field(default_factory=dict)
    """How far each family of ranges reaches, by its name."""
    left_out: tuple[str, ...] = ()
    """Ranges that `auto` did not compare."""
    pointwise: Float[np.ndarray, "schemes n"] | None = field(default=None, repr=False, compare=False)
    """Log probability of every label that every hypothesis predicted, by equally many networks of each; in memory
    only, as its `counts`."""
    counts: Float[np.ndarray, " n"] | None = field(default=None, repr=False, compare=False)
    """How often each of these labels counts."""

    @property
    def favourite(self) -> str:
        """The most probable hypothesis of the most probable kind: the rungs of a ladder are one kind."""
        kinds = probabilities_of_kinds(self.names, self.probabilities)
        best = max(best_of_each_kind(self.names, self.probabilities), key=lambda k: kinds[kind_of(self.names[k])])
        return self.names[best]

    @property
    def certainty(self) -> float:
        """Probability of the most probable kind of symmetry."""
        return max(probabilities_of_kinds(self.names, self.probabilities).values())

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
    def strength(self) -> str:
        """`decisive` from 99 %, `strong` from 90 %, else `inconclusive`; or `nothing learned`."""
        if not self.learned:
            return NOTHING_LEARNED
        best = round(self.certainty, 3)  # as it is shown
        return "decisive" if best >= DECISIVE else "strong" if best >= STRONG else "inconclusive"

    @property
    def verdict(self) -> str:
        """One sentence."""
        if not self.learned:
            return (
                f"{NOTHING_LEARNED}: after {self.examples} predictions, no network predicts the labels better "
                "than a guess that ignores the inputs, so they say nothing about symmetries; look for wrong "
                "labels, pass more examples, or try another backbone"
            )
        kinds = probabilities_of_kinds(self.names, self.probabilities)
        (name, p), *others = sorted(kinds.items(), key=lambda each: -each[1])
        said = "no symmetry" if name == TRIVIAL else f"the symmetry {name}{self._reach(name)}"
        sentence = f"{self.strength}: {said}, with probability {p:.3f} after {self.examples} predictions"
        if any(self.ranges[family].costs_beyond for family in self._families(name)):
            sentence += "; larger ones cost accuracy"
        if others:
            sentence += f"; next {others[0][0]} with {others[0][1]:.3f}"
            sentence += self._refuted_by(others[0][0], name)
        if self.strength == "inconclusive":
            sentence += self._remedy()
        if self.second_opinion:
            agrees = self.second_opinion == name
            sentence += f"; Laplace's approximation {'agrees' if agrees else f'favours {self.second_opinion}'}"
        return sentence

    def _families(self, kind: str) -> list[str]:
        """Families of ranges that a kind of symmetry has."""
        return [part for part in kind.split("+") if part in self.ranges]

    def _reach(self, kind: str) -> str:
        """How far the ranges of a kind of symmetry reach, in words."""
        families = self._families(kind)
        one = len(families) == 1
        said = (self.ranges[f].words if one else f"{f} {self.ranges[f].words}" for f in families)
        return "".join(f", {words}" for words in said)

    def _refuted_by(self, rival: str, favourite: str) -> str:
        """Name the classes that speak against the next best symmetry, if few of them do."""
        best = next(n for n in sorted(self.names, key=self._minus_probability) if kind_of(n) == rival)
        named = deciding_classes(self.by_class, best) if favourite == TRIVIAL else []
        return f", refuted by {' and '.join(named)}" if named else ""

    def _minus_probability(self, name: str) -> float:
        return -self.probabilities[self.names.index(name)]

    def _remedy(self) -> str:
        """What would settle an open verdict."""
        if self.examples_needed is None or self.examples_needed > MOST_ADVISED * self.examples:
            return "; more examples would hardly settle it: both predict almost equally well"
        more = max(self.examples_needed - self.examples, self.examples // 4, 1)
        digits = 10 ** (len(str(more)) - 1)
        return f"; about {-(-more // digits) * digits:,} more examples would probably settle it"

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
        """The largest symmetry whose price is at most `tolerance` nats per example; the favourite for 0."""
        if tolerance <= 0:
            return self.favourite
        affordable = [price for price in self.prices if price.nats_per_example <= tolerance]
        largest = max(
            affordable, key=lambda price: (price.order, price.size, -price.nats_per_example), default=None
        )
        return largest.name if largest else self.favourite
