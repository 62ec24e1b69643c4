"""Find groups and ranges by name, join them, list ladders, and register ranges of your own."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from invariantnet.symmetries import lookup
from invariantnet.symmetries.families import FAMILIES, Family
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.ranges import Extent, Range, combined
from invariantnet.symmetries.shapes import Shape, checked


def symmetry(name: str, shape: Shape) -> Group | Range:
    """Look up a symmetry by name, for inputs of a shape.

    Args:
        name: A group of the catalogue or a registered one, such as `rot90`; a range, such as `rotation:30`; or
            several of them joined, such as `hflip+rotation:30`.
        shape: Shape of one input: `(D,)`, `(H, W)`, `(C, H, W)` or `(length, features)`.

    Returns:
        The group or the range.

    Raises:
        ValueError: The name is unknown, the value is none of its family, or the symmetry does not act on this
            shape.

    Example:
        >>> symmetry("rot90", shape=(28, 28))
        Group('rot90', order=4, dim=784)
        >>> symmetry("hflip+rotation:30", shape=(28, 28))
        Range('hflip+rotation:30', copies=6, dim=784)
        >>> symmetry("rot90", shape=(28, 20))
        Traceback (most recent call last):
        ValueError: rot90 needs square images, got 28×20: pad them to a square, or use 'flips' or 'rot180'.
    """
    shape = checked(shape)
    parts = [part.strip() for part in name.split("+")]
    groups = "+".join(part for part in parts if _family_of(part) is None)
    made: list[Group | Range] = [lookup.symmetry(groups, shape)] if groups else []
    made += [_named_range(part, shape) for part in parts if _family_of(part) is not None]
    first, *others = made
    for other in others:
        first = join(first, other)
    return first


def join(first: Group | Range, second: Group | Range, known: Sequence[Group] = ()) -> Group | Range:
    """Make the smallest symmetry that contains two others.

    Args:
        first: A group or a range.
        second: A group or a range for the same inputs.
        known: Groups that the join may equal, and that need not be listed again.

    Returns:
        The larger one if it contains the other, else the known group or the one of the catalogue that equals the
        join, else a new symmetry. Of two ranges of one family, the larger one counts.

    Raises:
        ValueError: The inputs differ, or there are too many copies of an input.

    Example:
        >>> join(symmetry("rot90", shape=(28, 28)), symmetry("flips", shape=(28, 28)))
        Group('d4', order=8, dim=784)
    """
    if isinstance(first, Group) and isinstance(second, Group):
        return lookup.join(first, second, known)
    if first.dim != second.dim:
        raise ValueError(
            f"{first.name} and {second.name} act on inputs of different lengths: make both for one shape."
        )
    if isinstance(first, Group):
        first, second = second, first
    assert isinstance(first, Range)
    if second <= first or first <= second:
        return first if second <= first else second
    group, rest = (second, None) if isinstance(second, Group) else (second.group, replace(second, group=None))
    if first.group is not None and group is not None:
        group = lookup.join(first.group, group, known)
    whole = replace(first, group=group or first.group)
    return whole if rest is None else combined(whole, rest)


def ladder(name: str, shape: Shape) -> list[Range]:
    """List the nested ranges of a family, from the smallest to the largest; `trivial` is the rung below them.

    Args:
        name: A family, such as `rotation`, alone or joined with symmetries that stay the same on all rungs, such
            as `hflip+rotation`.
        shape: Shape of one input.

    Returns:
        The ranges.

    Raises:
        ValueError: The name is no family or more than one, or the family does not act on this shape.

    Example:
        >>> print(*(rung.name for rung in ladder("shear", shape=(28, 28))))
        shear:5 shear:10 shear:15 shear:20 shear:30 shear:40
    """
    shape = checked(shape)
    parts = [part.strip() for part in name.split("+")]
    bare = [part for part in parts if part in FAMILIES]
    if len(bare) != 1:
        raise ValueError(
            f"{name!r} is no ladder: name one of {', '.join(FAMILIES)}, and give every other part a value."
        )
    family = FAMILIES[bare[0]]
    family.check(family.none, shape)
    rungs = []
    for value in family.ladder(shape):
        named = [Extent(family, float(value)).name if part == family.name else part for part in parts]
        made = symmetry("+".join(named), shape)
        assert isinstance(made, Range)
        rungs.append(made)
    return rungs


def ladders_for(shape: Shape) -> list[str]:
    """List the names of all families that act on a shape."""
    return [name for name, family in FAMILIES.items() if len(shape) in family.axes]


def register_range(
    name: str,
    function: Callable[[Any, float], Any],
    ladder: Sequence[float],
    *,
    unit: str = "",
    factor: bool = False,
    description: str = "registered by you",
) -> None:
    """Make a range of your own available by name.

    Args:
        name: Its name, without '+', ':', commas and spaces.
        function: Transforms a batch of inputs in their shape, the batch first, by a value. It is called with
            values from minus to plus that of the range, never with 0, which always is the input itself.
        ladder: Values of the default ladder, ascending and positive.
        unit: What the value counts, such as "°" or "pixels".
        factor: Whether values multiply: they then go from one over the value to the value, evenly in their
            logarithm, and 1 is the input itself.
        description: What it does to an input, for the command line.

    Raises:
        ValueError: The name is taken or cannot be a name, or the ladder is no ladder.

    Example:
        >>> register_range("warmth", lambda x, value: x * (1 + value), ladder=(0.1, 0.2, 0.4))
        >>> symmetry("warmth:0.2", shape=(3,))
        Range('warmth:0.2', copies=7, dim=3)
        >>> del FAMILIES["warmth"]
    """
    if not name or any(c in name for c in "+:, \t\n"):
        raise ValueError(f"{name!r} cannot name a range: leave out '+', ':', commas and spaces.")
    if name in FAMILIES or name in lookup.names():
        raise ValueError(f"a symmetry named {name!r} exists already: choose another name.")
    values = tuple(float(value) for value in ladder)
    none = 1.0 if factor else 0.0
    ascending = all(a < b for a, b in zip((none, *values), values, strict=False))
    if not values or not ascending or not math.isfinite(values[-1]):
        raise ValueError(f"the ladder of {name} is {list(values)}: pass ascending values above {none:g}.")
    FAMILIES[name] = Family(
        name, name, description, "any", unit, _Applied(function), _Fixed(values), (1, 2, 3), factor=factor
    )


class _Applied:
    """A user's function with its value filled in; a class, so that it can be pickled where the function can."""

    def __init__(self, function: Callable[[Any, float], Any]) -> None:
        self.function = function

    def __call__(self, value: float) -> Callable[[Any], Any]:
        return lambda x: self.function(x, value)


