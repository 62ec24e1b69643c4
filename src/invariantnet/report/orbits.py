"""A picture of the orbits of a group: inputs of one color take each other's places."""

import math
from collections.abc import Collection
from html import escape

import numpy as np

from invariantnet.symmetries.group import Group

SIDE = 16
"""Side of the square of one input, in pixels: 28 in a row are 448."""

MOST_IN_A_ROW = 32
"""Squares in a row of inputs that have no geometry."""

GOLDEN = 137.508
"""Degrees between the colors of one orbit and the next: no two are ever close."""


def orbits_svg(group: Group, shape: tuple[int, ...], set_aside: Collection[int] = ()) -> str:
    """Draw every input as a square, in its own geometry, with one color for each orbit.

    Args:
        group: A group of index arrays.
        shape: Shape of one input: height and width for images, with channels first; otherwise inputs are in rows.
        set_aside: Inputs that discovery could not see; they are crossed out.

    Returns:
        The picture as SVG; inputs that nothing moves are white.

    Raises:
        ValueError: If the shape has another number of inputs, or the group no index arrays.
    """
    generators = group.index_generators()
    if generators is None or math.prod(shape) != group.dim:
        raise ValueError(f"{group.name} acts on {group.dim} inputs, not on the shape {shape}: pass its own shape.")
    orbits = Group("", generators % group.dim).orbits().numpy() if group.order > 1 else np.arange(group.dim)
    sizes = np.bincount(orbits)
    rank = np.cumsum(sizes > 1) - 1
    columns = shape[-1] if len(shape) > 1 else min(MOST_IN_A_ROW, group.dim)
    squares = []
    for i, orbit in enumerate(orbits.tolist()):
        row, column = divmod(i, columns)
        fill = _color(int(rank[orbit])) if sizes[orbit] > 1 else "#fff"
        words = f"input {i}: orbit of {sizes[orbit]}" if sizes[orbit] > 1 else f"input {i}: not moved"
        squares.append(_square(column * SIDE, row * SIDE, fill, words, crossed=i in set_aside))
    width, height = columns * SIDE, math.ceil(group.dim / columns) * SIDE
    title = f"{int((sizes > 1).sum())} orbits of {group.name}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img"><title>{escape(title)}</title>{"".join(squares)}</svg>\n'
    )


def _square(x: int, y: int, fill: str, words: str, *, crossed: bool) -> str:
    cross = f'<path d="M{x + 4} {y + 4}l8 8m0-8l-8 8" stroke="#888"/>' if crossed else ""
    return (
        f'<g><title>{words}</title><rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" fill="{fill}" '
        f'stroke="#ccc"/>{cross}</g>'
    )


def _color(rank: int) -> str:
    return f"hsl({GOLDEN * rank % 360:.0f} 65% {45 + 12 * (rank % 3)}%)"
