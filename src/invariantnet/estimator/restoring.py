"""From a stored record back to the parts of an estimator; nothing is taken on trust."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from invariantnet._system.words import count_words
from invariantnet.estimator.persistence import Learned, ModelRecord, OwnSymmetry, Parameters
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.symmetries._closure import (
    TooManyElementsError,
    check_finite_order,
    check_indices,
    check_invertible,
)
from invariantnet.symmetries.group import Group

HYPOTHESES = "hypotheses."
"""Prefix of the tensors that hold the generators of the hypotheses."""


def restored_groups(record: ModelRecord, tensors: Mapping[str, Tensor]) -> tuple[list[Group], Group]:
    """Rebuild the hypotheses of a record, and check that they act on its inputs.

    Args:
        record: The record of a model.
        tensors: Its tensors.

    Returns:
        All hypotheses, and the chosen one among them.

    Raises:
        ValueError: If generators are no group's, act on other inputs, or generate another number of elements.
    """
    groups = [
        Group(h.name, tensors[f"{HYPOTHESES}{k}"].numpy(), h.shape, known_order=h.order)
        for k, h in enumerate(record.hypotheses)
    ]
    chosen = next((g for g in groups if g.name == record.chosen), None)
    if chosen is None:
        raise ValueError(f"{record.chosen!r} is not among the hypotheses")
    _check_learned(record.learned)
    _check_hypotheses(groups, record.learned.n_features_in)
    _check_order(chosen)
    return groups, chosen


def constructor_arguments(stored: Parameters, groups: Sequence[Group], backbone: object) -> dict[str, Any]:
    """Turn stored parameters into the arguments of an estimator.

    Args:
        stored: The parameters.
        groups: The hypotheses, which symmetries that were passed as objects refer to.
        backbone: What to pass for a backbone of the user's own.

    Returns:
        Arguments by name.
    """
    symmetries: Any = stored.symmetries
    if not isinstance(symmetries, str):
        symmetries = [
            replace(groups[s.hypothesis], name=s.name) if isinstance(s, OwnSymmetry) else s for s in symmetries
        ]
    prior = list(stored.prior) if isinstance(stored.prior, tuple) else stored.prior
    values = {**vars(stored), "symmetries": symmetries, "prior": prior}
    return values if stored.backbone is not None else {**values, "backbone": backbone}


def learned_attributes(learned: Learned) -> dict[str, Any]:
    """Turn learned values into the attributes of a fitted estimator, by name."""
    return {f"{name}_": _as_attribute(name, value) for name, value in vars(learned).items() if value is not None}


def _as_attribute(name: str, value: Any) -> Any:
    if name == "classes":
        return np.array(value)
    return np.array(value, dtype=object) if name == "feature_names_in" else value


def _check_learned(learned: Learned) -> None:
    dim = math.prod(learned.input_shape)
    if learned.n_features_in != dim:
        raise ValueError(f"{learned.n_features_in} features of shape {learned.input_shape}")
    if learned.feature_names_in is not None and len(learned.feature_names_in) != dim:
        raise ValueError(f"{len(learned.feature_names_in)} names of {dim} features")
    if learned.classes is not None and len(learned.classes) != learned.outputs:
        raise ValueError(f"{len(learned.classes)} classes for {learned.outputs} outputs")
    if not learned.scale > 0:
        raise ValueError(f"a scale of {learned.scale}")


def _check_hypotheses(groups: Sequence[Group], dim: int) -> None:
    for group in groups:
        if group.dim != dim:
            raise ValueError(f"{group.name} acts on {group.dim} numbers, an input has {dim}")
        if group.is_matrix_group:
            check_invertible(group.generators)
            for i, matrix in enumerate(group.generators):
                check_finite_order(matrix, i, group.order)
        else:
            check_indices(group.generators)


def _check_order(group: Group) -> None:
    """Refuse a wrong number of elements, where they are few enough to be listed; more are sampled."""
    limit = group.order if group.can_list_elements else SAMPLED
    make = Group.from_matrices if group.is_matrix_group else Group.from_permutations
    with contextlib.suppress(TooManyElementsError):
        if (found := make(group.generators, max_order=limit).order) != group.order:
            raise ValueError(f"{group.name} has {found} elements, not {count_words(group.order)}")
