"""The smallest group that contains several others."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from invariantnet._system.words import count_words
from invariantnet.symmetries._closure import Indices, TooManyElementsError, close_indices, most_elements
from invariantnet.symmetries.group import MAX_ORDER, Group

WITHOUT_JOIN = (
    "compare each by itself (joins=False; data that is symmetric under both at once is then not found to be), or "
    "use smaller groups"
)
"""What a user can do about a join that is too large."""


def generated_by(groups: Sequence[Group], name: str, inside: Group | None = None) -> Group:
    """Make the smallest group that contains all of `groups`.

    Args:
        groups: Groups that act on inputs of one length.
        name: Name of the new group.
        inside: A group that contains them all, and that they may generate. By Lagrange's theorem they do as soon
            as more than half of its elements are found, so it is not listed again.

    Returns:
        The group. Matrices and index arrays together make matrices.

    Raises:
        ValueError: The inputs differ in length, or a join of matrices has too many elements to list.
    """
    dims = {g.dim for g in groups}
    if len(dims) != 1:
        raise ValueError(
            f"groups on inputs of different lengths {sorted(dims)} have no join: make them for one shape."
        )
    shapes = {g.shape for g in groups}
    shape = shapes.pop() if len(shapes) == 1 else None
    if inside is not None and inside.order // 2 <= _most_listed(groups):
        try:
            return replace(_listed(groups, name, inside.order // 2), shape=shape)
        except TooManyElementsError:
            return inside
    make = _of_matrices if any(g.is_matrix_group for g in groups) else _of_indices
    return replace(make(groups, name), shape=shape)


def _most_listed(groups: Sequence[Group]) -> int:
    size = max(g.generators[0].size for g in groups)
    return min(MAX_ORDER, most_elements(size)) if all(g.can_list_elements for g in groups) else 0


def _listed(groups: Sequence[Group], name: str, most: int) -> Group:
    if any(g.is_matrix_group for g in groups):
        matrices = np.concatenate([g.matrix_generators() for g in groups])
        return Group.from_matrices(matrices, name, max_order=most)
    indices = _generators(groups)
    return Group(name, indices, known_elements=close_indices(indices, most, name))


def _generators(groups: Sequence[Group]) -> Indices:
    """Index arrays that generate the join, each once, of groups that are close to signed permutations."""
    indices = [found for g in groups if (found := g.index_generators()) is not None]
    return np.unique(np.concatenate(indices), axis=0)


def _of_indices(groups: Sequence[Group], name: str) -> Group:
    if all(g.can_list_elements for g in groups):
        with contextlib.suppress(TooManyElementsError):
            return _listed(groups, name, MAX_ORDER)
    return Group(name, _generators(groups))


def _of_matrices(groups: Sequence[Group], name: str) -> Group:
    limit = min(MAX_ORDER, most_elements(groups[0].dim ** 2))
    largest = max(g.order for g in groups)
    if largest > limit:
        # Matrices must be listed, index arrays need not: use these if the matrices are close to permutations.
        if all(g.index_generators() is not None for g in groups):
            return Group(name, _generators(groups))
        raise TooManyElementsError(
            f"{name} has at least {count_words(largest)} elements, and matrix groups have at most {limit:,}: "
            f"{WITHOUT_JOIN}."
        )
    try:
        return _listed(groups, name, MAX_ORDER)
    except TooManyElementsError:
        raise TooManyElementsError(
            f"{name} has more than {limit:,} elements, or infinitely many: {WITHOUT_JOIN}."
        ) from None
