"""From a stored record back to the parts of an estimator; nothing is taken on trust."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from invariantnet._system.words import count_words
from invariantnet.estimator.persistence import CandidateRecord, Learned, ModelRecord, OwnSymmetry, Parameters
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.symmetries._closure import (
    TooManyElementsError,
    check_finite_order,
    check_indices,
    check_invertible,
)
from invariantnet.symmetries.families import FAMILIES
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.named import symmetry as named_symmetry
from invariantnet.symmetries.ranges import MOST_COPIES, AnySymmetry, Range

CANDIDATES = "candidates."
"""Prefix of the tensors that hold the generators of the candidates."""


class NotRegisteredError(ValueError):
    """A model has a range of the user's own that this program does not know yet."""


def restored_symmetries(
    record: ModelRecord, tensors: Mapping[str, Tensor]
) -> tuple[list[AnySymmetry], AnySymmetry]:
    """Rebuild the candidates of a record, and check that they act on its inputs.

    Args:
        record: The record of a model.
        tensors: Its tensors.

    Returns:
        All candidates, and the chosen one among them.

    Raises:
        NotRegisteredError: If a range of the user's own is not registered.
        ValueError: If generators are no group's, act on other inputs, or generate another number of elements.
    """
    _check_learned(record.learned)
    found = [_restored(h, tensors.get(f"{CANDIDATES}{k}")) for k, h in enumerate(record.candidates)]
    chosen = next((s for s in found if s.name == record.chosen), None)
    if chosen is None:
        raise ValueError(f"{record.chosen!r} is not among the candidates")
    groups = [s.group if isinstance(s, Range) else s for s in found]
    _check_candidates([group for group in groups if group is not None], record.learned.n_features_in)
    for symmetry in found:
        if symmetry.dim != record.learned.n_features_in:
            raise ValueError(f"{symmetry.name} acts on {symmetry.dim} numbers, not {record.learned.n_features_in}")
    of_chosen = chosen.group if isinstance(chosen, Range) else chosen
    if of_chosen is not None:
        _check_order(of_chosen)
    return found, chosen


def _restored(stored: CandidateRecord, generators: Tensor | None) -> AnySymmetry:
    group = None
    parts = stored.name.split("+")
    own = parts[: len(parts) - len(stored.extents)]
    if own:
        if generators is None:
            raise ValueError(f"the generators of {stored.name} are missing")
        group = Group("+".join(own), generators.numpy(), stored.shape, known_order=stored.order)
    if not stored.extents:
        assert group is not None
        return group
    if stored.shape is None:
        raise ValueError(f"the range {stored.name} has no shape")
    if group is not None and group.order > MOST_COPIES:
        raise ValueError(f"{stored.name} has too many copies")
    ranges = [_named_range(extent, stored.shape) for extent in stored.extents]
    return Range(tuple(e for r in ranges for e in r.extents), stored.shape, group, stored.nodes)


def _named_range(extent: str, shape: tuple[int, ...]) -> Range:
    family = extent.partition(":")[0]
    if family not in FAMILIES:
        raise NotRegisteredError(
            f"this model has a range of your own, {extent}: call register_range({family!r}, …) first, as no "
            "code is stored."
        )
    found = named_symmetry(extent, shape)
    if not isinstance(found, Range):
        raise ValueError(f"{extent} is no range")
    return found


def constructor_arguments(
    stored: Parameters, candidates: Sequence[AnySymmetry], backbone: object
) -> dict[str, Any]:
    """Turn stored parameters into the arguments of an estimator.

    Args:
        stored: The parameters.
        candidates: The candidates, which symmetries that were passed as objects refer to.
        backbone: What to pass for a backbone of the user's own.

    Returns:
        Arguments by name.
    """
    symmetries: Any = stored.symmetries
    if not isinstance(symmetries, str):
        symmetries = [
            _as_passed(candidates[s.candidate], s.name) if isinstance(s, OwnSymmetry) else s for s in symmetries
        ]
    prior = list(stored.prior) if isinstance(stored.prior, tuple) else stored.prior
    values = {**vars(stored), "symmetries": symmetries, "prior": prior}
    return values if stored.backbone is not None else {**values, "backbone": backbone}


def _as_passed(candidate: AnySymmetry, name: str) -> AnySymmetry:
    return candidate if isinstance(candidate, Range) else replace(candidate, name=name)


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
    for numbers in (learned.y_mean, learned.y_scale):
        if numbers is not None and 2 * len(numbers) != learned.outputs:
            raise ValueError(f"{len(numbers)} scales for {learned.outputs} outputs")


def _check_candidates(groups: Sequence[Group], dim: int) -> None:
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
