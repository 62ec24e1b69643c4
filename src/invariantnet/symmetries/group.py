"""Finite groups that act linearly on vectors, as data: generators, from which everything else follows.

Two representations cover every group here:

- *index arrays* `g` of length `dim`: `(T_g x)[i] = x[g[i]]`. An index `dim + j` stands for `-x[j]`, so that
  sign changes stay exact and as cheap as permutations;
- *matrices*, for everything else: `T_g x = M_g x`.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float64, Int64, Shaped
from torch import Tensor

from invariantnet._system.words import count_words
from invariantnet.symmetries._closure import (
    TOLERANCE,
    Indices,
    Matrices,
    are_indices,
    are_signed_permutations,
    as_matrices,
    check_finite_order,
    check_indices,
    check_invertible,
    close_indices,
    close_matrices,
    matrices_to_indices,
    most_elements,
    nearest_indices,
    random_products,
)
from invariantnet.symmetries._given import given_indices, given_matrices, to_numpy, warn_if_counted_from_one
from invariantnet.symmetries._orbits import signed_orbits

if TYPE_CHECKING:
    from invariantnet.symmetries._unlisted import UnlistedGroup

MAX_ORDER = 10_000
"""Number of elements that are listed unless a caller asks for more: listing them takes about a second."""


@dataclass(frozen=True, eq=False, repr=False)
class Group:
    """A finite group that acts linearly on vectors of length `dim`.

    Make groups with `from_permutations` or `from_matrices`, which check the generators. Groups compare like sets
    of their elements: `a <= b` if `a` is a subgroup of `b`.

    Args:
        name: Name of the group in reports.
        generators: Index arrays or matrices, one per row.
        shape: Shape of the inputs that the group was made for, if known.
        known_order: Number of elements, if known without listing them.
        known_elements: All elements, the identity first, if they were listed already.

    Example:
        >>> turn = Group.from_permutations([[1, 3, 0, 2]], name="quarter turns of a 2×2 image")
        >>> turn.order
        4
        >>> turn.act(torch.tensor([1, 2, 3, 4]))[1]
        tensor([2, 4, 1, 3])
    """

    name: str
    generators: Indices | Matrices
    shape: tuple[int, ...] | None = None
    known_order: int | None = field(default=None, kw_only=True)
    known_elements: Int64[np.ndarray, "order dim"] | Float64[np.ndarray, "order dim dim"] | None = field(
        default=None, kw_only=True
    )

    @classmethod
    def from_permutations(
        cls, generators: Any, name: str = "custom", *, max_order: int | None = MAX_ORDER
    ) -> "Group":
        """Make the group that index arrays generate: `(T_g x)[i] = x[g[i]]`.

        Args:
            generators: Index arrays of length `dim`: lists, an array or a tensor. An index `dim + j` stands
                for `-x[j]`.
            name: Name of the group in reports.
            max_order: Largest number of elements to list. With None they are never listed; the order, the
                orbits and the invariant basis still work, for groups of any size.

        Returns:
            The group, with its elements if `max_order` is given.

        Raises:
            ValueError: A generator is no permutation, or there are more than `max_order` elements.
        """
        indices = given_indices(generators)
        check_indices(indices)
        warn_if_counted_from_one(indices)
        return cls._generated(indices, name, max_order)

    @classmethod
    def _generated(cls, indices: Indices, name: str, max_order: int | None) -> "Group":
        if max_order is None:
            return cls(name, indices)
        return cls(name, indices, known_elements=close_indices(indices, max_order, name))

    @classmethod
    def from_matrices(cls, generators: Any, name: str = "custom", *, max_order: int = MAX_ORDER) -> "Group":
        """Make the group that invertible matrices generate; elements are compared up to rounding errors.

        Matrices with one entry ±1 in every row and column become index arrays, which are exact.

        Args:
            generators: Matrices of shape `dim × dim`: lists, an array or a tensor.
            name: Name of the group in reports.
            max_order: Largest number of elements to list.

        Returns:
            The group with its elements.

        Raises:
            ValueError: A generator is singular, or there are more than `max_order` elements, or infinitely many.
        """
        matrices = given_matrices(generators)
        check_invertible(matrices)
        if are_signed_permutations(matrices):
            return cls._generated(matrices_to_indices(matrices), name, max_order)
        for i, matrix in enumerate(matrices):
            check_finite_order(matrix, i, max_order)
        return cls(name, matrices, known_elements=close_matrices(matrices, max_order, name))

    @property
    def dim(self) -> int:
        """Length of the vectors that the group acts on."""
        return int(self.generators.shape[-1])

    @property
    def is_matrix_group(self) -> bool:
        """Whether the generators are matrices rather than index arrays."""
        return self.generators.ndim == 3

    @cached_property
    def is_permutation_group(self) -> bool:
        """Whether every element only moves entries and changes no sign."""
        return not self.is_matrix_group and bool((self.generators < self.dim).all())

    @cached_property
    def order(self) -> int:
        """Number of elements, exact even if they cannot be listed."""
        if self.known_elements is not None:
            return len(self.known_elements)
        return self._unlisted.order if self.known_order is None else self.known_order

    @property
    def copies(self) -> int:
        """Number of copies that `act` makes of an input: one per element."""
        return self.order

    @property
    def exact(self) -> bool:
        """Whether a network that pools over the copies is invariant up to rounding: always, for a group."""
        return True

    @property
    def size(self) -> float:
        """Number of elements, to order groups by; infinite beyond the range of floats."""
        return float(self.order) if self.order < 10**300 else math.inf

    @property
    def can_list_elements(self) -> bool:
        """Whether `elements` and `act` are available: the group is small enough, or was listed already."""
        return self.known_elements is not None or self._is_small

    @cached_property
    def elements(self) -> Int64[Tensor, "order dim"] | Float64[Tensor, "order dim dim"]:
        """Every element, the identity first.

        Raises:
            ValueError: There are too many elements to list.
        """
        if self.known_elements is not None:
            return torch.from_numpy(self.known_elements)
        if not self._is_small:
            fits = self.order <= most_elements(self.generators[0].size)
            remedy = (
                f"list them with from_permutations(…, max_order={self.order})" if fits else "use a smaller group"
            )
            raise ValueError(
                f"{self.name} has {count_words(self.order)} elements on {self.dim} inputs, too many to list: use "
                f"its orbits or its invariant basis, or {remedy}."
            )
        close = close_matrices if self.is_matrix_group else close_indices
        return torch.from_numpy(close(self.generators, self.order, self.name))

    def act(self, x: Shaped[Tensor, "*batch dim"]) -> Shaped[Tensor, "*batch order dim"]:
        """Transform inputs by every element.

        Args:
            x: Flat inputs.

        Returns:
            The copies of each input, in the order of `elements`.
        """
        return transform(x, self.elements)

    def sample(
        self, count: int, seed: int
    ) -> Int64[np.ndarray, "count dim"] | Float64[np.ndarray, "count dim dim"]:
        """Draw random elements: uniformly from a small group, nearly uniformly from a large one.

        Args:
            count: Number of elements, the identity included.
            seed: Equal seeds give equal elements.

        Returns:
            The elements, the identity first; some may be equal.
        """
        rng = np.random.default_rng(seed)
        # Not can_list_elements: a stored model keeps generators only, and must draw the same when it is loaded.
        if self._is_small:
            elements = self.elements.numpy()
            return elements[np.append(0, rng.integers(len(elements), size=count - 1))]
        return random_products(self.generators, count, rng)

    def orbits(self) -> Int64[Tensor, " dim"]:
        """Label `0 … n-1` of the orbit of every input, numbered by first appearance.

        Raises:
            ValueError: The group changes signs or mixes inputs, so it has no orbits of inputs.
        """
        if not self.is_permutation_group:
            raise ValueError(f"{self.name} does not permute its inputs, so it has no orbits: use invariant_basis.")
        return torch.from_numpy(signed_orbits(self.generators)[0])

    def matrix_generators(self) -> Matrices:
        """The generators as matrices."""
        return self.generators if self.is_matrix_group else as_matrices(self.generators)

    def index_generators(self) -> Indices | None:
        """The generators as index arrays, up to rounding errors; None if they are no signed permutations."""
        return nearest_indices(self.generators) if self.is_matrix_group else self.generators

    def __contains__(self, element: Any) -> bool:
        candidate = np.asarray(to_numpy(element))
        if candidate.shape != self.generators.shape[1:]:
            return False
        if self.is_matrix_group:
            distance = np.abs(self.elements.numpy() - candidate).max(axis=(1, 2))
            return bool(distance.min() <= TOLERANCE * max(1.0, np.abs(candidate).max()))
        index = candidate.astype(np.int64)
        if not np.array_equal(index, candidate) or not are_indices(index):
            return False
        return index.tobytes() in self._keys if self.can_list_elements else index in self._unlisted

    def __le__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        if self.dim != other.dim or other.order % self.order:
            return False
        ours = self.matrix_generators() if other.is_matrix_group else self.index_generators()
        return ours is not None and all(generator in other for generator in ours)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.order == other.order and self <= other

    def __hash__(self) -> int:
        return hash((self.dim, self.order))

    def __repr__(self) -> str:
        return f"Group({self.name!r}, order={self.order}, dim={self.dim})"

    @property
    def _is_small(self) -> bool:
        # Matrix groups are always listed when they are made, with as many elements as the caller allows.
        few = self.is_matrix_group or self.order <= MAX_ORDER
        return few and self.order <= most_elements(self.generators[0].size)

    @cached_property
    def _keys(self) -> frozenset[bytes]:
        return frozenset(element.tobytes() for element in self.elements.numpy())

    @cached_property
    def _unlisted(self) -> "UnlistedGroup":
        # sympy takes half a second to import, and only groups that cannot be listed need it.
        from invariantnet.symmetries._unlisted import UnlistedGroup

        return UnlistedGroup(self.generators)


def changes_signs(elements: Shaped[Tensor, "..."]) -> bool:
    """Whether any of the elements is an index array that changes signs."""
    return not elements.is_floating_point() and bool((elements >= elements.shape[-1]).any())


def transform(
    x: Shaped[Tensor, "*batch dim"], elements: Shaped[Tensor, "..."], signed: bool | None = None
) -> Shaped[Tensor, "*batch dim"] | Shaped[Tensor, "*batch n dim"]:
    """Compute `T_g x` for one element, or for several along a new axis before the last.

    Args:
        x: Inputs.
        elements: One index array or matrix, or several of them.
        signed: Whether any of the index arrays changes signs; None finds it out.

    Returns:
        The transformed copies, of the type of `x`.

    Raises:
        ValueError: The elements act on inputs of another length, or `x` has a type that they cannot act on.
    """
    dim = x.shape[-1]
    signed = changes_signs(elements) if signed is None else signed
    if elements.shape[-1] != dim:
        raise ValueError(
            f"the group acts on {elements.shape[-1]} inputs, x has {dim} in its last axis: use one shape for both."
        )
    elements = elements.to(x.device)
    if elements.is_floating_point():
        if not x.is_floating_point():
            raise ValueError(f"a matrix group acts on floating-point tensors, not {x.dtype}: use x.float().")
        return (elements.to(x.dtype) @ x[(..., *[None] * (elements.ndim - 2), slice(None), None)]).squeeze(-1)
    if not signed:
        return x[..., elements]
    if x.dtype == torch.bool or not x.dtype.is_signed:
        raise ValueError(f"{x.dtype} has no negative values for a group that changes signs: use x.float().")
    return torch.cat([x, -x], dim=-1)[..., elements]
