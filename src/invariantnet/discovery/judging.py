"""How well a symmetry predicts labels that it has not seen, block by block."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float64

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.copies import Symmetry, nothing, symmetry_of
from invariantnet.discovery.evalues import log_e_value, log_e_value_of_copies
from invariantnet.discovery.predictors import Labelled, Predictor
from invariantnet.symmetries._closure import Indices

BLOCKS = 3
"""Parts in which labels are judged: predictors learn from all earlier parts and are frozen within one."""

SHRINKAGE = 0.1
"""Share of the mean variance that is added to the variances of inputs, so that their covariance can be inverted."""


@dataclass(eq=False)
class Judge:
    """Compares predictors with and without symmetries on the same labels.

    Args:
        predictor: Predicts labels from earlier examples.
        examples: All examples, in the order in which they are seen.
        first: Number of examples at the beginning that are only learned from.
        blocks: Number of blocks into which the others are cut.
    """

    predictor: Predictor
    examples: Labelled
    first: int
    blocks: int = BLOCKS
    _known: dict[bytes, Float64[np.ndarray, " labels"]] = field(default_factory=dict)

    def log_likelihood(self, generators: Indices) -> Float64[np.ndarray, " labels"]:
        """Log probability of every judged label, by a predictor with the symmetry that the generators make."""
        key = generators.tobytes()
        if key not in self._known:
            self._known[key] = self._score(symmetry_of(generators))
        return self._known[key]

    def plain(self) -> Float64[np.ndarray, " labels"]:
        """Log probability of every judged label without any symmetry."""
        return self.log_likelihood(nothing(self.examples.x.shape[1]).generators)

    def log_e_value(self, generators: Indices) -> float:
        """Log e-value of the null hypothesis that the symmetry gains nothing."""
        return log_e_value(self.log_likelihood(generators) - self.plain())

    def gain(self, generators: Indices) -> float:
        """Nats that the symmetry gains over none."""
        return float((self.log_likelihood(generators) - self.plain()).sum())

    def log_e_value_against_inputs(self, generators: Indices) -> float:
        """Log e-value of the null hypothesis that the inputs have the symmetry: large if they do not."""
        return inputs_against(symmetry_of(generators), self.examples.x, self.first)

    def _score(self, symmetry: Symmetry) -> Float64[np.ndarray, " labels"]:
        edges = np.linspace(self.first, len(self.examples), self.blocks + 1).round().astype(int)
        return np.concatenate(
            [
                self.predictor.score(symmetry, self.examples[:start], self.examples[start:end])
                for start, end in zip(edges[:-1], edges[1:], strict=True)
                if end > start
            ]
        )


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


def group_fit(moments: Moments, symmetry: Symmetry) -> float:
    r"""Log likelihood of moments that are invariant but for noise: $-\frac{1}{4|G|} \sum_g \ell(g)$."""
    losses = [moments.loss(element) for element in symmetry.elements]
    return -0.25 * float(np.dot(symmetry.weights, losses))


def worst_inputs(moments: Moments, symmetry: Symmetry) -> Float64[np.ndarray, " dim"]:
    """Mean squared change of the numbers of each input under the symmetry, in units of noise."""
    singles = np.concatenate([moments.even, moments.odd])
    total = np.zeros(moments.dim)
    for element, weight in zip(symmetry.elements, symmetry.weights, strict=True):
        to, sign = element % moments.dim, np.where(element < moments.dim, 1.0, -1.0)
        moved = moments.pairs[:, to][:, :, to] * np.outer(sign, sign)
        total += weight * ((moments.pairs - moved) ** 2).sum(axis=(0, 2))
    count = len(moments.pairs) * moments.dim
    return total / max(1, count) if len(singles) else total


def moves(generators: Indices) -> Bool[np.ndarray, " dim"]:
    """Whether each input is moved."""
    return (generators != np.arange(generators.shape[1])).any(axis=0)
