r"""From accepted proposals to one exact group, and how probable it is that it is exactly this one.

Near misses gain almost as much as the truth: a turn with two pixels exchanged is still nearly a turn. So accepted
permutations are refined on the moments of all examples, joined where the join predicts better, and compared with their
neighbours: subgroups, and conjugates by a single exchange.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float64, Int64

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.copies import symmetry_of
from invariantnet.discovery.judging import Judge, group_fit, moves, worst_inputs
from invariantnet.discovery.proposals import (
    FEW_INPUTS,
    LARGEST_JOIN,
    Proposal,
    Source,
    exchange_misfits,
    exchanges,
    order_of,
    refine,
)
from invariantnet.symmetries._closure import Indices, extend
from invariantnet.symmetries._orbits import signed_orbits
from invariantnet.symmetries.group import Group

NEIGHBOURS = 40
"""Exchanges of two inputs after which a group is compared with itself: the ones that the moments resolve least."""

UNRESOLVED = 3.0
"""Nats below which two places count as not told apart, so that the inputs there are set aside."""

MOST_SET_ASIDE = 0.35
"""Share of the moved inputs that may be set aside; if more are unclear, the verdict is that much less sure."""

OUTLIER = 4.0
"""Ratio of the misfit of an orbit to the typical one above which the orbit does not belong to the symmetry."""

REJECTED = 3.0
"""Log e-value above which the inputs do not have a symmetry, at the level 0.05."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A group that remains in question.

    Args:
        generators: Index arrays, signs included.
        gain: Nats by which it predicts the judged labels better than no symmetry.
        against_inputs: Log e-value against the inputs having it.
    """

    generators: Indices
    gain: float
    against_inputs: float

    def weight(self, *, of_inputs: bool) -> float:
        """Log weight in the posterior; what speaks against the inputs counts if they are to have the symmetry."""
        return self.gain - (max(0.0, self.against_inputs) if of_inputs else 0.0)


@dataclass(frozen=True, eq=False)
class Closed:
    """The chosen group.

    Args:
        generators: Index arrays, signs included.
        probability: That it is exactly this group, among all candidates that were compared.
        of_inputs: Whether the inputs have the symmetry too.
        unclear: Inputs that were set aside because their places cannot be told.
    """

    generators: Indices
    probability: float
    of_inputs: bool
    unclear: Bool[np.ndarray, " dim"]


@dataclass(eq=False)
class Closing:
    """Turns accepted proposals into one group.

    Args:
        judge: Scores groups on labels.
        moments: Moments of all examples, by source.
        signed: Whether signs may change.
    """

    judge: Judge
    moments: dict[Source, Moments]
    signed: bool
    _candidates: dict[bytes, Candidate] = field(default_factory=dict)

    def close(self, accepted: list[Proposal]) -> Closed:
        """Choose the group that the accepted proposals speak for."""
        pool = [c for generators in self._pool(accepted) if (c := self.candidate(generators)) is not None]
        of_inputs = self._inputs_have_it(pool)
        best = self._joined(pool, of_inputs=of_inputs)
        moments = self.moments.get("inputs" if of_inputs else "predictions")
        unclear = np.zeros(self.judge.examples.x.shape[1], bool)
        rivals: list[float] = []
        if moments is not None and of_inputs:
            best = self._polished(best, moments)
            best, unclear = self._without_outliers(best, moments)
            best, also_unclear, rivals = self._without_unresolved(best, moments)
            unclear |= also_unclear
        elif moments is not None:
            best, rivals = self._polished_by_labels(best, moments)
        others = [c for c in self._alternatives(best) if c is not best]
        weights = [best.weight(of_inputs=of_inputs)]
        weights += [c.weight(of_inputs=of_inputs) for c in others] + [weights[0] - gap for gap in rivals]
        probability = float(np.exp(weights[0] - np.logaddexp.reduce(weights)))
        return Closed(best.generators, probability, of_inputs, unclear)

    def candidate(self, generators: Indices) -> Candidate | None:
        """Score a group; None if it is trivial or too large."""
        identity = np.arange(generators.shape[1])
        generators = np.unique(generators[(generators != identity).any(axis=1)], axis=0)
        if not len(generators):
            return None
        if generators.shape[1] > FEW_INPUTS and order_of(generators, LARGEST_JOIN) is None:
            return None
        key = generators.tobytes()
        if key not in self._candidates:
            self._candidates[key] = Candidate(
                generators, self.judge.gain(generators), self.judge.log_e_value_against_inputs(generators)
            )
        return self._candidates[key]

    def _pool(self, accepted: list[Proposal]) -> Iterable[Indices]:
        for proposal in accepted:
            yield proposal.generators
            moments = self.moments.get(proposal.source)
            if moments is None:
                continue
            if proposal.kind == "exchanges":
                yield from (generators for _, generators in exchanges(moments))
            else:
                better = np.stack([refine(moments, g, signed=self.signed) for g in proposal.generators])
                yield better
                yield from (g[None] for g in better)

    def _inputs_have_it(self, pool: list[Candidate]) -> bool:
        """Whether a candidate that gains at least half as much as the best one is a symmetry of the inputs too."""
        most = max(c.gain for c in pool)
        return any(c.against_inputs < REJECTED and c.gain >= most / 2 for c in pool)

    def _joined(self, pool: list[Candidate], *, of_inputs: bool) -> Candidate:
        """Join candidates as long as the join has more weight than the best so far."""
        best = max(pool, key=lambda c: c.weight(of_inputs=of_inputs))
        improved = True
        while improved:
            improved = False
            for other in sorted(pool, key=lambda c: -c.weight(of_inputs=of_inputs)):
                joined = self.candidate(np.concatenate([best.generators, other.generators]))
                if joined is not None and joined.weight(of_inputs=of_inputs) > best.weight(of_inputs=of_inputs):
                    if not _same_group(joined.generators, best.generators):
                        improved = True
                    best = joined
        return best

    def _polished(self, best: Candidate, moments: Moments) -> Candidate:
        """Exchange pairs of inputs as long as the moments fit the group better."""
        generators = best.generators
        fit = group_fit(moments, symmetry_of(generators))
        for _ in range(NEIGHBOURS):
            tried = [
                (group_fit(moments, symmetry_of(other)), other)
                for _, other in _neighbours(generators, moments, NEIGHBOURS)
            ]
            better = max(tried, key=lambda pair: pair[0], default=(-np.inf, generators))
            if better[0] <= fit:
                break
            fit, generators = better
        return self.candidate(generators) or best

    def _polished_by_labels(self, best: Candidate, moments: Moments) -> tuple[Candidate, list[float]]:
        """Exchange pairs of inputs as long as the labels are predicted better."""
        for _ in range(NEIGHBOURS):
            tried = [self.candidate(other) for _, other in _neighbours(best.generators, moments, NEIGHBOURS // 2)]
            gains = [(c.gain, i, c) for i, c in enumerate(tried) if c is not None]
            if not gains or max(gains)[0] <= best.gain:
                return best, [best.gain - gain for gain, _, _ in gains]
            best = max(gains)[2]
        return best, []

    def _without_outliers(
        self, best: Candidate, moments: Moments
    ) -> tuple[Candidate, Bool[np.ndarray, " dim"]]:
        """Set orbits aside whose moments change far more than those of others."""
        misfit = worst_inputs(moments, symmetry_of(best.generators))
        orbits, moved = _orbits(best.generators), moves(best.generators)
        sizes = np.bincount(orbits)
        mean = (np.bincount(orbits, misfit) / sizes)[orbits]
        bad = moved & (mean > OUTLIER * np.median(mean[moved]))
        return self._restricted(best, bad)

    def _without_unresolved(
        self, best: Candidate, moments: Moments
    ) -> tuple[Candidate, Bool[np.ndarray, " dim"], list[float]]:
        """Set orbits aside whose places the moments cannot tell apart."""
        fit = group_fit(moments, symmetry_of(best.generators))
        bad = np.zeros(moments.dim, bool)
        gaps = []
        orbits = _orbits(best.generators)
        for pair, other in _neighbours(best.generators, moments, NEIGHBOURS):
            gap = fit - group_fit(moments, symmetry_of(other))
            if gap < UNRESOLVED:
                bad |= np.isin(orbits, orbits[list(pair)])
            gaps.append((gap, pair))
        restricted, unclear = self._restricted(best, bad & moves(best.generators))
        return restricted, unclear, [gap for gap, pair in gaps if not unclear[list(pair)].any()]

    def _restricted(
        self, best: Candidate, bad: Bool[np.ndarray, " dim"]
    ) -> tuple[Candidate, Bool[np.ndarray, " dim"]]:
        moved = moves(best.generators)
        nothing_changes = best, np.zeros_like(bad)
        if not bad.any() or bad.sum() > MOST_SET_ASIDE * moved.sum():
            return nothing_changes
        restricted = self.candidate(np.where(bad, np.arange(len(bad)), best.generators))
        return nothing_changes if restricted is None else (restricted, bad)

    def _alternatives(self, best: Candidate) -> list[Candidate]:
        """List every distinct group that was scored, and some subgroups of the best one."""
        for generators in _subgroups(best.generators):
            self.candidate(generators)
        found: list[Candidate] = [best]
        for candidate in self._candidates.values():
            if not any(_same_group(candidate.generators, known.generators) for known in found):
                found.append(candidate)
        return found


def _subgroups(generators: Indices) -> Iterable[Indices]:
    """Groups of all generators but one, and of squares of single generators."""
    for i in range(len(generators)):
        yield np.delete(generators, i, axis=0)
    for generator in generators:
        yield extend(generator)[generator][None]


def _neighbours(
    generators: Indices, moments: Moments, count: int
) -> list[tuple[tuple[int, int], Indices]]:
    """Conjugates of a group by exchanges of two inputs that look alike; the group itself is left out."""
    dim = moments.dim
    moved = moves(generators)
    alike = exchange_misfits(moments)
    first, second = np.triu_indices(dim, 1)
    useful = moved[first] | moved[second]
    order = np.argsort(alike[first, second][useful], kind="stable")
    found = []
    for k in order:
        a, b = int(first[useful][k]), int(second[useful][k])
        exchange = np.arange(dim)
        exchange[[a, b]] = b, a
        other = np.stack([conjugate(g, exchange) for g in generators])
        if not _same_group(generators, other):
            found.append(((a, b), other))
            if len(found) == count:
                break
    return found


def conjugate(
    index: Int64[np.ndarray, " dim"], by: Int64[np.ndarray, " dim"]
) -> Int64[np.ndarray, " dim"]:
    """Rename the inputs of an index array: the same permutation, had the inputs come in another order."""
    dim = len(index)
    wide = extend(by)
    return np.argsort(wide)[extend(index)[wide]][:dim]


def _same_group(one: Indices, other: Indices) -> bool:
    """Whether two sets of generators make the same group."""
    if one.shape == other.shape and np.array_equal(np.unique(one, axis=0), np.unique(other, axis=0)):
        return True
    if not np.array_equal(_orbits(one), _orbits(other)):
        return False
    groups = [Group("", g) for g in (one, other)]
    return groups[0] == groups[1]


def _orbits(generators: Indices) -> Int64[np.ndarray, " dim"]:
    return signed_orbits(generators % generators.shape[1])[0]


def as_floats(values: Iterable[float]) -> Float64[np.ndarray, " n"]:
    """Numbers as an array."""
    return np.array(list(values), dtype=np.float64)
