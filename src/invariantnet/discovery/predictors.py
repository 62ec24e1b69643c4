r"""Predictors in closed form, averaged over a symmetry: kernels, and polynomials of the inputs.

A kernel becomes invariant by averaging over the group, $k_G(x, x') = \frac{1}{|G|} \sum_g k(x, T_g x')$; this
is a network with infinitely many tied units. A polynomial becomes invariant by averaging its monomials over
their orbits, which needs no list of elements, so it is exact for groups of any size.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from invariantnet.discovery._ridge import RIDGES, Fit, fit_features, fit_kernel
from invariantnet.discovery.copies import Symmetry, nothing
from invariantnet.symmetries._orbits import signed_orbits

LENGTHS = (0.5, 1.0, 2.0)
"""Lengths of the kernel to choose from, in standard deviations of an input times the root of their number."""

MOST_MONOMIALS = 500
"""Monomials of a polynomial at most: with more, a kernel is cheaper."""

Scaling = Literal["orbit", "all"]
"""Inputs are standardised over each orbit, or all by the same numbers."""


Function = Callable[[Float64[np.ndarray, "n dim"]], Float64[np.ndarray, "n outputs"]]
"""Fitted values of inputs."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs with their labels.

    Args:
        x: Inputs.
        y: Class numbers, or real labels.
        classes: Number of classes; None for real labels.
    """

    x: Float64[np.ndarray, "n dim"]
    y: Shaped[np.ndarray, " n"]
    classes: int | None

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, which: slice | Int64[np.ndarray, " m"]) -> "Labelled":
        """Select examples."""
        return Labelled(self.x[which], self.y[which], self.classes)


@dataclass(frozen=True, eq=False)
class Standard:
    """Shift and scale of every input, the same for inputs that take each other's places."""

    shift: Float64[np.ndarray, " dim"]
    scale: Float64[np.ndarray, " dim"]

    def __call__(self, x: Float64[np.ndarray, "n dim"]) -> Float64[np.ndarray, "n dim"]:
        """Standardise inputs."""
        return (x - self.shift) / self.scale


def standardise(x: Float64[np.ndarray, "n dim"], symmetry: Symmetry, scaling: Scaling) -> Standard:
    """Find shifts and scales that commute with a symmetry.

    Args:
        x: Inputs.
        symmetry: The symmetry; an input that it maps to its own negative is not shifted.
        scaling: Over what to standardise.

    Returns:
        The shifts and scales.
    """
    dim = x.shape[1]
    if scaling == "all":
        shift = np.zeros(dim) if symmetry.signed else np.full(dim, x.mean())
        return Standard(shift, _positive(np.full(dim, np.sqrt(np.mean((x - shift) ** 2)))))
    labels, sign = symmetry.signed_orbits
    orbits = symmetry.orbits
    means = _orbit_means(np.where(labels < 0, 0.0, sign * x.mean(axis=0)), orbits)
    shift = np.where(labels < 0, 0.0, sign * means)
    square = _orbit_means(((x - shift) ** 2).mean(axis=0), orbits)
    return Standard(shift, _positive(np.sqrt(square)))


@dataclass(frozen=True)
class KernelPredictor:
    """Ridge regression with a Gaussian kernel, averaged over the symmetry.

    Args:
        length: Of the kernel, in standard deviations of an input times the root of their number.
        scaling: How inputs are standardised.
        ridges: Penalties to choose from.
    """

    length: float
    scaling: Scaling
    ridges: tuple[float, ...] = RIDGES

    def fit(self, symmetry: Symmetry, past: Labelled) -> tuple[Fit, Function]:
        """Fit the past; also return the fitted function."""
        standard = standardise(past.x, symmetry, self.scaling)
        x = standard(past.x)
        kernel = self.kernel(symmetry, x, x)
        # Averaging over a group makes functions smaller; the penalty is for functions of one size.
        size = max(1e-12, float(np.diag(kernel).mean()))
        found = fit_kernel(kernel / size, past.y, past.classes, self.ridges)
        return found, lambda z: self.kernel(symmetry, standard(z), x) @ (found.coefficients / size)

    def score(self, symmetry: Symmetry, past: Labelled, block: Labelled) -> Float64[np.ndarray, " block"]:
        """Log probability of each label of the block."""
        found, function = self.fit(symmetry, past)
        return found.calibration.log_prob(function(block.x), block.y)

    def kernel(
        self, symmetry: Symmetry, x: Float64[np.ndarray, "n dim"], z: Float64[np.ndarray, "m dim"]
    ) -> Float64[np.ndarray, "n m"]:
        """Average of the kernel over copies of the second input."""
        x32, both = x.astype(np.float32), np.concatenate([z, -z], axis=1).astype(np.float32)
        squares = (x32**2).sum(axis=1)[:, None] + (both[:, : z.shape[1]] ** 2).sum(axis=1)
        width = np.float32(2 * x.shape[1] * self.length**2)
        total = np.zeros((len(x), len(z)))
        for element, weight in zip(symmetry.elements, symmetry.weights, strict=True):
            distance = squares - 2 * (x32 @ both[:, element].T)
            total += weight * np.exp(-np.maximum(distance, 0) / width)
        return total


