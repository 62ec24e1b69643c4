"""Random copies of inputs: in training, a few transformations of a range stand for all of them."""

import torch
from jaxtyping import Float
from torch import Tensor

from invariantnet.symmetries._lattice import lattice
from invariantnet.symmetries.group import transform
from invariantnet.symmetries.ranges import Range

POSITIONS = 63
"""Transformations of a range to draw from: about four times as dense as the copies that predict, so that a network
learns what lies between these. An odd number is even on both sides of the identity."""

SHARES = 8
"""Parts of a batch that are moved by one transformation each: a step then makes 8 moves, however large it is."""


def drawn_copies(symmetry: Range, x: Float[Tensor, "*batch dim"], count: int) -> Float[Tensor, "*batch n dim"]:
    """Move every input by a few random transformations of a range.

    Parts of the batch, drawn anew each time, are moved alike. All draws come from the generator of torch.

    Args:
        symmetry: The range; elements of its group are drawn too.
        x: Flat inputs.
        count: Copies of each input.

    Returns:
        The copies, of the type of `x`.

    Example:
        >>> from invariantnet import symmetry
        >>> drawn_copies(symmetry("rotation:30", shape=(4, 4)), torch.ones(5, 16), count=2).shape
        torch.Size([5, 2, 16])
    """
    rows = x.reshape(-1, x.shape[-1]).repeat_interleave(count, dim=0)
    moved = torch.empty_like(rows)
    for part in torch.randperm(len(rows)).to(x.device).tensor_split(min(len(rows), max(SHARES, count))):
        moved[part] = _moved_at_random(symmetry, rows[part])
    return moved.reshape(*x.shape[:-1], count, x.shape[-1])


def _moved_at_random(symmetry: Range, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n dim"]:
    """Move inputs by one random transformation."""
    if symmetry.group is not None:
        element = symmetry.group.elements[int(torch.randint(symmetry.group.order, ()))]
        x = transform(x, element, signed=not symmetry.group.is_permutation_group)
    positions = lattice(POSITIONS, symmetry.parameters)
    return symmetry.move(x, positions[int(torch.randint(POSITIONS, ()))])
