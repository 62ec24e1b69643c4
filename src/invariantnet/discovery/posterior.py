r"""Few inputs: a posterior over groups, from the labels of all examples.

With an explicit prior $\pi$ over groups, $\sum_G \pi(G) E_G$ is an e-value of the null hypothesis "there is no
symmetry", although proposals come from the same examples: every group has paid for being named. It is at least as
large as the sum over the groups that were looked at, so the search can be as greedy as it likes.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Float64

from invariantnet.discovery._beam import beam_search
from invariantnet.discovery._matching import Moments
from invariantnet.discovery.chambers import even_signs
from invariantnet.discovery.closure import closure, orbits_of_pairs
from invariantnet.discovery.copies import nothing, symmetry_of
from invariantnet.discovery.evidence import Evidence, Rival, log_prob_of_left_out
from invariantnet.discovery.gradients import moments_of_gradients
from invariantnet.discovery.judging import p_value_of_gain
from invariantnet.discovery.neighbours import neighbours, subgroups
from invariantnet.discovery.predictors import choose
from invariantnet.discovery.prior import log_prior
from invariantnet.discovery.proposals import Kind, Proposal, Source, order_of, propose
from invariantnet.discovery.ranking import exchange_misfits, first_of_each_kind, ranked
from invariantnet.inference.support import HIGHEST, LOWEST, Support
from invariantnet.symmetries._closure import Indices, TooManyElementsError, close_indices
from invariantnet.symmetries._orbits import signed_orbits
from invariantnet.symmetries.group import Group

LISTED = 1000
"""Largest group that is recognised by its elements, which takes milliseconds."""

CLIMBS = 12
"""Steps of the search at most, each to a better group: a chain of subgroups of 1,000 elements has at most ten."""

CLOSE = 8.0
"""Log odds behind the best group within which another group joins it, and within which a step starts at all."""

JOINED = 6
"""Groups that join the best one in each step: every join costs a fit."""

GROWN, MOST_AVERAGED = 2, 64
"""Groups of each step that look for further elements, and the largest such group."""

SMALLEST_RING, RINGS, PARTITIONS = 4, 8, 4
"""Inputs of an orbit from which on its turns are tried, how many, and of how many partitions into exchangeable
inputs:
turns of three are all their permutations, as far as pairs can tell."""

MOST_LISTED, PAIRS, PARTS = 400, 400, 12
"""Elements of the largest group whose subgroups are tried, pairs of elements that generate them, and how many."""

SIGNS = 24
"""Changes of sign that join the best group in each step: a group of many elements leaves fewer to choose from."""

REFUTED = 0.025
"""P-value of "it loses nothing" below which a group is out: true ones gain, so that hardly any is lost."""

FINALISTS = 12
"""Groups that are weighed again for the verdict: further ones hardly ever have a share."""

CONJUGATES = 24
"""Conjugates by an exchange of two inputs that are tried in each step: the ones that look most alike."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """A group, its prior and its evidence.

    Args:
        generators: Index arrays, signs included.
        source: What it was proposed from.
        kind: What it is made of.
        log_prior: Log probability before any label, given that there is a symmetry.
        log_e_value: Log Bayes factor against no symmetry.
    """

    generators: Indices
    source: Source
    kind: Kind
    log_prior: float
    log_e_value: float

    @property
    def log_odds(self) -> float:
        """Log odds against no symmetry, for equal prior odds of symmetry and none."""
        return self.log_prior + self.log_e_value


@dataclass(eq=False)
class Posterior:
    """Weighs groups of few inputs.

    Args:
        evidence: Compares symmetries on all labels.
        rng: Source of randomness.
    """

    evidence: Evidence
    rng: np.random.Generator
    weighed: dict[Hashable, Weighed] = field(default_factory=dict)

    @cached_property
    def support(self) -> Support:
        """Where inputs lie: no label speaks against an exchange of years and yes-or-no, so it is not weighed."""
        return Support(both_signs=True, columns=np.quantile(self.evidence.examples.x, (LOWEST, HIGHEST), axis=0))

    def search(self, *, signed: bool) -> None:
        """Propose groups, and climb from the best one."""
        examples = self.evidence.examples
        for proposal in propose(examples, self.evidence.best, self.rng, signed=signed):
            self.weigh(proposal)
        dim = examples.x.shape[1]
        if signed and dim > 1:
            self.weigh(Proposal(even_signs(dim), "inputs", "signs", 0.0))
        moments = moments_of_gradients(examples, self.evidence.best, self.rng)
        if moments is None or not self.weighed:
            return
        for proposal in _exchanges_one_by_one(moments):
            self.weigh(proposal)
        for _ in range(CLIMBS):
            before = self.best
            if before.log_odds < -CLOSE:
                return
            for generators in self._around(before, moments):
                self.weigh(Proposal(generators, before.source, "together", 0.0))
            if signed and before.log_odds > 0:
                for generators in _with_changes_of_sign(before.generators):
                    self.weigh(Proposal(generators, before.source, "signs", 0.0))
            if self.best is before:
                return

    def weighed_again(self, evidence: Evidence) -> "Posterior":
        """Weigh the best groups once more, by better evidence.

        A function that is nearly symmetric gains where examples are few, and loses where they are many. So a group
        is out if labels are predicted worse with it than without, each from all others.

        Args:
            evidence: Compares symmetries on the same labels, with more care.

        Returns:
            A posterior over the best groups and none.
        """
        again, examples = Posterior(evidence, self.rng), evidence.examples
        predictor = choose(examples)
        plain = log_prob_of_left_out(predictor, nothing(examples.x.shape[1]), examples)
        for key, w in sorted(self.weighed.items(), key=lambda item: -item[1].log_odds)[:FINALISTS]:
            larger = self._larger(_listed(w.generators))
            closed = None if larger is None else larger.generators
            value = evidence.log_e_value(w.generators, closed, again._rival(w.log_prior))
            lost = plain - log_prob_of_left_out(predictor, symmetry_of(w.generators), examples)
            if p_value_of_gain(lost) < REFUTED:
                value = min(value, -float(lost.sum()))
            again.weighed[key] = replace(w, log_e_value=value)
        return again

    @property
    def best(self) -> Weighed:
        """The most probable group."""
        return max(self.weighed.values(), key=lambda w: w.log_odds)

    @property
    def best_key(self) -> Hashable:
        """What two posteriors have in common if the same group is the most probable; None if there is none."""
        return max(self.weighed, key=lambda key: self.weighed[key].log_odds, default=None)

    @property
    def log_e_value(self) -> float:
        """Log e-value of the null hypothesis that there is no symmetry."""
        return float(np.logaddexp.reduce([w.log_odds for w in self.weighed.values()]))

    @property
    def probability(self) -> float:
        """Probability of the best group among all that were weighed, and none."""
        return float(np.exp(self.best.log_odds - np.logaddexp(self.log_e_value, 0.0)))

    def weigh(self, proposal: Proposal) -> None:
        """Add a group, unless it is trivial or was weighed before."""
        identity = np.arange(proposal.generators.shape[1])
        generators = np.unique(proposal.generators, axis=0)
        generators = generators[(generators != identity).any(axis=1)]
        if not len(generators):
            return
        group = _listed(generators)
        key = _key(group)
        if key in self.weighed or not self.support.can_refute(group):
            return
        larger, prior = self._larger(group), log_prior(group)
        value = self.evidence.log_e_value(
            generators, None if larger is None else larger.generators, self._rival(prior)
        )
        self.weighed[key] = Weighed(generators, proposal.source, proposal.kind, prior, value)
        if larger is not None:
            self._weigh_closure(larger, proposal, prior)

    def _rival(self, prior: float) -> Rival | None:
        """The best group so far, for another one with a prior."""
        if not self.weighed:
            return None
        return Rival(symmetry_of(self.best.generators), self.best.log_prior - prior)

    def _larger(self, group: Group) -> Group | None:
        """The closure of a group, if it is larger."""
        if not group.is_permutation_group:
            return None
        larger = _listed(closure(group.generators))
        return None if larger.order == group.order else larger

    def _weigh_closure(self, group: Group, proposal: Proposal, prior: float) -> None:
        """Add the closure of a group; it is named as easily as the group itself."""
        key = _key(group)
        known = self.weighed.get(key)
        if known is None and not self.support.can_refute(group):
            return
        if known is None:
            own = log_prior(group)
            value = self.evidence.log_e_value(group.generators, rival=self._rival(max(own, prior)))
            known = Weighed(group.generators, proposal.source, "together", own, value)
        self.weighed[key] = replace(known, log_prior=max(known.log_prior, prior))

    def _around(self, best: Weighed, moments: Moments) -> Iterable[Indices]:
        """Groups near the best one: joins with other good ones, subgroups, conjugates."""
        others = sorted(self.weighed.values(), key=lambda w: -w.log_odds)
        for other in others[1 : 1 + JOINED]:
            yield np.concatenate([best.generators, other.generators])
        for one in others[:GROWN]:
            yield from _grown(one.generators, moments)
        yield from subgroups(best.generators)
        yield from _subgroups_with_more_orbits(best.generators)
        yield from (other for _, other in neighbours(best.generators, moments, CONJUGATES))
        parts = [w for w in others if w.kind == "exchanges" and len(w.generators) >= SMALLEST_RING - 1]
        for one in [best, *parts[:PARTITIONS]]:
            yield from _turns_within_orbits(one.generators, moments)
        if len(best.generators) == 1:
            yield from (best.generators[:, p.generators[0]] for p in _exchanges_one_by_one(moments))


def _subgroups_with_more_orbits(generators: Indices) -> Iterable[Indices]:
    """Subgroups of two generators that tell more pairs of inputs apart, the ones that tell the fewest more first.

    A larger group than the true one may explain labels nearly as well, so the true one has to be weighed too.
    """
    if order_of(generators, MOST_LISTED) is None or (generators >= generators.shape[1]).any():
        return
    elements = close_indices(generators, MOST_LISTED, "the group")
    pairs = list(combinations(range(len(elements)), 2))
    drawn = np.random.default_rng(0).permutation(len(pairs))[:PAIRS]
    found: dict[bytes, Indices] = {}
    for a, b in (pairs[k] for k in drawn):
        part = elements[[a, b]]
        found.setdefault(orbits_of_pairs(part).tobytes(), part)
    own = orbits_of_pairs(generators).tobytes()
    by_orbits = sorted((len(np.unique(np.frombuffer(key, np.int64))), key) for key in found if key != own)
    yield from (found[key] for _, key in by_orbits[:PARTS])


def _with_changes_of_sign(generators: Indices) -> Iterable[Indices]:
    """Add a change of the signs of all inputs, of one, or of two: one of each orbit, others generate the same."""
    dim = generators.shape[1]
    identity = np.arange(dim)
    yield np.concatenate([generators, identity[None] + dim])
    orbits = orbits_of_pairs(generators % dim)
    _, first = np.unique(orbits[np.triu_indices(dim)], return_index=True)
    for k in first[:SIGNS]:
        changed = [axis[k] for axis in np.triu_indices(dim)]
        index = identity.copy()
        index[changed] = identity[changed] + dim
        yield np.concatenate([generators, index[None]])


def _grown(generators: Indices, moments: Moments) -> Iterable[Indices]:
    """Add a permutation that is found on moments averaged over the group, which have less noise."""
    if order_of(generators, MOST_AVERAGED) is None:
        return
    averaged = moments.averaged(close_indices(generators, MOST_AVERAGED, "the group"))
    for _, index in first_of_each_kind(ranked(averaged, beam_search(averaged)))[: moments.dim]:
        yield np.concatenate([generators, index[None]])


def _turns_within_orbits(generators: Indices, moments: Moments) -> Iterable[Indices]:
    """Permutations that move all inputs of an orbit among themselves, and change the moments of these least.

    If all exchanges within an orbit explain labels well, a smaller group that moves the same inputs may do so
    better.
    """
    dim = moments.dim
    orbits = signed_orbits(generators % dim)[0]
    for label in np.unique(orbits):
        members = np.flatnonzero(orbits == label)
        if len(members) < SMALLEST_RING:
            continue
        own = moments.among(members)
        found = [p for p in beam_search(own) if (p != np.arange(len(members))).all()]
        for permutation in sorted(found, key=own.loss)[:RINGS]:
            index = np.arange(dim)
            index[members] = members[permutation]
            yield index[None]


def _exchanges_one_by_one(moments: Moments) -> list[Proposal]:
    """Exchanges of two inputs that leave the moments almost alone: as many as there are inputs."""
    misfits: Float64[np.ndarray, "dim dim"] = exchange_misfits(moments)
    first, second = np.triu_indices(moments.dim, 1)
    found = []
    for k in np.argsort(misfits[first, second], kind="stable")[: moments.dim]:
        exchange = np.arange(moments.dim)
        exchange[[first[k], second[k]]] = second[k], first[k]
        found.append(Proposal(exchange[None], "predictions", "exchanges", float(misfits[first[k], second[k]])))
    return found


def _listed(generators: Indices) -> Group:
    """A group with all its elements, unless it is large."""
    try:
        elements = close_indices(generators, LISTED, "the group")
    except TooManyElementsError:
        return Group("proposal", generators)
    return Group("proposal", generators, known_elements=elements)


def _key(group: Group) -> Hashable:
    """Equal for equal groups; large groups with the same order and orbits count as one."""
    if group.known_elements is None:
        orbits, signs = signed_orbits(group.generators)
        return group.order, orbits.tobytes(), signs.tobytes()
    return np.unique(group.known_elements, axis=0).tobytes()
