"""What a comparison of symmetries found, in numbers."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from invariantnet.choices import MixtureMethod
from invariantnet.inference.by_class import Gain
from invariantnet.inference.findings import ModelEvidence, Price, Stage
from invariantnet.inference.kinds import best_of_each_kind, kind_of, probabilities_of_kinds
from invariantnet.inference.mixture_posterior import MixturePosterior, mixture_posterior
from invariantnet.inference.range_posterior import RangePosterior
from invariantnet.symmetries.catalogue import TRIVIAL

DECISIVE = 0.99
"""Probability of the favourite from which on a verdict is decisive: odds of 99 to 1."""
STRONG = 0.90
"""Probability of the favourite from which on a verdict is strong: odds of 9 to 1. Below it is inconclusive."""
NOTHING_LEARNED = "nothing learned"
"""Strength of a verdict where no network predicts better than a guess."""
NOT_COMPARED = "not compared"
"""Strength of a verdict about a single candidate."""
PARTIAL = "partial"
"""Strength of a verdict whose favourite does not hold for every class."""


@dataclass(frozen=True)
class Comparison:
    """How probable each symmetry is, and what else a comparison found."""

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
    refuted_by: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Classes for which a symmetry does not hold, by its name, the worst first."""
    at_least: tuple[float, ...] = ()
    """Probability that the data has a symmetry, alone or within a larger one; empty if not known."""
    examples_needed: int | None = None
    """Labels in all that would probably settle an open verdict; None if more of them would not."""
    examples_at_best: int | None = None
    """The same if the gap between the two favourites is as large as its error allows."""
    laplace: tuple[float, ...] = ()
    """Laplace's approximation of the log marginal likelihood, if a second opinion was asked for."""
    ranges: dict[str, RangePosterior] = field(default_factory=dict)
    """How far each family of ranges reaches, by its name."""
    tolerance: float = 0.0
    """Nats per example that the symmetry of the network may cost."""
    left_out: tuple[str, ...] = ()
    """What `auto` did not compare: costly joins of the favourite, groups that no example can refute, ranges."""
    strain: dict[str, float] = field(default_factory=dict, repr=False)
    """By what share moving inputs a little within a range raises the loss of the most probable symmetry, by the
    name of the range; near 0 where inputs look as if they had been moved so already."""
    pointwise: Float[np.ndarray, "schemes n"] | None = field(default=None, repr=False, compare=False)
    """Log probability of every label that every hypothesis predicted, by equally many networks of each; in memory
    only, as its `counts`."""
    counts: Float[np.ndarray, " n"] | None = field(default=None, repr=False, compare=False)
    """How often each of these labels counts."""

    @property
    def favourite(self) -> str:
        """The most probable hypothesis of the most probable kind: the rungs of a ladder are one kind."""
        kinds = probabilities_of_kinds(self.names, self.probabilities)
        each = best_of_each_kind(self.names, self.probabilities)
        # Where nothing was learned all are equal but for rounding: then it is the first, no symmetry.
        return self.names[max(each, key=lambda k: round(kinds[kind_of(self.names[k])], 9))]

    @property
    def accepted(self) -> str:
        """The favourite; if some classes refute it, the best symmetry that none refutes."""
        if self.favourite not in self.refuted_by:
            return self.favourite
        left = [k for k, n in enumerate(self.names) if n not in self.refuted_by and n not in self.dropped]
        return self.names[max(left, key=lambda k: self.log_evidence[k])] if left else TRIVIAL

    @property
    def built_in(self) -> str:
        """The symmetry of the network: the accepted one, or the largest within the tolerance.

        An open verdict without evidence builds in none: no network has predicted with each symmetry.
        """
        if not self.has_evidence and self.strength == "inconclusive":
            return TRIVIAL
        return self.within(self.tolerance)

    @property
    def has_evidence(self) -> bool:
        """Whether the networks of every symmetry predicted labels; else one network has learned π."""
        return not np.isnan(self.log_evidence).any()

    @property
    def established(self) -> str | None:
        """The largest symmetry that is sure, where the verdict leaves open what else the data has."""
        if self.strength != "inconclusive":
            return None
        sure = [n for n, p in zip(self.names, self.at_least, strict=False) if n != TRIVIAL and p >= STRONG]
        # Symmetries are sorted by size, so the last one contains the most.
        return next((n for n in reversed(sure) if n not in self.refuted_by), None)

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
        """`decisive` from 99 %, `strong` from 90 %, else `inconclusive`.

        Or `partial`, if some classes refute the favourite; `not compared`, if it is the only candidate; `nothing
        learned`, if no network predicts better than a guess.
        """
        if not self.learned:
            return NOTHING_LEARNED
        if len(self.names) == 1:
            return NOT_COMPARED
        if self.favourite in self.refuted_by:
            return PARTIAL
        best = round(self.certainty, 3)  # as it is shown
        return "decisive" if best >= DECISIVE else "strong" if best >= STRONG else "inconclusive"

    def over_schemes(
        self, method: MixtureMethod = "variational", alpha: float = 1.0, seed: int = 0
    ) -> MixturePosterior:
        """Infer the posterior over π from the labels that every hypothesis predicted; right after fitting only.

        Args:
            method: How it is inferred.
            alpha: Parameter of the Dirichlet prior over π, the same for all symmetries.
            seed: Decides what is drawn.

        Returns:
            The posterior over π.

        Raises:
            ValueError: If this posterior was loaded, because predictions are not stored.
        """
        if self.pointwise is None:
            raise ValueError("the predictions behind this posterior were not stored: fit again, by evidence.")
        return mixture_posterior(
            self.pointwise, self.names, weight=self.counts, alpha=alpha, method=method, seed=seed
        )

    def within(self, tolerance: float) -> str:
        """Name the largest symmetry that is affordable.

        Args:
            tolerance: Nats per example that invariance may cost.

        Returns:
            The largest symmetry whose price is at most that; for 0, the accepted one.
        """
        if tolerance <= 0:
            return self.accepted
        affordable = [price for price in self.prices if price.nats_per_example <= tolerance]
        largest = max(
            affordable, key=lambda price: (price.order, price.size, -price.nats_per_example), default=None
        )
        return largest.name if largest else self.favourite
