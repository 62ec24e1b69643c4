r"""Evidence of all labels with a symmetry, against that without: the Bayes factor is an e-value.

A model $m$ is a family of polynomials, or of kernels, with a penalty. With a symmetry $G$, functions are averaged
over $G$ before they see data. The evidence of a symmetry is the mean over models,

$$E_G = \frac{\sum_m p(y \mid X, m, G)}{\sum_m p(y \mid X, m, \text{no symmetry})},$$

so that both sides choose their penalty by what it predicts: a constraint that only tames a careless predictor
gains nothing here. If functions without symmetry are drawn from these models, $E_G$ is 1 on average. A function
that is close to symmetric by chance is as rare as the models say.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import xlogy

from invariantnet.discovery._laplace import evidence_of_classes, evidence_of_reals
from invariantnet.discovery.chambers import chosen_copies
from invariantnet.discovery.copies import Symmetry, nothing, symmetry_of
from invariantnet.discovery.predictors import (
    AnyPredictor,
    KernelPredictor,
    Labelled,
    PolynomialPredictor,
    candidates,
    choose,
    monomials_of,
    standardise,
)
from invariantnet.discovery.scores import Scores
from invariantnet.symmetries._closure import Indices
from invariantnet.symmetries._orbits import signed_orbits

FEW_CENTRES, MANY_CENTRES = 120, 600
"""Inputs at which functions of a kernel are centred, while searching and for the verdict: as many features, and a
fit takes their cube. Too few cannot follow labels that many examples tell well, and averages over any group span
more functions with equally many: without symmetry, 120 centres once gave a group of six 24 nats too many."""

MODELS = 3
"""Models that symmetries are compared with: those with the most evidence without symmetry."""

MOST_EXAMPLES = 2000
"""Examples that count at most: evidence of more takes longer, and few inputs rarely need more."""

FITTED, PROBED = 500, 200
"""Examples from which the relevance of inputs is learned, and at which it is measured: it need not be exact."""

STEP = 0.1
"""Step of the differences that stand for derivatives, in standard deviations of the input."""

OVERFIT = 0.5
"""Nats by which each relevance makes labels more probable only because it was learned from them, on average."""

LEAST_RELEVANCE = 0.1
"""Relevance of an input on which predictions do not depend at all, where 1 is typical."""

HOPELESS = 12.0
"""Nats behind what counts below which a group is compared with no further models: its share of the posterior would
be about a millionth."""

FAR = 6.0
"""Robust standard deviations from the median beyond which a real label is moved closer: far outliers would
decide."""


@dataclass(frozen=True)
class Model:
    """A family of functions, before any symmetry.

    Args:
        predictor: Polynomials of a degree, or kernels of a length.
        by_relevance: Whether inputs are scaled by how much they matter, so that functions depend more on some.
    """

    predictor: AnyPredictor
    by_relevance: bool


@dataclass(frozen=True, eq=False)
class Rival:
    """A group that others are compared with.

    Args:
        symmetry: The group.
        lead: Nats by which its prior is larger.
    """

    symmetry: Symmetry
    lead: float


@dataclass(eq=False)
class Evidence:
    """Compares symmetries on the labels of all examples.

    Args:
        examples: All examples.
        scores: What was scored before.
        centres: Number of inputs at which functions of a kernel are centred.
    """

    examples: Labelled
    scores: Scores
    centres: int = FEW_CENTRES

    def __post_init__(self) -> None:
        self.examples = _tamed(self.examples[:MOST_EXAMPLES])
        families = [p for p in candidates(self.examples.x.shape[1]) if p.scaling == "orbit"]
        self.relevance = np.ones(self.examples.x.shape[1])
        tried = self._without_symmetry([Model(predictor, by_relevance=False) for predictor in families])
        self.relevance = relevance_of(self.examples, max(tried, key=lambda t: t[0])[1].predictor)
        tried += self._without_symmetry([Model(predictor, by_relevance=True) for predictor in families])
        kept = sorted(tried, key=lambda t: -t[0])[:MODELS]
        # Labels may look like noise until a symmetry is known: the most flexible model always takes part.
        if tried[0] not in kept:
            kept.append(tried[0])
        self.models: list[Model] = [model for _, model in kept]
        # Labels that do not depend on the inputs have every symmetry: that model is on both sides.
        self.constant = _mean(self._by_features(np.zeros((len(self.examples), 1))).tolist())
        self.plain = _mean([*(value for value, _ in kept), self.constant])

    @property
    def best(self) -> AnyPredictor:
        """The model with the most evidence without symmetry."""
        return self.models[0].predictor

    def _without_symmetry(self, models: list[Model]) -> list[tuple[float, Model]]:
        plain = nothing(self.examples.x.shape[1])
        return [(self.of_model(model, plain), model) for model in models]

    def log_e_value(
        self,
        generators: Indices,
        closed: Int64[np.ndarray, "more dim"] | None = None,
        rival: Rival | None = None,
    ) -> float:
        """Log Bayes factor of the symmetry that the generators make, against none.

        Args:
            generators: Index arrays, signs included.
            closed: A larger group; models that cannot tell the two apart do not speak for the smaller one.
            rival: A group to compare with. If it is far ahead in two models, the other models are not asked.

        Returns:
            The log Bayes factor, or a lower bound if the rival is far ahead; minus infinity if no model tells the
            groups apart.
        """
        symmetry = symmetry_of(generators)
        larger = None if closed is None else symmetry_of(closed)
        speaking = [m for m in self.models if larger is None or not _agree(m.predictor, symmetry, larger)]
        if not speaking:
            return -np.inf
        total, ahead = self.constant, np.inf
        # The best and the most flexible model first.
        for asked, model in enumerate([speaking[0], *speaking[:0:-1]]):
            value = self.of_model(model, symmetry)
            total = np.logaddexp(total, value)
            if rival is not None and asked < 2:
                ahead = min(ahead, self.of_model(model, rival.symmetry) + rival.lead - value)
            if rival is not None and asked == 1 and ahead > HOPELESS:
                break
        return float(total - np.log(len(self.models) + 1) - self.plain)

    def of_model(self, model: Model, symmetry: Symmetry) -> float:
        """Log evidence of one family, on average over penalties."""
        by_penalty = partial(self._by_penalty, model, symmetry)
        fitted = int(symmetry.orbits.max()) + 1 if model.by_relevance else 0
        return (
            _mean(self.scores.get(model, symmetry.generators, by_penalty, self.centres).tolist())
            - OVERFIT * fitted
        )

    def _by_penalty(self, model: Model, symmetry: Symmetry) -> Float64[np.ndarray, " penalties"]:
        x = self.examples.x
        z = standardise(x, symmetry, model.predictor.scaling)(x)
        if model.by_relevance:
            z = z * pooled(self.relevance, symmetry.orbits)
        return self._by_features(_features(model.predictor, symmetry, z, self.centres))

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
    model: AnyPredictor, symmetry: Symmetry, z: Float64[np.ndarray, "n dim"], centres: int
) -> Float64[np.ndarray, "n m"]:
    """Invariant functions of scaled inputs, whose squares sum to 1 on average."""
    if isinstance(model, PolynomialPredictor):
        found = model.features(symmetry, z)
    else:
        copies = chosen_copies(symmetry.generators, z)
        if copies is not None:
            # One copy of each input stands for all.
            symmetry, z = nothing(copies.shape[1]), copies
        found = _kernel_features(model, symmetry, z, z[:centres])
    found = found - found.mean(axis=0)
    return found / np.sqrt(max(1e-12, float((found**2).sum(axis=1).mean())))


def log_prob_of_left_out(
    predictor: AnyPredictor, symmetry: Symmetry, examples: Labelled
) -> Float64[np.ndarray, " n"]:
    """Log probability of each label by a predictor with a symmetry that learned from all others."""
    z = standardise(examples.x, symmetry, predictor.scaling)(examples.x)
    copies = chosen_copies(symmetry.generators, z) if isinstance(predictor, KernelPredictor) else None
    if copies is not None:
        examples, symmetry = replace(examples, x=copies), nothing(symmetry.dim)
    return predictor.fit(symmetry, examples)[0].left_out


def explained_by(generators: Indices, examples: Labelled) -> float:
    """Share of the labels that predictions with a symmetry explain, each learned from all other examples.

    Args:
        generators: Index arrays, signs included.
        examples: All examples, of which the first `MOST_EXAMPLES` count.

    Returns:
        Of numbers, the share of their variance that a Gaussian of the same log probability leaves out; of classes,
        the share of the log loss of their frequencies.
    """
    examples = examples[:MOST_EXAMPLES]
    gained = float(log_prob_of_left_out(choose(examples), symmetry_of(generators), examples).mean())
    if examples.classes is None:
        return 1 - math.exp(-2 * gained - math.log(2 * math.pi * math.e * examples.y.var()))
    frequencies = np.bincount(examples.y.astype(int)) / len(examples.y)
    return 1 - gained / float(xlogy(frequencies, frequencies).sum())


def relevance_of(examples: Labelled, predictor: AnyPredictor) -> Float64[np.ndarray, " dim"]:
    """How much predictions change with each standardised input: the root mean square of their derivatives.

    Two inputs that hardly matter can nearly be exchanged. If a model believes that all inputs matter equally, that
    is a surprise to it, and it takes the exchange for a symmetry.

    Args:
        examples: Examples to learn from.
        predictor: A predictor without symmetry.

    Returns:
        Relevances, whose squares are 1 on average.
    """
    past = examples[:FITTED]
    function = predictor.fit(nothing(past.x.shape[1]), past)[1]
    spread = past.x.std(axis=0)
    probes = past.x[:PROBED]
    steps = np.diag(STEP * spread)
    change = np.array([np.mean((function(probes + step) - function(probes - step)) ** 2) for step in steps])
    # No input is left out for good: the prior of functions should not be surer than these few examples.
    return np.sqrt(change / max(1e-300, float(change.mean())) + LEAST_RELEVANCE**2)


def pooled(
    relevance: Float64[np.ndarray, " dim"], orbits: Int64[np.ndarray, " dim"]
) -> Float64[np.ndarray, " dim"]:
    """Root of the mean square over each orbit, so that the scale commutes with the symmetry."""
    return np.sqrt(np.bincount(orbits, relevance**2) / np.bincount(orbits))[orbits]


def _kernel_features(
    model: KernelPredictor,
    symmetry: Symmetry,
    z: Float64[np.ndarray, "n dim"],
    centres: Float64[np.ndarray, "k dim"],
) -> Float64[np.ndarray, "n m"]:
    """Features whose products are nearly the averaged kernel."""
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
