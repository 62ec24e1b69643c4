r"""From accepted proposals to one exact group, and how probable it is that it is exactly this one.

Near misses gain almost as much as the truth: a turn with two pixels exchanged is still nearly a turn. So accepted
permutations are refined on the moments of all examples, joined where the join predicts better, and compared
with their
neighbours: subgroups, and conjugates by a single exchange.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Int64

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.candidates import REJECTED, Candidate, Closed
from invariantnet.discovery.copies import joint_symmetry_of, moves
from invariantnet.discovery.judging import Judge
from invariantnet.discovery.maximality import leave_room
from invariantnet.discovery.moment_fit import MomentTest, moment_test
from invariantnet.discovery.neighbours import (
    are_permutations,
    are_versions,
    closest_to_identity,
    contains,
    fitting,
    narrowed,
    neighbours,
    orbits_of,
    regular_part,
    same_group,
    subgroups,
    widened,
)
from invariantnet.discovery.polishing import MOST_SET_ASIDE, NEIGHBOURS, outliers, polished, unresolved
from invariantnet.discovery.proposals import (
    CHEAP,
    KEPT,
    LARGEST_JOIN,
    Proposal,
    Source,
    exchanges,
    order_of,
    refine,
    search,
)
from invariantnet.discovery.ranking import ranked
from invariantnet.symmetries._closure import Indices

MOST_NOISE = 2.5
"""Ratio to the expected noise up to which a further element may change averaged moments."""

AS_NOISY = 1.1
"""The same without averaging, where all inputs are one orbit: averages over many elements have correlated noise,
and a near miss would join to nearly all permutations."""

WORTH_JOINING = 1.0
"""Nats that a larger group has to gain: two versions of one element, one of them noisy, generate a group that
predicts about as well as either."""

AS_GOOD = 0.01
"""Share of the gain within which candidates count as equally good, so that the smallest group is taken."""

JOINED = 8
"""Candidates that may join the best one in each round, the best others: every join costs a fit."""

ALTERNATIVES = 24
"""Candidates that share the probability at most, the ones that predict best: further ones have next to none."""

TEMPER = 0.5
"""Factor of log weights before they become probabilities: numbers of examples to learn from share their labels."""

GROWTHS = 3
"""Rounds in which a group looks for further elements."""

Unclear = Bool[np.ndarray, " dim"]
"""Whether each input is set aside."""


@dataclass(eq=False)
class Closing:
    """Turns accepted proposals into one group.

    Args:
        judge: Scores groups on labels.
        moments: Moments of all examples, by source.
        rng: Source of randomness.
        hardly: Inputs that vary so little that others of their orbits may be missing: they are set aside.
    """

    judge: Judge
    moments: dict[Source, Moments]
    rng: np.random.Generator
    hardly: Unclear
    _candidates: dict[bytes, Candidate] = field(default_factory=dict)

    def close(self, accepted: list[Proposal]) -> Closed | None:
        """Choose the group that the accepted proposals speak for, and say how probable it is.

        Args:
            accepted: Proposals that passed their test.

        Returns:
            The group; None if no cycles of one order cover most inputs of any. To average inputs that are alike
            helps a predictor, too, but those have no order.
        """
        passed = self._candidates_of((p.generators, self._hardly(p)) for p in accepted)
        pool = [replace(c, passed=True) for c in passed] + self._candidates_of(self._pool(accepted))
        if not pool:
            return None
        of_inputs = self._inputs_have_it(pool)
        best = self._joined(self._first(pool, of_inputs=of_inputs), pool, of_inputs=of_inputs)
        best = self._lean(best, of_inputs=of_inputs)
        moments = self.moments.get("inputs" if of_inputs else "predictions")
        if moments is not None:
            best = self._grown(best, moments, of_inputs=of_inputs)
            best = self._joined(best, pool, of_inputs=of_inputs)
        rivals: list[float] = []
        unclear = best.unclear
        if moments is not None and of_inputs:
            best, unclear, rivals = self._polished(best, moments)
        elif moments is not None:
            best, rivals = self._polished_by_labels(best, moments)
        rest = self._alternatives(best, unclear)
        tested = moments if of_inputs else None
        weights = [best.gain] + [best.gain - gap for gap in rivals]
        weights += [c.weight(of_inputs=of_inputs) - self._penalty(c, [best], tested) for c in rest]
        weights = [TEMPER * w for w in weights]
        probability = float(np.exp(weights[0] - np.logaddexp.reduce(weights)))
        kept = ~best.unclear
        room = moments is None or leave_room(moments.among(kept), narrowed(best.generators, kept))
        return Closed(best.generators, probability, of_inputs, unclear, room)

    def _candidates_of(self, groups: Iterable[tuple[Indices, Unclear]]) -> list[Candidate]:
        return [c for group in groups if (c := self.candidate(*group)) is not None]

    def candidate(
        self, generators: Indices, unclear: Unclear, parts: Sequence[Int64[np.ndarray, "_ dim"]] = ()
    ) -> Candidate | None:
        """Score a group.

        Args:
            generators: Index arrays, signs included.
            unclear: Inputs to set aside, along with the others of their orbits.
            parts: Generators of what it is a join of.

        Returns:
            The group on all other inputs; None if it is trivial or too large, if it joins versions of one element,
            or if most inputs are set aside.
        """
        identity, moved = np.arange(generators.shape[1]), moves(generators)
        if not moved.any():
            return None
        orbits = orbits_of(generators)
        unclear = unclear | np.isin(orbits, orbits[unclear])
        if (moved & unclear).sum() > MOST_SET_ASIDE * moved.sum():
            return None
        generators = np.where(unclear, identity, generators)
        generators = np.unique(generators[(generators != identity).any(axis=1)], axis=0)
        if not len(generators) or order_of(generators, LARGEST_JOIN) is None:
            return None
        if parts and are_versions(generators, parts):
            return None
        key = generators.tobytes() + unclear.tobytes()
        if key not in self._candidates:
            gain = self.judge.gain(generators)
            against = self.judge.log_e_value_against_inputs(generators, unclear)
            self._candidates[key] = Candidate(generators, gain, against, unclear)
        return self._candidates[key]

    def _pool(self, accepted: list[Proposal]) -> Iterable[tuple[Indices, Unclear]]:
        """Accepted proposals refined on the moments of all examples, and permutations found from these moments."""
        for source in dict.fromkeys(p.source for p in accepted if p.kind in ("permutation", "together")):
            # Among many inputs a search takes long, and finds what was proposed.
            if source in self.moments and self.moments[source].dim <= CHEAP:
                for _, index in search(self.moments[source], self.rng, signed=False)[:KEPT]:
                    yield index[None], self.hardly
                    yield self._clear_part(index[None])
        for proposal in accepted:
            moments = self.moments.get(proposal.source)
            if moments is None:
                continue
            if proposal.kind == "signs":
                continue
            if proposal.kind == "exchanges":
                yield from ((generators, self._hardly(proposal)) for _, generators in exchanges(moments))
            else:
                better = np.stack([refine(moments, g, signed=False) for g in proposal.generators])
                if moments.dim <= CHEAP:
                    yield better, self.hardly
                    yield from ((g[None], self.hardly) for g in better)
                yield self._clear_part(better)
                yield from (self._clear_part(g[None]) for g in better)

    def _hardly(self, proposal: Proposal) -> Unclear:
        """Inputs to set aside; members of an exchangeable part have no place that they could miss."""
        return self.hardly if proposal.kind in ("permutation", "together") else np.zeros_like(self.hardly)

    def _clear_part(self, generators: Indices) -> tuple[Indices, Unclear]:
        """Set aside what is irregular: a few wrong places join cycles of a true element to long ones."""
        kept = np.stack([regular_part(g, 1 - MOST_SET_ASIDE) for g in generators])
        return kept, self.hardly | moves(generators) & ~moves(kept)

    def _inputs_have_it(self, pool: list[Candidate]) -> bool:
        """Whether a candidate that gains at least half as much as the best one is a symmetry of the inputs too."""
        most = max(c.gain for c in pool)
        return any(c.against_inputs < REJECTED and c.gain >= most / 2 for c in pool)

    def _first(self, pool: list[Candidate], *, of_inputs: bool) -> Candidate:
        """The smallest of the candidates with nearly the most weight."""
        moments = self.moments.get("inputs") if of_inputs else None
        weights = [c.weight(of_inputs=of_inputs) - self._penalty(c, pool, moments) for c in pool]
        least = max(weights) - max(WORTH_JOINING, AS_GOOD * abs(max(weights)))
        nearly = [c for c, weight in zip(pool, weights, strict=True) if weight >= least]
        return min(nearly, key=lambda c: (order_of(c.generators, LARGEST_JOIN) or LARGEST_JOIN, -c.gain))

    def _joined(self, best: Candidate, pool: list[Candidate], *, of_inputs: bool) -> Candidate:
        """Join a candidate with others as long as the join has more weight than the best so far."""
        others = sorted(pool, key=lambda c: -c.weight(of_inputs=of_inputs))
        others = [c for i, c in enumerate(others) if i < JOINED or c.passed]
        improved = True
        while improved:
            improved = False
            for other in others:
                if contains(best.generators, other.generators):
                    continue
                both = np.concatenate([best.generators, other.generators])
                parts = (best.generators, other.generators)
                joined = self.candidate(both, best.unclear | other.unclear, parts)
                if joined is not None and self._is_better(joined, best, of_inputs=of_inputs):
                    best, improved = joined, True
        return best

    def _lean(self, best: Candidate, *, of_inputs: bool) -> Candidate:
        """Leave out generators that labels do not pay for: two versions of one element make a larger group."""
        while len(best.generators) > 1:
            fewer = [np.delete(best.generators, i, axis=0) for i in range(len(best.generators))]
            parts = self._candidates_of((generators, best.unclear) for generators in fewer)
            smaller = max(parts, key=lambda c: c.weight(of_inputs=of_inputs), default=None)
            if smaller is None or self._is_better(best, smaller, of_inputs=of_inputs):
                return best
            best = smaller
        return best

    def _penalty(self, candidate: Candidate, others: list[Candidate], moments: Moments | None) -> float:
        """Nats by which moments speak against a candidate, as compared with the one that they fit best."""
        if moments is None or candidate.weight(of_inputs=True) == -np.inf:
            return 0.0
        tests = [self._moment_test(moments, c) for c in others if c.against_inputs < REJECTED]
        return self._moment_test(moments, candidate).penalty(min(tests, key=lambda test: test.ratio))

    def _moment_test(self, moments: Moments, candidate: Candidate) -> MomentTest:
        """Test whether moments of the inputs that are clear are invariant but for noise."""
        kept = ~candidate.unclear
        symmetry = joint_symmetry_of(narrowed(candidate.generators, kept))
        return moment_test(moments.among(kept), symmetry, len(self.judge.examples))

    def _is_better(self, larger: Candidate, best: Candidate, *, of_inputs: bool) -> bool:
        """Whether a larger group is worth it: labels pay for it, and moments do not speak against it."""
        gained = larger.weight(of_inputs=of_inputs) - best.weight(of_inputs=of_inputs) - WORTH_JOINING
        moments = self.moments.get("inputs") if of_inputs else None
        return bool(gained > 0 and gained > self._penalty(larger, [best], moments))

    def _grown(self, best: Candidate, moments: Moments, *, of_inputs: bool) -> Candidate:
        """Look for further elements on moments that are averaged over the group, and so have less noise."""
        for _ in range(GROWTHS):
            kept = ~best.unclear
            own, generators = moments.among(kept), narrowed(best.generators, kept)
            symmetry, orbits = joint_symmetry_of(generators), orbits_of(generators)
            averaged = own.averaged(symmetry.elements)
            all_one = not orbits.any()
            tried = search(averaged, self.rng, signed=False, beyond=None if all_one else orbits)
            found = ranked(averaged, [closest_to_identity(index, symmetry.elements) for _, index in tried])
            # A true element changes averaged moments by what noise is left of them.
            misfits = [own.misfit(e) for e in symmetry.elements]
            noise = np.mean(misfits) / (len(symmetry.elements) - 1)
            before = best
            mended = [fitting(index, symmetry.elements) for _, index in found[:KEPT]]
            for index in [*(index for _, index in found[:KEPT]), *mended]:
                larger = None
                alike = all_one and own.misfit(index) <= AS_NOISY * max(misfits)
                if alike or averaged.misfit(index) <= MOST_NOISE * noise:
                    joined = np.concatenate([generators, index[None]])
                    larger = self.candidate(widened(joined, kept), ~kept, (best.generators,))
                if larger is not None and self._is_better(larger, best, of_inputs=of_inputs):
                    best = larger
            if same_group(best.generators, before.generators):
                return before
        return best

    def _polished_by_labels(self, best: Candidate, moments: Moments) -> tuple[Candidate, list[float]]:
        """Exchange pairs of inputs as long as the labels are predicted better."""
        for _ in range(NEIGHBOURS):
            others = neighbours(best.generators, moments, NEIGHBOURS // 2)
            tried = [self.candidate(other, best.unclear) for _, other in others]
            gains = [(c.gain, i, c) for i, c in enumerate(tried) if c is not None]
            if not gains or max(gains)[0] <= best.gain:
                return best, [best.gain - gain for gain, _, _ in gains]
            best = max(gains)[2]
        return best, []

    def _polished(self, best: Candidate, moments: Moments) -> tuple[Candidate, Unclear, list[float]]:
        """Mend the group by moments.

        Args:
            best: The group.
            moments: What it leaves alone.

        Returns:
            The mended group, all inputs whose places are unclear, and how far behind exchanges of others are.
        """
        kept = ~best.unclear
        generators = polished(narrowed(best.generators, kept), moments.among(kept))
        best = self.candidate(widened(generators, kept), best.unclear) or best
        bad = np.zeros_like(kept)
        bad[kept] = outliers(narrowed(best.generators, kept), moments.among(kept))
        best = self.candidate(best.generators, best.unclear | bad) or best
        kept = ~best.unclear
        bad, gaps = unresolved(narrowed(best.generators, kept), moments.among(kept))
        unclear = best.unclear.copy()
        unclear[kept] = bad
        return best, unclear, gaps

    def _alternatives(self, best: Candidate, unclear: Bool[np.ndarray, " dim"]) -> list[Candidate]:
        """List every other group that was scored, and some subgroups; unclear inputs make no difference."""
        for generators in subgroups(best.generators):
            self.candidate(generators, best.unclear)
        seen = [best.generators]
        found = []
        for candidate in sorted(self._candidates.values(), key=lambda c: -c.gain)[:ALTERNATIVES]:
            left_alone = unclear | candidate.unclear
            clear, *others = (_without(left_alone, g) for g in (candidate.generators, *seen))
            if moves(clear).any() and are_permutations(clear) and not any(same_group(clear, g) for g in others):
                seen.append(candidate.generators)
                found.append(candidate)
        return found


def _without(inputs: Unclear, generators: Indices) -> Indices:
    """Leave some inputs where they are."""
    return np.where(inputs, np.arange(len(inputs)), generators)
