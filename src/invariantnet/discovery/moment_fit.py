"""How well moments agree with a group, and with the groups next to it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.copies import Symmetry
from invariantnet.discovery.neighbours import conjugate

CORRELATED = 10.0
"""Moments that count as one, because they are correlated with one another."""


def group_fit(moments: Moments, symmetry: Symmetry) -> float:
    r"""Log likelihood of moments that are invariant but for noise: $-\frac{1}{4|G|} \sum_g \ell(g)$."""
    losses = [moments.loss(element) for element in symmetry.elements]
    return -0.25 * float(np.dot(symmetry.weights, losses))


def exchange_loses(moments: Moments, symmetry: Symmetry, pair: tuple[int, int]) -> float:
    """Log likelihood of moments that is lost if two inputs take each other's places in a group.

    Only numbers of the inputs that then go elsewhere change, so this is quick.

    Args:
        moments: What the group leaves alone, but for noise.
        symmetry: The group.
        pair: The two inputs.

    Returns:
        `group_fit` of the group, less that of its conjugate by the exchange.
    """
    exchange = np.arange(moments.dim)
    exchange[list(pair)] = exchange[list(pair)[::-1]]
    lost = 0.0
    for element, weight in zip(symmetry.elements, symmetry.weights, strict=True):
        other = conjugate(element, exchange)
        touched = np.flatnonzero(element != other)
        lost += weight * (moments.loss_at(other, touched) - moments.loss_at(element, touched))
    return 0.25 * float(lost)


@dataclass(frozen=True)
class MomentTest:
    """How well moments agree with a group.

    Args:
        chi_square: Twice the log likelihood that is lost by making moments invariant.
        constraints: Number of equations between moments that the group implies.
        examples: Number of examples behind the moments.
    """

    chi_square: float
    constraints: int
    examples: int

    @property
    def ratio(self) -> float:
        """Square of the typical disagreement, in units of noise: about 1 for a true symmetry."""
        return self.chi_square / max(1, self.constraints)

    def penalty(self, other: "MomentTest") -> float:
        """Nats that speak against this group's further equations, as compared with another group's.

        Errors of means over n examples are combinations of n vectors, so they have at most n degrees of freedom,
        however many moments there are.
        """
        further = self.constraints - other.constraints
        if further <= 0:
            return 0.0
        excess = (self.chi_square - other.chi_square) / (max(other.ratio, 1e-9) * further) - 1
        return 0.25 * max(0.0, excess) ** 2 * min(further / CORRELATED, self.examples)


def moment_test(moments: Moments, symmetry: Symmetry, examples: int) -> MomentTest:
    """Test whether moments are invariant but for noise.

    Args:
        moments: The moments, in units of their noise.
        symmetry: The group.
        examples: Number of examples that they are means over.

    Returns:
        The test.
    """
    dim = moments.dim
    # Random numbers that are averaged over the group are equal where the group demands it.
    draws = np.random.default_rng(0).random((1, dim, dim))
    averaged = Moments(draws[:, 0], draws[:, 0], draws + draws.transpose(0, 2, 1)).averaged(symmetry.elements)
    singles = dim - len(np.unique(averaged.even.round(9)))
    upper = averaged.pairs[0][np.triu_indices(dim)]
    pairs = len(upper) - len(np.unique(upper.round(9)))
    constraints = singles * (len(moments.even) + len(moments.odd)) + pairs * len(moments.pairs)
    return MomentTest(-2 * group_fit(moments, symmetry), constraints, examples)


def worst_inputs(moments: Moments, symmetry: Symmetry) -> Float64[np.ndarray, " dim"]:
    """Mean squared change of the numbers of each input under the symmetry, in units of noise."""
    singles = np.concatenate([moments.even, moments.odd])
    total = np.zeros(moments.dim)
    for element, weight in zip(symmetry.elements, symmetry.weights, strict=True):
        total += weight * ((moments.pairs - moments.moved_pairs(element)) ** 2).sum(axis=(0, 2))
    count = len(moments.pairs) * moments.dim
    return total / max(1, count) if len(singles) else total
