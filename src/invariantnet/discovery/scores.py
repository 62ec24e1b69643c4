"""Scores of groups that were computed before, so that an interrupted search goes on where it stopped."""

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from invariantnet._system.words import package_version
from invariantnet.discovery.predictors import Labelled
from invariantnet.inference.cache import NetworkKey, ScoreCache
from invariantnet.inference.scoring import BlockScore
from invariantnet.symmetries._closure import Indices


@dataclass(frozen=True, eq=False)
class Scores:
    """Log probabilities of labels by predictors with a symmetry, each computed once.

    Args:
        race: Digest of the examples, their order and the version: scores of other examples are never mixed in.
        cache: Where they are kept, in memory or in a folder.
    """

    race: str
    cache: ScoreCache = field(default_factory=dict)

    def get(
        self,
        predictor: Hashable,
        generators: Indices,
        compute: Callable[[], Float64[np.ndarray, " numbers"]],
        part: int = 0,
    ) -> Float64[np.ndarray, " numbers"]:
        """Look scores up, or compute and keep them.

        Args:
            predictor: What predicts.
            generators: Index arrays of the symmetry.
            compute: Computes the scores.
            part: Which of several scores of the same predictor and symmetry.

        Returns:
            The scores.
        """
        digest = hashlib.sha256(f"{generators.shape}".encode() + generators.tobytes()).hexdigest()
        key = NetworkKey(self.race, f"{predictor} {digest}", part, 0)
        if key not in self.cache:
            self.cache[key] = BlockScore(compute(), {})
        return self.cache[key].log_likelihood


def scores_of(examples: Labelled, cache: ScoreCache | None) -> Scores:
    """Keep the scores of a search.

    Args:
        examples: Examples in the order in which they are seen.
        cache: Where scores are kept; in memory if None.

    Returns:
        The scores, those of an interrupted search of the same examples included.
    """
    digest = hashlib.sha256(f"{package_version()} {examples.x.shape} {examples.classes}".encode())
    digest.update(np.ascontiguousarray(examples.x).data)
    digest.update(np.ascontiguousarray(examples.y).data)
    return Scores(digest.hexdigest()[:32], {} if cache is None else cache)
