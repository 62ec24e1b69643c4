"""The answer: a posterior over hypotheses, and a verdict in words."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from invariantnet._system.words import count_words
from invariantnet.choices import MixtureMethod
from invariantnet.inference.by_class import Gain, deciding_classes
from invariantnet.inference.findings import ModelEvidence, Price, Stage
from invariantnet.inference.kinds import best_of_each_kind, kind_of, probabilities_of_kinds
from invariantnet.inference.left_out import left_out_words, why_alone
from invariantnet.inference.mixture_posterior import MixturePosterior, mixture_posterior
from invariantnet.inference.range_posterior import RangePosterior
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.plain import both_names, plain_name

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
MOST_ADVISED = 20
"""Times the present number of examples beyond which more of them are no advice."""
UNLIKELY = 0.05
"""Probability of all but two kinds of symmetry from which on leaving them out is advised."""
MOST_BESIDE = 8
"""Elements of a group that leave room for the copies of a range beside it."""
NATS = "A nat is a factor of 2.7 in probability"
"""The unit of evidence, explained where it stands."""


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

    @property
    def found(self) -> str:
        """The most probable kind of symmetry in words, and how far its ranges reach."""
        kind = kind_of(self.favourite)
        return f"{both_names(kind)}{self._reach(kind)}"

    @property
    def verdict(self) -> str:
        """One sentence."""
        if not self.learned:
            return (
                f"{NOTHING_LEARNED}: after {self.examples:,} predictions, no network predicts the labels better "
                "than a guess that ignores the inputs, so they say nothing about symmetries"
            )
        if len(self.names) == 1:
            return f"{NOT_COMPARED}: {both_names(self.favourite)} was the only candidate{why_alone(self.left_out)}"
        kinds = probabilities_of_kinds(self.names, self.probabilities)
        (name, p), *others = sorted(kinds.items(), key=lambda each: -each[1])
        sentence = f"{self.strength}: {self.found}, with probability {p:.3f} after {self.examples:,} predictions"
        if any(self.ranges[family].costs_beyond for family in self._families(name)):
            sentence += "; larger ones cost accuracy"
        if self.strength == PARTIAL:
            sentence += f"; it does not hold for {self._losing()}; what holds for all: {both_names(self.accepted)}"
        if others:
            sentence += f"; next {both_names(others[0][0])} with {others[0][1]:.3f}"
            sentence += self._refuted_by(others[0][0], name)
        if self.established:
            p = self.at_least[self.names.index(self.established)]
            sentence += f"; at least {both_names(self.established)} with {p:.3f}"
        if self.strength == "inconclusive":
            hardly = "more examples would hardly settle it: both predict almost equally well"
            sentence += f"; {self._remedy or hardly}"
        if self.second_opinion:
            agrees = self.second_opinion == name
            other = both_names(self.second_opinion)
            sentence += f"; Laplace's approximation {'agrees' if agrees else f'favours {other}'}"
        return sentence

    @property
    def next_steps(self) -> tuple[str, ...]:
        """What to do about an open verdict, the most useful first; empty if there is nothing to do."""
        if not self.learned:
            return (
                "check that every label belongs to its input: a shuffled column looks just like this",
                f"pass more examples: {self.examples:,} predictions were not enough to learn from",
                "say what an input is, if images or sequences are stored as plain columns: input_shape=(28, 28) "
                "or --shape 28,28 lets convolutions compete",
                "pass a network of your own that suits such data, with backbone= or --backbone",
            )
        if self.strength == PARTIAL:
            named, refuting = plain_name(self.favourite), " and ".join(self.refuted_by[self.favourite])
            return (
                f"look at moved inputs of {refuting}: if people would give them the same label, pass some of "
                "them as examples",
                f"to build in {named} all the same, which predict better on the whole, pass tolerance=0.02, or "
                "--tolerance 0.02",
                f"meanwhile the network has {plain_name(self.accepted)}, and tells such copies apart",
            )
        if self.strength != "inconclusive":
            return ()
        kinds = sorted(probabilities_of_kinds(self.names, self.probabilities).items(), key=lambda each: -each[1])
        asked = [name for name, _ in kinds[:2] if name != TRIVIAL]
        hardly = "use either: both predict almost equally well, so for data like this it makes little difference"
        steps = [self._remedy or hardly]
        if sum(p for _, p in kinds[2:]) >= UNLIKELY:
            steps.append(
                f"compare only what you think possible: symmetries={asked}, or --symmetries {','.join(asked)}"
            )
        if self.established not in (None, self.favourite):
            steps.append(
                f"to build in {plain_name(self.established)} only, which is sure: "
                f"symmetries=['{self.established}'], or --symmetries {self.established}"
            )
        steps.append(
            "if inputs will come moved after training, pass tolerance=0.02, or --tolerance 0.02: this builds in "
            "the largest symmetry that lowers the probability of right answers by at most about 2 %"
        )
        steps.append(f"meanwhile the network is invariant to the favourite, {plain_name(self.favourite)}")
        if self.favourite == TRIVIAL:
            steps[-1] = "meanwhile the network has no symmetry built in, which is safe"
        return tuple(steps)

    @property
    def left_out_words(self) -> str:
        """What `auto` left out, and how to ask for a range; empty if it left out nothing."""
        if len(self.names) == 1 or not self.left_out:
            return ""  # the verdict says why
        group = self.accepted
        beside = group != TRIVIAL and self.orders[self.names.index(group)] <= MOST_BESIDE
        return left_out_words(self.left_out, self.favourite, group if beside else None)

    def _families(self, kind: str) -> list[str]:
        """Families of ranges that a kind of symmetry has."""
        return [part for part in kind.split("+") if part in self.ranges]

    def _reach(self, kind: str) -> str:
        """How far the ranges of a kind of symmetry reach, in words."""
        families = self._families(kind)
        one = len(families) == 1
        said = (self.ranges[f].words if one else f"{f} {self.ranges[f].words}" for f in families)
        return "".join(f", {words}" for words in said)

    def _losing(self) -> str:
        """Classes that refute the favourite, with what they lose by it."""
        gains = {g.part: g for g in self.by_class if g.symmetry == self.favourite}
        parts = self.refuted_by[self.favourite]
        return " and ".join(f"{part} ({gains[part].nats_per_example:+.2f} nats per example)" for part in parts)

    def _refuted_by(self, rival: str, favourite: str) -> str:
        """Name the classes that speak against the next best symmetry, if few of them do."""
        best = next(n for n in sorted(self.names, key=self._minus_probability) if kind_of(n) == rival)
        named = deciding_classes(self.by_class, best) if favourite == TRIVIAL else []
        return f", refuted by {' and '.join(named)}" if named else ""

    def _minus_probability(self, name: str) -> float:
        return -self.probabilities[self.names.index(name)]

    def _examples_worth_advising(self, needed: int | None) -> str:
        """How many more examples to pass, rounded; empty if that is too many to advise."""
        if needed is None or needed > MOST_ADVISED * self.examples:
            return ""
        more = max(needed - self.examples, self.examples // 4, 1)
        digits = 10 ** (len(str(more)) - 1)
        return f"{-(-more // digits) * digits:,}"

    @property
    def _remedy(self) -> str:
        """What would settle an open verdict; empty if more examples would hardly do it."""
        if more := self._examples_worth_advising(self.examples_needed):
            return f"about {more} more examples would probably settle it"
        if more := self._examples_worth_advising(self.examples_at_best):
            return f"it is too early to say how many more examples would settle it: at least {more}"
        return ""

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

    def __str__(self) -> str:
        """A small table, what its columns mean, the verdict, and the next steps."""
        width = max(len("symmetry"), *map(len, self.names))
        lines = [f"{'symmetry':{width}}  elements  probability  log evidence  in words"]
        for name, order, p, evidence in zip(
            self.names, self.orders, self.probabilities, self.log_evidence, strict=True
        ):
            bound = "≤ " if name in self.dropped else ""
            shown = "–" if np.isnan(evidence) else f"{bound}{evidence:.1f}"
            lines.append(f"{name:{width}}  {count_words(order):>8}  {p:11.3f}  {shown:>12}  {plain_name(name)}")
        if not np.isnan(self.log_evidence).any():
            lines.append(
                "elements: ways in which a symmetry moves an input, not moving it included.\n"
                f"log evidence: of {self.examples:,} labels, in nats. {NATS}."
            )
        if self.dropped:
            lines.append("≤: given up early, because it was too far behind; at most this.")
        lines.append(self.verdict)
        if self.left_out_words:
            lines.append(self.left_out_words)
        steps = [f"- {step}" for step in self.next_steps]
        return "\n".join([*lines, *(["next steps:", *steps] if steps else [])])

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
