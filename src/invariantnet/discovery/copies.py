"""What a predictor averages over: all elements of a small group, some of a large one."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int64

from invariantnet.symmetries._closure import (
    Indices,
    TooManyElementsError,
    close_indices,
    extend,
    random_products,
)
from invariantnet.symmetries._orbits import signed_orbits

LISTED = 120
"""Largest number of elements that are all used, as many as five inputs have orders: a kernel costs as many matrix
products. With 64, kernels of sorted inputs stood for all orders of five, and in 5 of 5 draws (seeds 100 to 104)
lost against averages over the even ones, which are hardly another symmetry."""

LISTED_NUMBERS = 24_000
"""Numbers of the elements of a group of many inputs with several generators that are all used: such a group is
compared with its parts, and some elements would not do as well as all."""

POWERS = 8
"""Powers of a single generator that stand for a larger cyclic group."""

DRAWN = 8
"""Random elements that stand for any other larger group; the average uses one relative to another, so 64."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A proposed symmetry: its generators, and the elements that an average over it uses.

    Args:
        generators: Index arrays, signs included.
        elements: Elements of the average.
        weights: Their weights, which sum to 1 and make the average of any kernel a kernel.
    """

    generators: Indices
    elements: Int64[np.ndarray, "copies dim"]
    weights: Float64[np.ndarray, " copies"]

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return int(self.generators.shape[1])

    @property
    def signed(self) -> bool:
        """Whether an element changes a sign."""
        return bool((self.generators >= self.dim).any())

    @cached_property
    def signed_orbits(self) -> tuple[Int64[np.ndarray, " dim"], Int64[np.ndarray, " dim"]]:
        """Orbit and sign of every input; see `invariantnet.symmetries`."""
        return signed_orbits(self.generators)

    @cached_property
    def orbits(self) -> Int64[np.ndarray, " dim"]:
        """Orbit of every input, signs aside."""
        return signed_orbits(self.generators % self.dim)[0]


def nothing(dim: int) -> Symmetry:
    """The symmetry of no symmetry: the identity alone."""
    return Symmetry(np.arange(dim)[None], np.arange(dim)[None], np.ones(1))


def symmetry_of(generators: Indices, seed: int = 0, most: int = LISTED) -> Symmetry:
    """Choose the elements that an average over a group uses.

    Args:
        generators: Index arrays, signs included.
        seed: Decides which elements stand for a large group.
        most: Largest number of elements that are all used.

    Returns:
        The symmetry: with all elements if there are at most `most`, else with products of some of them.
    """
    try:
        elements = close_indices(generators, most, "the proposal")
    except TooManyElementsError:
        if len(generators) == 1:
            return _of_powers(generators[0])
        return _of_random(generators, seed)
    return Symmetry(generators, elements, np.full(len(elements), 1 / len(elements)))


def joint_symmetry_of(generators: Indices) -> Symmetry:
    """Choose the elements of a group of many inputs: more of them if it has several generators."""
    most = LISTED if len(generators) == 1 else max(LISTED, LISTED_NUMBERS // generators.shape[1])
    return symmetry_of(generators, most=most)


def _of_powers(generator: Int64[np.ndarray, " dim"]) -> Symmetry:
    """Average over g^(a-b) for all a, b below `POWERS`."""
    forward, backward = extend(generator), np.argsort(extend(generator))
    ahead = behind = np.arange(len(generator))
    elements, weights = [ahead], [float(POWERS)]
    for k in range(1, POWERS):
        ahead, behind = forward[ahead], backward[behind]
        elements += [ahead, behind]
        weights += [float(POWERS - k)] * 2
    return Symmetry(generator[None], np.stack(elements), np.array(weights) / sum(weights))


def _of_random(generators: Indices, seed: int) -> Symmetry:
    """Average over a⁻¹b for all a, b of some random elements."""
    dim = generators.shape[1]
    drawn = extend(random_products(generators, DRAWN, np.random.default_rng(seed)))
    inverses = np.argsort(drawn, axis=1)[:, :dim]
    elements = np.stack([b[a] for a in inverses for b in drawn])
    return Symmetry(generators, elements, np.full(len(elements), 1 / len(elements)))


def moves(generators: Indices) -> Bool[np.ndarray, " dim"]:
    """Whether each input is moved."""
    return (generators != np.arange(generators.shape[1])).any(axis=0)
