r"""Few inputs: a posterior over groups, from the labels of all examples.

With an explicit prior $\pi$ over groups, $\sum_G \pi(G) E_G$ is an e-value of the null hypothesis "there is no
symmetry", although proposals come from the same examples: every group has paid for being named. It is at least as
large as the sum over the groups that were looked at, so the search can be as greedy as it likes.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from jaxtyping import Float64, Int64

from invariantnet.discovery._beam import beam_search
from invariantnet.discovery._matching import Moments
from invariantnet.discovery.chambers import even_signs
from invariantnet.discovery.closure import closure, orbits_of_pairs
from invariantnet.discovery.evidence import Evidence
from invariantnet.discovery.gradients import moments_of_gradients
from invariantnet.discovery.neighbours import neighbours, subgroups
from invariantnet.discovery.prior import log_prior
from invariantnet.discovery.proposals import Kind, Proposal, Source, order_of, propose
from invariantnet.discovery.ranking import exchange_misfits, first_of_each_kind, ranked
from invariantnet.symmetries._closure import Indices, close_indices
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
            if self.best is before:
                return

    @property
    def best(self) -> Weighed:
        """The most probable group."""
        return max(self.weighed.values(), key=lambda w: w.log_odds)

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
        key = _key(generators)
        if key in self.weighed:
            return
        group, larger = Group("proposal", generators), self._larger(generators)
        value = self.evidence.log_e_value(generators, larger)
        prior = log_prior(group)
        self.weighed[key] = Weighed(generators, proposal.source, proposal.kind, prior, value)
        if larger is not None:
            self._weigh_closure(larger, proposal, prior)

    def _larger(self, generators: Indices) -> Int64[np.ndarray, "more dim"] | None:
        """The closure of a group, if it is larger."""
        if (generators >= generators.shape[1]).any():
            return None
        larger = closure(generators)
        return None if _key(larger) == _key(generators) else larger

    def _weigh_closure(self, generators: Indices, proposal: Proposal, prior: float) -> None:
        """Add the closure of a group; it is named as easily as the group itself."""
        key = _key(generators)
        known = self.weighed.get(key)
        if known is None:
            own = log_prior(Group("proposal", generators))
            value = self.evidence.log_e_value(generators)
            known = Weighed(generators, proposal.source, "together", own, value)
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
        own = Moments(moments.even[:, members], moments.odd[:, members], moments.pairs[:, members][:, :, members])
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


def _key(generators: Indices) -> Hashable:
    """Equal for equal groups; large groups with the same order and orbits count as one."""
    if order_of(generators, LISTED) is None:
        orbits, signs = signed_orbits(generators)
        return Group("proposal", generators).order, orbits.tobytes(), signs.tobytes()
    elements = close_indices(generators, LISTED, "the group")
    return np.unique(elements, axis=0).tobytes()
