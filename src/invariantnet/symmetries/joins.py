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


def generated_by(groups: Sequence[Group], name: str) -> Group:
    """Make the smallest group that contains all of `groups`.

    Args:
        groups: Groups that act on inputs of one length.
        name: Name of the new group.

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
    if any(g.is_matrix_group for g in groups):
        return replace(_of_matrices(groups, name), shape=shape)
    can_list = all(g.can_list_elements for g in groups)
    generators = np.concatenate([g.generators for g in groups])
    return replace(_of_indices(generators, name, can_list=can_list), shape=shape)


def _of_indices(generators: Indices, name: str, *, can_list: bool) -> Group:
    distinct = np.unique(generators, axis=0)
    if can_list:
        with contextlib.suppress(TooManyElementsError):
            return Group(name, distinct, known_elements=close_indices(distinct, MAX_ORDER, name))
    return Group(name, distinct)


def _of_matrices(groups: Sequence[Group], name: str) -> Group:
    limit = min(MAX_ORDER, most_elements(groups[0].dim ** 2))
    largest = max(g.order for g in groups)
    if largest > limit:
        # Matrices must be listed, index arrays need not: use these if the matrices are close to permutations.
        indices = [found for g in groups if (found := g.index_generators()) is not None]
        if len(indices) == len(groups):
            return _of_indices(np.concatenate(indices), name, can_list=False)
        raise TooManyElementsError(
            f"{name} has at least {count_words(largest)} elements, and matrix groups have at most {limit:,}: "
            f"{WITHOUT_JOIN}."
        )
    try:
        return Group.from_matrices(
            np.concatenate([g.matrix_generators() for g in groups]), name, max_order=MAX_ORDER
        )
    except TooManyElementsError:
        raise TooManyElementsError(
            f"{name} has more than {limit:,} elements, or infinitely many: {WITHOUT_JOIN}."
        ) from None
