r"""Evidence of all labels with a symmetry, against that without: the Bayes factor is an e-value.

A model $m$ is a family of polynomials, or of kernels, with a penalty. With a symmetry $G$, functions are averaged
over $G$ before they see data. The evidence of a symmetry is the mean over models,

$$E_G = \frac{\sum_m p(y \mid X, m, G)}{\sum_m p(y \mid X, m, \text{no symmetry})},$$

so that both sides choose their penalty by what it predicts: a constraint that only tames a careless predictor
gains nothing here. If functions without symmetry are drawn from these models, $E_G$ is 1 on average. A function
that is close to symmetric by chance is as rare as the models say.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float64, Int64

from invariantnet.discovery._laplace import evidence_of_classes, evidence_of_reals
from invariantnet.discovery.chambers import chosen_copies
from invariantnet.discovery.copies import Symmetry, nothing, symmetry_of
from invariantnet.discovery.predictors import (
    AnyPredictor,
    KernelPredictor,
    Labelled,
    PolynomialPredictor,
    candidates,
    monomials_of,
    standardise,
)
from invariantnet.discovery.scores import Scores
from invariantnet.symmetries._closure import Indices
from invariantnet.symmetries._orbits import signed_orbits

CENTRES = 120
"""Inputs at which functions of a kernel are centred: as many features, and a fit takes their cube."""

MODELS = 3
"""Models that symmetries are compared with: those with the most evidence without symmetry."""

MOST_EXAMPLES = 2000
"""Examples that count at most: evidence of more takes longer, and few inputs rarely need more."""

FAR = 6.0
"""Robust standard deviations from the median beyond which a real label is moved closer: far outliers would
decide."""


@dataclass(eq=False)
class Evidence:
    """Compares symmetries on the labels of all examples.

    Args:
        examples: All examples.
        scores: What was scored before.
    """

    examples: Labelled
    scores: Scores

    def __post_init__(self) -> None:
        self.examples = _tamed(self.examples[:MOST_EXAMPLES])
        dim = self.examples.x.shape[1]
        tried = [(self._of_model(model, nothing(dim)), i, model) for i, model in enumerate(candidates(dim))]
        kept = sorted(tried, key=lambda t: -t[0])[:MODELS]
        # Labels may look like noise until a symmetry is known: the most flexible model always takes part.
        if not any(i == 0 for _, i, _ in kept):
            kept.append(next(t for t in tried if t[1] == 0))
        self.models: list[AnyPredictor] = [model for _, _, model in kept]
        # Labels that do not depend on the inputs have every symmetry: that model is on both sides.
        self.constant = _mean(self._by_features(np.zeros((len(self.examples), 1))).tolist())
        self.plain = _mean([*(value for value, _, _ in kept), self.constant])

    @property
    def best(self) -> AnyPredictor:
        """The model with the most evidence without symmetry."""
        return self.models[0]

    def log_e_value(self, generators: Indices, closed: Int64[np.ndarray, "more dim"] | None = None) -> float:
        """Log Bayes factor of the symmetry that the generators make, against none.

        Args:
            generators: Index arrays, signs included.
            closed: A larger group; models that cannot tell the two apart do not speak for the smaller one.

        Returns:
            The log Bayes factor; minus infinity if no model tells the groups apart.
        """
        symmetry = symmetry_of(generators)
        larger = None if closed is None else symmetry_of(closed)
        speaking = [m for m in self.models if larger is None or not _agree(m, symmetry, larger)]
        if not speaking:
            return -np.inf
        total = np.logaddexp.reduce([self.constant, *(self._of_model(model, symmetry) for model in speaking)])
        return float(total - np.log(len(self.models) + 1) - self.plain)

    def _of_model(self, model: AnyPredictor, symmetry: Symmetry) -> float:
        """Log evidence of one family, on average over penalties."""
        by_penalty = partial(self._by_penalty, model, symmetry)
        return _mean(self.scores.get(model, symmetry.generators, by_penalty).tolist())

    def _by_penalty(self, model: AnyPredictor, symmetry: Symmetry) -> Float64[np.ndarray, " penalties"]:
        return self._by_features(_features(model, symmetry, self.examples.x))

    def _by_features(self, features: Float64[np.ndarray, "n m"]) -> Float64[np.ndarray, " penalties"]:
        given = self.examples
        if given.classes is None:
            return evidence_of_reals(features, given.y)
        return evidence_of_classes(features, given.y, given.classes)


def _agree(model: AnyPredictor, smaller: Symmetry, larger: Symmetry) -> bool:
    """Whether a model has the same invariant functions for two groups, one of them in the other."""
    if not isinstance(model, PolynomialPredictor):
        return False
    monomials = monomials_of(smaller.dim, model.degree)
    orbits = [signed_orbits(monomials.action(symmetry.generators))[0].max() for symmetry in (smaller, larger)]
    return bool(orbits[0] == orbits[1])


def _features(
    model: AnyPredictor, symmetry: Symmetry, x: Float64[np.ndarray, "n dim"]
) -> Float64[np.ndarray, "n m"]:
    """Invariant functions of the inputs, whose squares sum to 1 on average."""
    z = standardise(x, symmetry, model.scaling)(x)
    if isinstance(model, PolynomialPredictor):
        found = model.features(symmetry, z)
    else:
        copies = chosen_copies(symmetry.generators, z)
        found = _kernel_features(model, symmetry, z) if copies is None else _of_copies(model, copies)
    found = found - found.mean(axis=0)
    return found / np.sqrt(max(1e-12, float((found**2).sum(axis=1).mean())))


def _of_copies(model: KernelPredictor, copies: Float64[np.ndarray, "n dim"]) -> Float64[np.ndarray, "n m"]:
    """Features of one copy of each input, which stands for all."""
    return _kernel_features(model, nothing(copies.shape[1]), copies)


def _kernel_features(
    model: KernelPredictor, symmetry: Symmetry, z: Float64[np.ndarray, "n dim"]
) -> Float64[np.ndarray, "n m"]:
    """Features whose products are nearly the averaged kernel."""
    centres = z[:CENTRES]
    values, vectors = np.linalg.eigh(model.kernel(symmetry, centres, centres))
    kept = values > 1e-6 * values.max()
    return model.kernel(symmetry, z, centres) @ (vectors[:, kept] / np.sqrt(values[kept]))


def _tamed(examples: Labelled) -> Labelled:
    """Move far outliers of real labels closer; this keeps every symmetry."""
    if examples.classes is not None:
        return examples
    middle = np.median(examples.y)
    spread = float(np.median(np.abs(examples.y - middle))) / 0.6745
    if spread <= 0:
        return examples
    return replace(examples, y=np.clip(examples.y, middle - FAR * spread, middle + FAR * spread))


def _mean(logs: list[float]) -> float:
    """Log of the mean of numbers whose logs are given."""
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))
