"""Find symmetries by name, join them, and register new ones."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from invariantnet.symmetries.catalogue import CATALOGUE, IMAGES, SEQUENCE
from invariantnet.symmetries.families import FAMILIES
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.joins import generated_by
from invariantnet.symmetries.shapes import Shape, checked, has_features

REGISTERED: dict[str, Callable[[Shape], Group]] = {}
"""Factories of the symmetries that users have registered, by name."""

KEPT, MOST_INPUTS_KEPT = 32, 1024
"""Groups of the catalogue that are kept for the next lookup, elements included once they are listed, and numbers
per input up to which they are: at most 8 MB each, for all shifts of an image of 32×32 pixels."""


def symmetry(name: str, shape: Shape) -> Group:
    """Look up a symmetry by name, for inputs of a shape.

    Args:
        name: Name of the catalogue, or one that was registered; `a+b` is the join of `a` and `b`.
        shape: Shape of one input: `(D,)`, `(H, W)`, `(C, H, W)` or `(length, features)`.

    Returns:
        The group.

    Raises:
        ValueError: The name is unknown, or the symmetry does not act on this shape.

    Example:
        >>> symmetry("rot90", shape=(28, 28))
        Group('rot90', order=4, dim=784)
        >>> symmetry("rot90", shape=(28, 20))
        Traceback (most recent call last):
        ValueError: rot90 needs square images, got 28×20: pad them to a square, or use 'flips' or 'rot180'.
    """
    shape = checked(shape)
    if "+" in name:
        first, *others = (symmetry(part.strip(), shape) for part in name.split("+"))
        for other in others:
            first = join(first, other)
        return first
    if name in CATALOGUE:
        return (_kept if math.prod(shape) <= MOST_INPUTS_KEPT else _made)(name, shape)
    if name not in REGISTERED:
        raise ValueError(f"unknown symmetry {name!r}: choose among {', '.join(names())}.")
    custom = REGISTERED[name](shape)
    if custom.dim != math.prod(shape):
        raise ValueError(
            f"{name} was made for {custom.dim} inputs, shape {shape} has {math.prod(shape)}: mend its factory."
        )
    return replace(custom, name=name, shape=shape)


def _made(name: str, shape: Shape) -> Group:
    made = CATALOGUE[name].generators(shape)
    indices = np.stack(made.indices).astype(np.int64)
    if made.order is not None:
        return Group(name, indices, shape, known_order=made.order)
    return replace(Group.from_permutations(indices, name), shape=shape)


_kept = lru_cache(maxsize=KEPT)(_made)


def join(g1: Group, g2: Group, known: Sequence[Group] = ()) -> Group:
    """Make the smallest group that contains two others; a function invariant to both is invariant to it.

    Args:
        g1: A group.
        g2: A group on inputs of the same length.
        known: Groups that the join may equal, and that need not be listed again.

    Returns:
        The larger one if it contains the other, else the known group or the one of the catalogue that equals the
        join, else a new group.

    Raises:
        ValueError: The inputs differ in length, or a join of matrices has too many elements to list.

    Example:
        >>> join(symmetry("rot90", shape=(28, 28)), symmetry("flips", shape=(28, 28)))
        Group('d4', order=8, dim=784)
    """
    for small, large in ((g1, g2), (g2, g1)):
        if small <= large:
            return large
    shape = g1.shape if g1.shape == g2.shape else None
    every = (*known, *(symmetries_for(shape) if shape is not None else ()))
    wholes = sorted((whole for whole in every if g1 <= whole and g2 <= whole), key=lambda whole: whole.order)
    joined = generated_by([g1, g2], f"{g1.name}+{g2.name}", wholes[0] if wholes else None)
    return next((whole for whole in wholes if whole == joined), joined)


def symmetries_for(shape: Shape) -> list[Group]:
    """List every symmetry, of the catalogue or registered, that acts on a shape.

    Args:
        shape: Shape of one input.

    Returns:
        The groups, in the order of the catalogue; registered ones last.
    """
    found = []
    for name in names():
        try:
            found.append(symmetry(name, shape))
        except ValueError:
            continue
    return found


def groups_suited_to(shape: Shape) -> list[Group]:
    """List the symmetries that make sense for what a shape looks like: an image, or a sequence, set or table.

    Reading rows backwards acts on images too, but is called a mirror image there; and mirror images act on points
    with features, but exchange features that mean different things.

    Args:
        shape: Shape of one input.

    Returns:
        The groups, in the order of the catalogue; registered ones last.

    Example:
        >>> [g.name for g in groups_suited_to((20, 2))]
        ['trivial', 'reversal', 'cyclic', 'permutations', 'sign']
    """
    unsuited = IMAGES if len(shape) == 1 or has_features(shape) else (SEQUENCE,)
    left_out = {name for name, entry in CATALOGUE.items() if entry.shapes in unsuited}
    return [group for group in symmetries_for(shape) if group.name not in left_out]


def register_symmetry(name: str, factory: Callable[[Shape], Group]) -> None:
    """Make a symmetry of your own available by name.

    Args:
        name: Its name, without '+', ':', commas and spaces.
        factory: Makes the group for a shape, or raises a ValueError that names the remedy.

    Raises:
        ValueError: The name is taken, or cannot be a name.

    Example:
        >>> from invariantnet import Group
        >>> swap = lambda shape: Group.from_permutations([[1, 0, *range(2, shape[0])]])
        >>> register_symmetry("swap", swap)
        >>> symmetry("swap", shape=(3,)).orbits()
        tensor([0, 0, 1])
        >>> del REGISTERED["swap"]
    """
    if not name or any(c in name for c in "+:, \t\n"):
        raise ValueError(f"{name!r} cannot name a symmetry: leave out '+', ':', commas and spaces.")
    if name in names() or name in FAMILIES:
        raise ValueError(f"a symmetry named {name!r} exists already: choose another name.")
    REGISTERED[name] = factory


def names() -> list[str]:
    """List every name that `symmetry` knows."""
    return [*CATALOGUE, *REGISTERED]
