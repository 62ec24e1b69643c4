"""A problem whose symmetry is known, and the verdict on it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from invariantnet.estimator import InvariantClassifier, InvariantRegressor
from invariantnet.inference.hypotheses import candidates
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import join

SURE = 0.9
"""A verdict with this probability counts as sure: the package calls it strong."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Examples, and what is known about their symmetry.

    Args:
        x: Inputs, one per row.
        y: Classes, or numbers.
        shape: Shape of one input.
        candidates: Symmetries to compare; their joins are compared too.
        truth: Names of the candidates whose join is the largest true symmetry; empty if there is none.
        numbers: `y` holds numbers, not classes.
    """

    x: Float[np.ndarray, "n dim"]
    y: np.ndarray
    shape: tuple[int, ...]
    candidates: tuple[str | Group, ...]
    truth: tuple[str, ...] = ()
    numbers: bool = False

    def hypotheses(self) -> list[Group]:
        """All symmetries that are compared, none first."""
        return [s for s in candidates(list(self.candidates), self.shape, joins=True) if isinstance(s, Group)]

    def true_group(self) -> Group:
        """The largest true symmetry among the hypotheses, under the name that a verdict gives it.

        Raises:
            ValueError: If a true symmetry is no candidate.
        """
        every = self.hypotheses()
        named = {g.name: g for g in every}
        missing = [name for name in self.truth if name not in named]
        if missing:
            raise ValueError(f"{', '.join(missing)} cannot be the truth: make it a candidate.")
        largest = named[TRIVIAL]
        for name in self.truth:
            largest = join(largest, named[name])
        return next(g for g in every if g == largest)

    def is_true(self, name: str) -> bool:
        """Whether a hypothesis is the true symmetry or a part of it."""
        return next(g for g in self.hypotheses() if g.name == name) <= self.true_group()

    def first(self, n: int) -> "Problem":
        """The same problem with at most n examples."""
        return replace(self, x=self.x[:n], y=self.y[:n])


class Judged(Protocol):
    """A record of a verdict on a problem whose truth is known."""

    @property
    def truth(self) -> str | None:
        """Name of the true hypothesis, if it is known."""

    @property
    def names(self) -> tuple[str, ...]:
        """The hypotheses."""

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Their probabilities."""


@dataclass(frozen=True)
class Verdict:
    """What a comparison found, and what it cost."""

    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    strength: str
    seconds: float
    """CPU seconds of the comparison."""


def favourite(record: Judged | Verdict) -> str:
    """The most probable hypothesis."""
    return record.names[int(np.argmax(record.probabilities))]


def is_sure(record: Judged | Verdict) -> bool:
    """Whether the favourite has at least `SURE`."""
    return max(record.probabilities) >= SURE


def is_right(record: Judged) -> bool:
    """Whether the favourite is the truth."""
    return favourite(record) == record.truth


def judge(problem: Problem, seed: int, **settings: Any) -> Verdict:
    """Ask for the verdict, without a final network.

    Args:
        problem: The examples and the candidates.
        seed: Seed of all networks.
        settings: Settings of the estimator that are not its defaults.

    Returns:
        The verdict.
    """
    asked = estimator(problem, seed, **settings)
    asked.compare(problem.x, problem.y)
    return verdict_of(asked)


def estimator(problem: Problem, seed: int, **settings: Any) -> InvariantClassifier | InvariantRegressor:
    """Make the estimator that suits a problem, with its defaults unless settings say otherwise."""
    kind = InvariantRegressor if problem.numbers else InvariantClassifier
    return kind(list(problem.candidates), problem.shape, random_state=seed, **settings)


def verdict_of(fitted: InvariantClassifier | InvariantRegressor) -> Verdict:
    """Read the verdict of a fitted estimator."""
    found = fitted.posterior_
    return Verdict(
        tuple(found.names),
        tuple(round(float(p), 5) for p in found.probabilities),
        found.strength,
        round(fitted.cpu_seconds_["comparison"], 2),
    )


def share(flags: Sequence[bool]) -> float:
    """Share of true values; 0 if there are none."""
    return float(np.mean(flags)) if len(flags) else 0.0


def generator(seed: int, *words: object) -> np.random.Generator:
    """Make a random generator of its own for every seed and description."""
    return np.random.default_rng(np.random.SeedSequence([seed, *" ".join(map(str, words)).encode()]))
