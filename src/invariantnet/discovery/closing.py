r"""From accepted proposals to one exact group, and how probable it is that it is exactly this one.

Near misses gain almost as much as the truth: a turn with two pixels exchanged is still nearly a turn. So accepted
permutations are refined on the moments of all examples, joined where the join predicts better, and compared
with their
neighbours: subgroups, and conjugates by a single exchange.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.candidates import REJECTED, Candidate, Closed
from invariantnet.discovery.copies import joint_symmetry_of
from invariantnet.discovery.judging import Judge, group_fit, moment_test, moves, worst_inputs
from invariantnet.discovery.maximality import leave_room
from invariantnet.discovery.neighbours import (
    are_permutations,
    closest_to_identity,
    contains,
    fitting,
    neighbours,
    orbits_of,
    regular_part,
    same_group,
    subgroups,
)
from invariantnet.discovery.proposals import (
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

NEIGHBOURS = 40
"""Exchanges of two inputs after which a group is compared with itself: the ones that the moments resolve least."""

UNRESOLVED = 3.0
"""Nats below which two places count as not told apart, so that the inputs there are set aside."""

MOST_SET_ASIDE = 0.35
"""Share of the moved inputs that may be set aside; if more are unclear, the verdict is that much less sure."""

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

OUTLIER = 4.0
"""Ratio of the misfit of an orbit to the typical one above which the orbit does not belong to the symmetry."""


@dataclass(eq=False)
class Closing:
    """Turns accepted proposals into one group.

    Args:
        judge: Scores groups on labels.
        moments: Moments of all examples, by source.
        rng: Source of randomness.
    """

    judge: Judge
    moments: dict[Source, Moments]
    rng: np.random.Generator
    _candidates: dict[bytes, Candidate] = field(default_factory=dict)

    def close(self, accepted: list[Proposal]) -> Closed:
        """Choose the group that the accepted proposals speak for, and say how probable it is."""
        pool = self._candidates_of(p.generators for p in accepted)
        pool = [replace(c, passed=True) for c in pool] + self._candidates_of(self._pool(accepted))
        of_inputs = self._inputs_have_it(pool)
        best = self._joined(self._first(pool, of_inputs=of_inputs), pool, of_inputs=of_inputs)
        best = self._lean(best, of_inputs=of_inputs)
        moments = self.moments.get("inputs" if of_inputs else "predictions")
        if moments is not None:
            best = self._grown(best, moments, of_inputs=of_inputs)
            best = self._joined(best, pool, of_inputs=of_inputs)
        unclear = np.zeros(self.judge.examples.x.shape[1], bool)
        rivals: list[float] = []
        if moments is not None and of_inputs:
            best = self._polished(best, moments)
            best, unclear = self._without_outliers(best, moments)
            unresolved, rivals = self._unresolved(best, moments)
            unclear |= unresolved
        elif moments is not None:
            best, rivals = self._polished_by_labels(best, moments)
        rest = self._alternatives(best, unclear)
        tested = moments if of_inputs else None
        weights = [best.gain] + [best.gain - gap for gap in rivals]
        weights += [c.weight(of_inputs=of_inputs) - self._penalty(c, [best], tested) for c in rest]
        weights = [TEMPER * w for w in weights]
        probability = float(np.exp(weights[0] - np.logaddexp.reduce(weights)))
        room = moments is None or leave_room(moments, best.generators)
        return Closed(best.generators, probability, of_inputs, unclear, room)

    def _candidates_of(self, groups: Iterable[Indices]) -> list[Candidate]:
        return [c for generators in groups if (c := self.candidate(generators)) is not None]

    def candidate(self, generators: Indices) -> Candidate | None:
        """Score a group; None if it is trivial or too large."""
        identity = np.arange(generators.shape[1])
        generators = np.unique(generators[(generators != identity).any(axis=1)], axis=0)
        if not len(generators):
            return None
        if order_of(generators, LARGEST_JOIN) is None:
            return None
        key = generators.tobytes()
        if key not in self._candidates:
            self._candidates[key] = Candidate(
                generators, self.judge.gain(generators), self.judge.log_e_value_against_inputs(generators)
            )
        return self._candidates[key]

    def _pool(self, accepted: list[Proposal]) -> Iterable[Indices]:
        """Accepted proposals, the same refined, and permutations found from the moments of all examples."""
        for source in dict.fromkeys(p.source for p in accepted if p.kind in ("permutation", "together")):
            if source in self.moments:
                for _, index in search(self.moments[source], self.rng, signed=False)[:KEPT]:
                    yield index[None]
                    yield regular_part(index, 1 - MOST_SET_ASIDE)[None]
        for proposal in accepted:
            moments = self.moments.get(proposal.source)
            if moments is None:
                continue
            if proposal.kind == "signs":
                continue
            if proposal.kind == "exchanges":
                yield from (generators for _, generators in exchanges(moments))
            else:
                better = np.stack([refine(moments, g, signed=False) for g in proposal.generators])
                regular = np.stack([regular_part(g, 1 - MOST_SET_ASIDE) for g in better])
                for generators in (better, regular):
                    yield generators
                    yield from (g[None] for g in generators)

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
                joined = self.candidate(np.concatenate([best.generators, other.generators]))
                if joined is not None and self._is_better(joined, best, of_inputs=of_inputs):
                    best, improved = joined, True
        return best

    def _lean(self, best: Candidate, *, of_inputs: bool) -> Candidate:
        """Leave out generators that labels do not pay for: two versions of one element make a larger group."""
        while len(best.generators) > 1:
            parts = self._candidates_of(np.delete(best.generators, i, axis=0) for i in range(len(best.generators)))
            smaller = max(parts, key=lambda c: c.weight(of_inputs=of_inputs))
            if self._is_better(best, smaller, of_inputs=of_inputs):
                return best
            best = smaller
        return best

    def _penalty(self, candidate: Candidate, others: list[Candidate], moments: Moments | None) -> float:
        """Nats by which moments speak against a candidate, as compared with the one that they fit best."""
        if moments is None or candidate.weight(of_inputs=True) == -np.inf:
            return 0.0
        tests = [
            moment_test(moments, joint_symmetry_of(c.generators)) for c in others if c.against_inputs < REJECTED
        ]
        own = moment_test(moments, joint_symmetry_of(candidate.generators))
        return own.penalty(min(tests, key=lambda test: test.ratio))

    def _is_better(self, larger: Candidate, best: Candidate, *, of_inputs: bool) -> bool:
        """Whether a larger group is worth it: labels pay for it, and moments do not speak against it."""
        gained = larger.weight(of_inputs=of_inputs) - best.weight(of_inputs=of_inputs) - WORTH_JOINING
        moments = self.moments.get("inputs") if of_inputs else None
        return bool(gained > 0 and gained > self._penalty(larger, [best], moments))

    def _grown(self, best: Candidate, moments: Moments, *, of_inputs: bool) -> Candidate:
        """Look for further elements on moments that are averaged over the group, and so have less noise."""
        for _ in range(GROWTHS):
            symmetry = joint_symmetry_of(best.generators)
            averaged = moments.averaged(symmetry.elements)
            orbits = orbits_of(best.generators)
            all_one = not orbits.any()
            tried = search(averaged, self.rng, signed=False, beyond=None if all_one else orbits)
            found = ranked(averaged, [closest_to_identity(index, symmetry.elements) for _, index in tried])
            # A true element changes averaged moments by what noise is left of them.
            misfits = [moments.misfit(e) for e in symmetry.elements]
            noise = np.mean(misfits) / (len(symmetry.elements) - 1)
            before = best
            mended = [fitting(index, symmetry.elements) for _, index in found[:KEPT]]
            for index in [*(index for _, index in found[:KEPT]), *mended]:
                larger = None
                alike = all_one and moments.misfit(index) <= AS_NOISY * max(misfits)
                if alike or averaged.misfit(index) <= MOST_NOISE * noise:
                    larger = self.candidate(np.concatenate([best.generators, index[None]]))
                if larger is not None and self._is_better(larger, best, of_inputs=of_inputs):
                    best = larger
            if same_group(best.generators, before.generators):
                return before
        return best

    def _polished(self, best: Candidate, moments: Moments) -> Candidate:
        """Exchange pairs of inputs as long as the moments fit the group better."""
        generators = best.generators
        fit = group_fit(moments, joint_symmetry_of(generators))
        for _ in range(NEIGHBOURS):
            tried = [
                (group_fit(moments, joint_symmetry_of(other)), other)
                for _, other in neighbours(generators, moments, NEIGHBOURS)
            ]
            better = max(tried, key=lambda pair: pair[0], default=(-np.inf, generators))
            if better[0] <= fit:
                break
            fit, generators = better
        return self.candidate(generators) or best

    def _polished_by_labels(self, best: Candidate, moments: Moments) -> tuple[Candidate, list[float]]:
        """Exchange pairs of inputs as long as the labels are predicted better."""
        for _ in range(NEIGHBOURS):
            tried = [self.candidate(other) for _, other in neighbours(best.generators, moments, NEIGHBOURS // 2)]
            gains = [(c.gain, i, c) for i, c in enumerate(tried) if c is not None]
            if not gains or max(gains)[0] <= best.gain:
                return best, [best.gain - gain for gain, _, _ in gains]
            best = max(gains)[2]
        return best, []

    def _without_outliers(self, best: Candidate, moments: Moments) -> tuple[Candidate, Bool[np.ndarray, " dim"]]:
        """Set orbits aside whose moments change far more than those of others."""
        misfit = worst_inputs(moments, joint_symmetry_of(best.generators))
        orbits, moved = orbits_of(best.generators), moves(best.generators)
        sizes = np.bincount(orbits)
        mean = (np.bincount(orbits, misfit) / sizes)[orbits]
        bad = moved & (mean > OUTLIER * np.median(mean[moved]))
        return self._restricted(best, bad)

    def _unresolved(self, best: Candidate, moments: Moments) -> tuple[Bool[np.ndarray, " dim"], list[float]]:
        """Find orbits whose places the moments cannot tell apart, and how far behind all other exchanges are."""
        fit = group_fit(moments, joint_symmetry_of(best.generators))
        bad = np.zeros(moments.dim, bool)
        gaps = []
        orbits = orbits_of(best.generators)
        for pair, other in neighbours(best.generators, moments, NEIGHBOURS):
            gap = fit - group_fit(moments, joint_symmetry_of(other))
            if gap < UNRESOLVED:
                bad |= np.isin(orbits, orbits[list(pair)])
            gaps.append((gap, pair))
        if bad.sum() > MOST_SET_ASIDE * moves(best.generators).sum():
            bad[:] = False
        return bad, [gap for gap, pair in gaps if not bad[list(pair)].any()]

    def _restricted(
        self, best: Candidate, bad: Bool[np.ndarray, " dim"]
    ) -> tuple[Candidate, Bool[np.ndarray, " dim"]]:
        moved = moves(best.generators)
        nothing_changes = best, np.zeros_like(bad)
        if not bad.any() or bad.sum() > MOST_SET_ASIDE * moved.sum():
            return nothing_changes
        restricted = self.candidate(np.where(bad, np.arange(len(bad)), best.generators))
        return nothing_changes if restricted is None else (restricted, bad)

    def _alternatives(self, best: Candidate, unclear: Bool[np.ndarray, " dim"]) -> list[Candidate]:
        """List every other group that was scored, and some subgroups; unclear inputs make no difference."""
        for generators in subgroups(best.generators):
            self.candidate(generators)
        identity = np.arange(len(unclear))
        seen = [best.generators]
        found = []
        for candidate in sorted(self._candidates.values(), key=lambda c: -c.gain)[:ALTERNATIVES]:
            clear = np.where(unclear, identity, candidate.generators)
            if moves(clear).any() and are_permutations(clear) and not any(same_group(clear, g) for g in seen):
                seen.append(clear)
                found.append(candidate)
        return found
