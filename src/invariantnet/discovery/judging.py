"""How well predictors with a symmetry predict labels that the symmetry was not proposed from."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.stats import norm

from invariantnet.discovery.copies import Symmetry, joint_symmetry_of, nothing
from invariantnet.discovery.evalues import log_e_value, log_e_value_of_copies
from invariantnet.discovery.neighbours import narrowed
from invariantnet.discovery.predictors import AnyPredictor, Labelled
from invariantnet.discovery.scores import Scores
from invariantnet.symmetries._closure import Indices

GROWTH = 3
"""Ratio of one number of examples that predictors learn from to the next. A symmetry gains most where few examples
have to do; predictors of many examples tell best whether it is true."""

BLOCKS = 24
"""Blocks of labels at most, each with predictors of its own: every block costs a fit of each proposal."""

REPEATS = 3
"""Predictors of each block, of different examples, whose scores are averaged; one where most examples are learned
from."""

MOST_LEARNED = 1000
"""Examples that a predictor learns from at most: a kernel takes time that grows with their third power."""

FEWEST_LEARNED = 15
"""Examples that a predictor learns from at least; and not fewer than there are inputs, within reason."""

MOST_JUDGED = 2000
"""Labels that are judged at most: symmetries that gain anything much have passed by then."""

HOPELESS = -3.0
"""Log e-value for the fewest examples to learn from below which a symmetry is not tried with more of them: where
examples are few, any true constraint helps most."""

SHRINKAGE = 0.1
"""Share of the variances that is added to them, so that the covariance of inputs can be inverted."""


@dataclass(frozen=True, eq=False)
class Task:
    """A block of labels to predict, and the examples to learn from."""

    pasts: tuple[Int64[np.ndarray, " past"], ...]
    block: slice


@dataclass(eq=False)
class Judge:
    """Compares predictors with and without symmetries on the same labels.

    Every block of labels is predicted from examples of its own, drawn from the past, so that the luck of one
    predictor does not decide.

    Args:
        predictor: Predicts labels from earlier examples.
        examples: All examples, in the order in which they are seen.
        first: Number of examples at the beginning that are only learned from.
        scores: What was scored before.
        seed: Decides which examples are learned from.
    """

    predictor: AnyPredictor
    examples: Labelled
    first: int
    scores: Scores
    seed: int = 0

    @cached_property
    def tasks(self) -> list[list[Task]]:
        """What is predicted from what, for each number of examples to learn from."""
        last = min(len(self.examples), self.first + MOST_JUDGED)
        rng = np.random.default_rng(self.seed)
        found = []
        for size in self.sizes:
            count = min(BLOCKS, max(3, 2 * len(self.examples) // size))
            repeats = REPEATS if size < self.sizes[-1] else 1
            edges = np.linspace(self.first, last, count + 1).round().astype(int)
            found.append(
                [
                    Task(
                        tuple(rng.choice(start, min(size, start), replace=False) for _ in range(repeats)),
                        slice(start, end),
                    )
                    for start, end in pairwise(edges.tolist())
                    if end > start
                ]
            )
        return found

    @property
    def sizes(self) -> list[int]:
        """Numbers of examples that predictors learn from, the smallest first."""
        most = min(MOST_LEARNED, self.first)
        least = min(max(FEWEST_LEARNED, min(2 * self.examples.x.shape[1], 60)), most)
        found = [most]
        while found[-1] > least * GROWTH**0.5:
            found.append(max(least, found[-1] // GROWTH))
        return found[::-1]

    def log_likelihood(self, generators: Indices, size: int) -> Float64[np.ndarray, " labels"]:
        """Log probability of every judged label, by predictors with the symmetry that the generators make.

        Args:
            generators: Index arrays, signs included.
            size: Which of the numbers of examples to learn from.

        Returns:
            One number per label.
        """

        def scored() -> Float64[np.ndarray, " labels"]:
            symmetry = joint_symmetry_of(generators)
            return np.concatenate([self._score(symmetry, task) for task in self.tasks[size]])

        return self.scores.get(self.predictor, generators, scored, size)

    def _score(self, symmetry: Symmetry, task: Task) -> Float64[np.ndarray, " block"]:
        """Log probability of the labels of a block, on average over predictors."""
        block = self.examples[task.block]
        scores = [self.predictor.score(symmetry, self.examples[past], block) for past in task.pasts]
        return np.asarray(np.mean(scores, axis=0))

    def gains(self, generators: Indices) -> Float64[np.ndarray, "sizes labels"]:
        """Nats that the symmetry gains over none at every label."""
        return np.stack([self._gains_from(generators, size) for size in range(len(self.tasks))])

    def _gains_from(self, generators: Indices, size: int) -> Float64[np.ndarray, " labels"]:
        plain = self.log_likelihood(nothing(self.examples.x.shape[1]).generators, size)
        return self.log_likelihood(generators, size) - plain

    def log_e_value(self, generators: Indices) -> float:
        """Log e-value of the null hypothesis that the symmetry gains nothing.

        It is the mean of the e-values for each number of examples to learn from, which is an e-value too; so it is
        if those of a hopeless symmetry count as 0 from the second number on.
        """
        values = [log_e_value(self._gains_from(generators, 0))]
        if values[0] > HOPELESS:
            values += [log_e_value(self._gains_from(generators, size)) for size in range(1, len(self.tasks))]
        return float(np.logaddexp.reduce(values) - np.log(len(self.tasks)))

    def p_value_from_most(self, generators: Indices) -> float:
        """P-value of the null hypothesis that the symmetry gains nothing if most examples are learned from.

        Any constraint helps a predictor of few examples. A true symmetry helps all of them.
        """
        return p_value_of_gain(self.gains(generators)[-1])

    def gain(self, generators: Indices) -> float:
        """Nats that the symmetry gains over none, on average over the numbers of examples to learn from."""
        return float(self.gains(generators).sum(axis=1).mean())

    def log_e_value_against_inputs(self, generators: Indices, unclear: Bool[np.ndarray, " dim"]) -> float:
        """Log e-value of the null hypothesis that the inputs have the symmetry: large if they do not.

        Args:
            generators: Index arrays, signs included.
            unclear: Inputs that are set aside. They stay where they are while others move, which tells copies.

        Returns:
            The log e-value.
        """
        symmetry = joint_symmetry_of(narrowed(generators, ~unclear))
        return inputs_against(symmetry, self.examples.x[:, ~unclear], self.first)


def p_value_of_gain(gains: Float64[np.ndarray, " labels"]) -> float:
    """P-value of the null hypothesis that gains are at most 0 on average, by a normal test."""
    error = max(float(gains.std()), 1e-12) / len(gains) ** 0.5
    return float(norm.sf(gains.mean() / error))


def inputs_against(symmetry: Symmetry, x: Float64[np.ndarray, "n dim"], first: int) -> float:
    """Log e-value against a symmetry of the inputs, from a Gaussian density of the first inputs.

    Args:
        symmetry: The symmetry.
        x: All inputs, in order.
        first: Number of inputs that the density is made from; the others are tested.

    Returns:
        The log e-value; large if original inputs can be told from their copies.
    """
    past, tested = x[:first], x[first:]
    covariance = np.cov(past.T, bias=True).reshape(x.shape[1], x.shape[1])
    variance = np.diag(covariance)
    covariance[np.diag_indices_from(covariance)] += SHRINKAGE * (variance + 0.1 * variance.mean()) + 1e-12
    precision, mean = np.linalg.inv(covariance), past.mean(axis=0)
    both = np.concatenate([tested, -tested], axis=1)
    identity = np.arange(x.shape[1])
    others = [e for e in symmetry.elements if not np.array_equal(e, identity)]
    densities = []
    for element in [identity, *others]:
        z = both[:, element] - mean
        densities.append(-0.5 * np.einsum("ni,ij,nj->n", z, precision, z, optimize=True))
    return log_e_value_of_copies(np.stack(densities, axis=1))
