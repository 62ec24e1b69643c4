"""What is known while a race is run: scores, drops, and the posterior that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from invariantnet.data.examples import Examples
from invariantnet.inference.bootstrap import mean_prediction
from invariantnet.inference.posterior import Stage, SymmetryPosterior
from invariantnet.inference.prices import prices
from invariantnet.inference.rules import Drop, Scored, with_bounds
from invariantnet.symmetries.group import Group


@dataclass
class Standings:
    """Scores so far, and what they say.

    Args:
        scores: Log probability of each label by each network of each hypothesis.
        counts: How often each label counts.
        alive: Indices of the hypotheses still in the race.
        first_only: Labels for which some hypotheses have one network only.
    """

    scores: Scored
    counts: Float[np.ndarray, " n"]
    alive: list[int]
    first_only: np.ndarray
    drops: dict[int, Drop] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    accuracy: dict[int, dict[str, float]] = field(default_factory=dict)
    affordable: list[bool] | None = None
    guessing: float = 0.0
    network_error: float | None = None
    """Per label; unknown until several networks have predicted a block."""
    labels: int = 0
    """Labels predicted so far."""

    @property
    def bounded(self) -> Scored:
        """Scores so far, with upper bounds where a hypothesis was dropped."""
        return with_bounds(self.scores, self.drops)[:, :, : self.labels]

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
        return cls(np.zeros((hypotheses, networks, n)), counts, list(range(hypotheses)), np.zeros(n, dtype=bool))

    @property
    def networks(self) -> int:
        """Networks per hypothesis."""
        return self.scores.shape[1]

    def posterior(self, symmetries: Sequence[Group], starts: Sequence[int]) -> SymmetryPosterior:
        """The answer after the last block that was run.

        Args:
            symmetries: The hypotheses.
            starts: Number of labels predicted before each block.

        Returns:
            The posterior over the symmetries.
        """
        bounded, counts = self.bounded, self.counts[: self.labels]
        seen = mean_prediction(bounded) * counts
        last = {k: drop.labels for k, drop in self.drops.items()}
        shared = min(last.values(), default=self.labels)
        begun = [start for start in starts if start < self.labels]
        # Where some hypotheses have one network, compare all by their first.
        pointwise = np.where(self.first_only[: self.labels], bounded[:, 0], mean_prediction(bounded))
        return SymmetryPosterior(
            names=tuple(g.name for g in symmetries),
            orders=tuple(g.order for g in symmetries),
            probabilities=tuple(self.stages[-1].probabilities.values()),
            log_evidence=tuple(seen.sum(1).tolist()),
            log_evidence_spread=tuple((bounded * counts).sum(-1).std(1, ddof=int(self.networks > 1)).tolist()),
            examples=self.labels,
            dropped=tuple(symmetries[k].name for k in sorted(self.drops)),
            prices=tuple(prices(symmetries, self.accuracy, seen, begun, last)),
            race=tuple(self.stages),
            guessing=self.guessing,
            pointwise=pointwise[:, :shared],
            counts=counts[:shared],
        )
