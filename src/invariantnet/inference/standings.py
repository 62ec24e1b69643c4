"""What is known while a race is run: scores, drops, and the posterior that follows from them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from invariantnet.data.examples import Examples
from invariantnet.inference.bootstrap import mean_prediction
from invariantnet.inference.findings import Stage
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.kinds import kind_of
from invariantnet.inference.rules import Drop, Scored, with_bounds
from invariantnet.inference.scoring import BlockScore
from invariantnet.symmetries.ranges import AnySymmetry


@dataclass(frozen=True, eq=False)
class Contest:
    """Which hypotheses are compared, and what is believed of them beforehand.

    Args:
        symmetries: The candidates.
        hypotheses: Every symmetry with every model that suits it.
        log_prior: Log prior probability of each symmetry; its models share it equally.
    """

    symmetries: Sequence[AnySymmetry]
    hypotheses: Sequence[Hypothesis]
    log_prior: Float[np.ndarray, " symmetries"]

    @cached_property
    def members(self) -> list[list[int]]:
        """Indices of the hypotheses of each symmetry."""
        return [[k for k, h in enumerate(self.hypotheses) if h.symmetry is s] for s in self.symmetries]

    @cached_property
    def orders(self) -> list[int]:
        """Order of the symmetries by how much of it they have.

        Copies of an input count first; among equally many the extent, so that of two rungs of a ladder the smaller
        one has less.
        """
        sizes = [(s.copies, s.size) for s in self.symmetries]
        ranks = {size: rank for rank, size in enumerate(sorted(set(sizes)))}
        return [ranks[size] for size in sizes]

    @cached_property
    def kinds(self) -> list[int]:
        """Number of the kind of symmetry of each hypothesis."""
        names = [kind_of(h.symmetry.name) for h in self.hypotheses]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return [numbers[name] for name in names]

    def log_prior_of_hypotheses(self, excluded: Collection[int]) -> Float[np.ndarray, " hypotheses"]:
        """Log prior probability of each hypothesis: models share that of their symmetry, but for excluded ones."""
        values = np.full(len(self.hypotheses), -np.inf)
        for log_prior, ours in zip(self.log_prior, self._without(excluded), strict=True):
            values[ours] = log_prior - np.log(len(ours))
        return values

    def of_symmetries(self, probabilities: Float[np.ndarray, " hypotheses"]) -> Float[np.ndarray, " symmetries"]:
        r"""$p(\text{symmetry}) = \sum_\text{models} p(\text{symmetry}, \text{model})$."""
        return np.array([probabilities[ours].sum() for ours in self.members])

    def log_evidence(
        self, total: Float[np.ndarray, " hypotheses"], excluded: Collection[int]
    ) -> Float[np.ndarray, " symmetries"]:
        """Log evidence of each symmetry: the mean over its models of what each gave to the labels."""
        kept = self._without(excluded)
        return np.array([np.logaddexp.reduce(total[ours]) - np.log(len(ours)) for ours in kept])

    def best(self, total: Float[np.ndarray, " hypotheses"], among: Sequence[int]) -> list[int | None]:
        """The best hypothesis of each symmetry, among some; None where there is none."""
        chosen = set(among)
        alive = [[k for k in ours if k in chosen] for ours in self.members]
        return [max(ours, key=lambda k: total[k]) if ours else None for ours in alive]

    def _without(self, excluded: Collection[int]) -> list[list[int]]:
        return [[k for k in ours if k not in excluded] for ours in self.members]


@dataclass
class Standings:
    """Scores so far, and what they say.

    Args:
        scores: Log probability of each label by each network of each hypothesis.
        counts: How often each label counts.
        alive: Indices of the hypotheses still in the race.
        alone: Labels that a hypothesis predicted with one network, while others had several.
    """

    scores: Scored
    counts: Float[np.ndarray, " n"]
    alive: list[int]
    alone: Bool[np.ndarray, "hypotheses n"]
    guess: Float[np.ndarray, " n"]
    """Log probability of each label, predicted from earlier labels alone."""
    background: Float[np.ndarray, " n"]
    """Log probability of each label under a prediction that knows nothing."""
    drops: dict[int, Drop] = field(default_factory=dict)
    excluded: set[int] = field(default_factory=set)
    """Hypotheses whose model is hopeless even without symmetry: they count for no symmetry."""
    stages: list[Stage] = field(default_factory=list)
    tried: dict[int, BlockScore] = field(default_factory=dict)
    """For every symmetry that is reported, the last score of a hypothesis that also predicted moved inputs."""
    affordable: list[bool] | None = None
    network_error: float | None = None
    """Per label; unknown until several networks have predicted a block."""
    luck: float | Float[np.ndarray, " kinds"] = 0.0
    """Standard deviation of the log evidence of each kind that comes from the choice of networks, in nats."""
    labels: int = 0
    """Labels predicted so far."""
    probabilities: Float[np.ndarray, " hypotheses"] | None = None
    """Of the hypotheses, after the last block."""
    learned: bool = False
    """Whether some network predicts better than a guess from labels alone, and than one from nothing."""

    @property
    def bounded(self) -> Scored:
        """Scores so far, with upper bounds where a hypothesis was dropped."""
        return with_bounds(self.scores, self.drops)[:, :, : self.labels]

    @property
    def seen(self) -> Float[np.ndarray, "hypotheses n"]:
        """Log probability that each hypothesis gave to each label so far, times how often the label counts."""
        return mean_prediction(self.bounded) * self.counts[: self.labels]

    @classmethod
    def empty(cls, hypotheses: int, networks: int, examples: Examples, first: int) -> "Standings":
        """Standings before the first prediction.

        Args:
            hypotheses: Number of hypotheses.
            networks: Networks per hypothesis.
            examples: The data, in the order in which it is predicted.
            first: Number of examples that are only learned from.

        Returns:
            Standings in which nothing is known.
        """
        n, weight = len(examples) - first, examples.weight
        counts = np.ones(n) if weight is None else weight[first:].double().cpu().numpy()
        scores, alive = np.zeros((hypotheses, networks, n)), list(range(hypotheses))
        return cls(scores, counts, alive, np.zeros((hypotheses, n), dtype=bool), np.zeros(n), np.zeros(n))

    @property
    def networks(self) -> int:
        """Networks per hypothesis."""
        return self.scores.shape[1]

    @property
    def included(self) -> list[int]:
        """Indices of the hypotheses whose models are not excluded."""
        return [k for k in range(len(self.scores)) if k not in self.excluded]

    def leading(self, contest: Contest, among: Sequence[int]) -> list[int]:
        """The hypothesis of each symmetry that is ahead, the one that is told about; at first all of them."""
        if not self.labels:
            return list(among)
        return [k for k in contest.best(self.seen.sum(1), among) if k is not None]

    def note_tried(self, contest: Contest, scores: Mapping[int, BlockScore]) -> None:
        """Keep the scores of hypotheses that predicted moved inputs, instead of older ones of their symmetries."""
        for ours in contest.members:
            if newest := {k: scores[k] for k in ours if k in scores and scores[k].accuracy}:
                self.tried = {k: score for k, score in self.tried.items() if k not in ours} | newest

    def exclude(self, hypotheses: Sequence[int]) -> None:
        """Take hypotheses out of the comparison, as if they had never been in it."""
        self.excluded |= set(hypotheses)
        self.alive = [k for k in self.alive if k not in self.excluded]

    def drop(self, rivals: dict[int, int], since: int) -> None:
        """Take hypotheses out of the race.

        Args:
            rivals: Indices of hypotheses, each with the rival that it cannot catch up with.
            since: Labels that they have predicted.
        """
        self.drops |= {k: Drop(rival, since) for k, rival in rivals.items()}
        self.alive = [k for k in self.alive if k not in rivals]
