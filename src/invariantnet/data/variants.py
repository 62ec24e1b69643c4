"""Variants of a data set of images: plain, permuted, rotated and flipped as in the paper, or moved within a range.

Every image of the training and the test set appears in one pose, drawn uniformly from a group or a range. If the
quarter turns of a group are among the poses, 6 and 9 are removed: a turned 6 is a 9. Ranges keep all classes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float32, Int64

from invariantnet.data.records import Dataset
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.named import symmetry
from invariantnet.symmetries.ranges import Range

VARIANTS = {"plain": "trivial", "permuted": "trivial", "rotated": "rot90", "flipped": "flips"}
"""The paper's variants, and the symmetry of each."""

POSES_OF_A_RANGE = 1000
"""Random poses, each of which moves an equal share of the images: moving images one by one would take minutes."""

AMBIGUOUS_WHEN_TURNED = ("6", "9")
"""Classes that are removed if quarter turns are among the poses."""


def vary(data: Dataset, variant: str, seed: int) -> Dataset:
    """Apply a variant to a data set.

    Args:
        data: Images.
        variant: One of `VARIANTS`, or the name of a symmetry, such as `d4` or `rotation:90`, whose transformations
            are the poses.
        seed: Decides the permutation and the poses.

    Returns:
        The data set with moved inputs.

    Raises:
        ValueError: There is no such variant, or it has no list of poses.
    """
    if variant == "plain":
        return data
    if variant == "permuted":
        return _permuted(data, seed)
    try:
        group = symmetry(VARIANTS.get(variant, variant), data.shape)
    except ValueError as error:
        raise ValueError(
            f"unknown variant {variant!r}: choose {', '.join(VARIANTS)}, or a symmetry of the catalogue ({error})"
        ) from None
    if isinstance(group, Range):
        return _moved(data, group, seed)
    if not (group.is_permutation_group and group.can_list_elements):
        raise ValueError(
            f"{variant!r} gives no poses to draw from: choose {', '.join(VARIANTS)}, or a smaller group."
        )
    return _posed(data, group, seed)


def _permuted(data: Dataset, seed: int) -> Dataset:
    permutation = np.random.default_rng(seed).permutation(data.dim)
    return replace(
        data,
        x_train=np.ascontiguousarray(data.x_train[:, permutation]),
        x_test=np.ascontiguousarray(data.x_test[:, permutation]),
        provenance=f"{data.provenance}, one permutation of all pixels, seed {seed}",
    )


def _posed(data: Dataset, group: Group, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    provenance = f"{data.provenance}, each image in one pose drawn uniformly from {group.name}, seed {seed}"
    if symmetry("rot90", data.shape) <= group:
        data = without_classes(data, AMBIGUOUS_WHEN_TURNED)
        provenance += f", without {' and '.join(AMBIGUOUS_WHEN_TURNED)}"
    elements = group.elements.numpy()
    return replace(
        data,
        x_train=transformed(data.x_train, elements, rng.integers(len(elements), size=len(data.x_train))),
        x_test=transformed(data.x_test, elements, rng.integers(len(elements), size=len(data.x_test))),
        provenance=provenance,
    )


def _moved(data: Dataset, poses: Range, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    return replace(
        data,
        x_train=_moved_within(data.x_train, poses, rng),
        x_test=_moved_within(data.x_test, poses, rng),
        provenance=f"{data.provenance}, each image moved at random, {poses.words}, seed {seed}",
    )


def _moved_within(
    x: Float32[np.ndarray, "n dim"], poses: Range, rng: np.random.Generator
) -> Float32[np.ndarray, "n dim"]:
    if poses.group is not None:
        elements = poses.group.elements.numpy()
        x = transformed(x, elements, rng.integers(len(elements), size=len(x)))
    positions = rng.uniform(-1, 1, size=(POSES_OF_A_RANGE, poses.parameters))
    moved = np.empty_like(x)
    # Images that share a pose are moved together.
    order = np.argsort(rng.integers(len(positions), size=len(x)), kind="stable")
    for position, rows in zip(positions, np.array_split(order, len(positions)), strict=True):
        moved[rows] = poses.move(torch.from_numpy(x[rows]), position).numpy()
    return moved


def transformed(
    x: Float32[np.ndarray, "n dim"], elements: Int64[np.ndarray, "order dim"], poses: Int64[np.ndarray, " n"]
) -> Float32[np.ndarray, "n dim"]:
    """Move every input by an element of a group.

    Args:
        x: Inputs.
        elements: Elements of a group, as index arrays.
        poses: Number of the element that moves each input.

    Returns:
        The moved inputs, in the same order.
    """
    moved = np.empty_like(x)
    for pose, element in enumerate(elements):
        rows = poses == pose
        moved[rows] = x[rows][:, element]
    return moved


def without_classes(data: Dataset, names: Sequence[str]) -> Dataset:
    """Remove the examples of some classes; labels keep their meaning.

    Args:
        data: Labelled inputs.
        names: Names of the classes to remove; unknown ones are ignored.

    Returns:
        The data set without these examples.
    """
    labels = [data.class_names.index(name) for name in names if name in data.class_names]
    train, test = (~np.isin(y, labels) for y in (data.y_train, data.y_test))
    return replace(
        data,
        x_train=data.x_train[train],
        y_train=data.y_train[train],
        x_test=data.x_test[test],
        y_test=data.y_test[test],
    )