@dataclass(frozen=True)
class PolynomialPredictor:
    """Ridge regression on all monomials up to a degree, averaged over their orbits.

    Args:
        degree: Largest degree of a monomial.
        scaling: How inputs are standardised.
        ridges: Penalties to choose from.
    """

    degree: int
    scaling: Scaling
    ridges: tuple[float, ...] = RIDGES

    def fit(self, symmetry: Symmetry, past: Labelled) -> tuple[Fit, Function]:
        """Fit the past; also return the fitted function."""
        standard = standardise(past.x, symmetry, self.scaling)
        features = self.features(symmetry, standard(past.x))
        size = max(1e-12, float((features**2).sum(axis=1).mean())) ** 0.5
        found = fit_features(features / size, past.y, past.classes, self.ridges)
        return found, lambda z: self.features(symmetry, standard(z)) @ (found.coefficients / size)

    def score(self, symmetry: Symmetry, past: Labelled, block: Labelled) -> Float64[np.ndarray, " block"]:
        """Log probability of each label of the block."""
        found, function = self.fit(symmetry, past)
        return found.calibration.log_prob(function(block.x), block.y)

    def features(self, symmetry: Symmetry, x: Float64[np.ndarray, "n dim"]) -> Float64[np.ndarray, "n m"]:
        """Sums of monomials over orbits, divided by the root of the orbit's size."""
        monomials = monomials_of(x.shape[1], self.degree)
        return monomials(x) @ monomials.invariant(symmetry)


@dataclass(frozen=True)
class Monomials:
    """All monomials of some inputs from degree 1 up to a degree."""

    dim: int
    degree: int
    factors: list[Int64[np.ndarray, "m degree"]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        found = [
            np.array(list(combinations_with_replacement(range(self.dim), d)), dtype=np.int64).reshape(-1, d)
            for d in range(1, self.degree + 1)
        ]
        object.__setattr__(self, "factors", found)

    @cached_property
    def weights(self) -> Float64[np.ndarray, " m"]:
        """Root of the coefficient of each monomial in (1 + x·x'/dim)^degree."""
        found = []
        for factors in self.factors:
            size = factors.shape[1]
            repeats = np.array([np.prod([factorial(n) for n in np.bincount(row)]) for row in factors])
            found.append(comb(self.degree, size) * factorial(size) / repeats / self.dim**size)
        return np.sqrt(np.concatenate(found))

    def __call__(self, x: Float64[np.ndarray, "n dim"]) -> Float64[np.ndarray, "n m"]:
        """Evaluate the monomials."""
        return np.concatenate([x[:, factors].prod(axis=2) for factors in self.factors], axis=1) * self.weights

    def action(self, generators: Int64[np.ndarray, "k dim"]) -> Int64[np.ndarray, "k m"]:
        """How generators move the monomials, as index arrays with signs."""
        found, count = [], len(self.weights)
        for generator in generators:
            moved, offset = [], 0
            for factors in self.factors:
                to = generator[factors]
                negative = (to >= self.dim).sum(axis=1) % 2
                moved.append(offset + self._places(np.sort(to % self.dim, axis=1)) + count * negative)
                offset += len(factors)
            found.append(np.concatenate(moved))
        return np.stack(found)

    def invariant(self, symmetry: Symmetry) -> Float64[np.ndarray, "m orbits"]:
        """Indicators of the orbits of monomials, with signs, of length 1."""
        labels, signs = signed_orbits(self.action(symmetry.generators))
        kept = np.flatnonzero(labels >= 0)
        basis = np.zeros((len(labels), int(labels.max(initial=0)) + 1))
        basis[kept, labels[kept]] = signs[kept]
        return basis / np.sqrt((basis**2).sum(axis=0)).clip(1e-300)

    def _places(self, factors: Int64[np.ndarray, "m size"]) -> Int64[np.ndarray, " m"]:
        """Number of each sorted product of factors in the list of its degree."""
        key = np.zeros(len(factors), np.int64)
        reference = np.zeros(len(self.factors[factors.shape[1] - 1]), np.int64)
        for column in range(factors.shape[1]):
            key = key * self.dim + factors[:, column]
            reference = reference * self.dim + self.factors[factors.shape[1] - 1][:, column]
        return np.searchsorted(reference, key)


@cache
def monomials_of(dim: int, degree: int) -> Monomials:
    """All monomials of some inputs up to a degree, listed once."""
    return Monomials(dim, degree)


AnyPredictor = KernelPredictor | PolynomialPredictor


def candidates(dim: int) -> list[AnyPredictor]:
    """List the predictors to choose from for inputs of a length."""
    scalings: tuple[Scaling, ...] = ("orbit", "all")
    found: list[AnyPredictor] = [KernelPredictor(length, s) for length in LENGTHS for s in scalings]
    degrees = [d for d in (1, 2, 3) if comb(dim + d, d) <= MOST_MONOMIALS]
    return found + [PolynomialPredictor(d, s) for d in degrees for s in scalings]


def choose(past: Labelled, most: int = 600) -> AnyPredictor:
    """Choose the predictor and penalty that, without symmetry, predict each of some examples best from the others.

    Args:
        past: Examples to choose by.
        most: Examples to use at most.

    Returns:
        The predictor.
    """
    sample, plain = past[:most], nothing(past.x.shape[1])
    tried = [(predictor, predictor.fit(plain, sample)[0]) for predictor in candidates(past.x.shape[1])]
    predictor, fit = max(tried, key=lambda pair: pair[1].score)
    return replace(predictor, ridges=(fit.ridge,))


def _orbit_means(
    values: Float64[np.ndarray, " dim"], labels: Int64[np.ndarray, " dim"]
) -> Float64[np.ndarray, " dim"]:
    return (np.bincount(labels, values) / np.bincount(labels))[labels]


def _positive(scale: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    return np.where(scale > 1e-12, scale, 1.0)
