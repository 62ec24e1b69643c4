"""Order and membership of groups that are too large to list, by sympy's algorithms on generators."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int64
from sympy.combinatorics import Permutation, PermutationGroup

from invariantnet.symmetries._closure import Indices, extend
from invariantnet.symmetries._orbits import signed_orbits

CHANCE_OF_ERROR = 1e-12
"""Probability that a random test misses a symmetric group.

sympy's own default of 0.05 makes it list a group that the test missed, which takes hours.
"""

SMALL_DEGREE = 8
"""Number of inputs below which sympy's random test for symmetric groups does not apply."""


@dataclass(frozen=True, eq=False)
class UnlistedGroup:
    """A group of signed permutations whose elements are never listed.

    Args:
        generators: Index arrays; an index of at least `dim` stands for a change of sign.
    """

    generators: Indices

    @cached_property
    def order(self) -> int:
        """Number of elements."""
        if self._signs_of_all_permutations:
            return self._signs_of_all_permutations * math.factorial(self._dim)
        return int(self._sympy.order())

    def __contains__(self, index: Int64[np.ndarray, " dim"]) -> bool:
        if not self._has_signs and index.max() >= self._dim:
            return False
        if self._signs_of_all_permutations:
            return len(np.unique(index // self._dim)) == 1
        moved = extend(index) if self._has_signs else index
        if any(np.array_equal(moved, known) for known in (np.arange(len(moved)), *self._extended)):
            return True
        # sympy takes minutes to refuse an element of 49,152 inputs: refuse first what is seen at once.
        labels = signed_orbits(self._extended)[0]
        if (labels[moved] != labels).any():
            return False
        if self._is_abelian and any((moved[g] != g[moved]).any() for g in self._extended):
            return False
        return bool(self._sympy.contains(self._permutation(index)))

    @property
    def _dim(self) -> int:
        return self.generators.shape[1]

    @cached_property
    def _has_signs(self) -> bool:
        return bool((self.generators >= self._dim).any())

    @cached_property
    def _signs_of_all_permutations(self) -> int:
        """1 for all permutations, 2 for all permutations and their negatives, 0 for any other group.

        These are the largest groups, for which sympy's general algorithms are slowest.
        """
        signs = self.generators // self._dim
        if len(np.unique(signs, axis=1).T) > 1:
            return 0
        bare = [Permutation((g % self._dim).tolist()) for g in self.generators]
        generated = PermutationGroup(bare)
        if self._dim < SMALL_DEGREE:
            symmetric = generated.is_symmetric
        else:
            symmetric = generated.is_alt_sym(eps=CHANCE_OF_ERROR) and any(not p.is_even for p in bare)
        if not symmetric:
            return 0
        negative = signs[:, 0]
        if not negative.any():
            return 1
        # If exactly the odd generators are negated, so are exactly the odd elements: half of all signs.
        return 0 if (negative == [p.signature() < 0 for p in bare]).all() else 2

    @cached_property
    def _extended(self) -> Indices:
        """The generators on inputs and, if there are signs, their negatives."""
        return np.stack([extend(g) if self._has_signs else g for g in self.generators])

    @cached_property
    def _is_abelian(self) -> bool:
        pairs = itertools.combinations(self._extended, 2)
        return all(np.array_equal(a[b], b[a]) for a, b in pairs)

    @cached_property
    def _sympy(self) -> PermutationGroup:
        return PermutationGroup([self._permutation(g) for g in self.generators])

    def _permutation(self, index: Int64[np.ndarray, " dim"]) -> Permutation:
        return Permutation((extend(index) if self._has_signs else index).tolist())