class _Fixed:
    """A ladder of the same values for every shape."""

    def __init__(self, values: Sequence[float]) -> None:
        self.values = values

    def __call__(self, shape: Shape) -> Sequence[float]:
        return self.values


def _family_of(part: str) -> Family | None:
    name, colon, _ = part.partition(":")
    if name in FAMILIES:
        return FAMILIES[name]
    if colon:
        kind = "a group, which has no value" if name in lookup.names() else "no family of ranges"
        raise ValueError(f"{part!r}: {name!r} is {kind}: choose among {', '.join(FAMILIES)}.")
    if part not in lookup.names():
        raise ValueError(
            f"unknown symmetry {part!r}: choose among {', '.join(lookup.names())}; "
            f"or a range, such as rotation:30, of {', '.join(FAMILIES)}."
        )
    return None


def _named_range(part: str, shape: Shape) -> Range:
    name, colon, text = part.partition(":")
    family = FAMILIES[name]
    family.check(family.none, shape)
    example = f"{name}:{family.ladder(shape)[0]:g}"
    if not colon:
        raise ValueError(f"{name} is a whole ladder of ranges: name one rung, such as {example}.")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(
            f"{part!r} is no range: {name} counts in {family.counts}: write a number alone, such as {example}."
        ) from None
    return Range((Extent(family, value),), shape)
