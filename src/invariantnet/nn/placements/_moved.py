"""The weights of a layer, transformed by every element of a group."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


class MoveWeights(torch.autograd.Function):
    """Transforms weights by index arrays. It gathers in both passes, which avoids a scatter-add."""

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor, forward: Tensor, backward: Tensor, signed: bool) -> Tensor:
        """Gather whole rows: all weights of one input are neighbours in memory."""
        rows = _with_negatives(weight.mT.contiguous(), signed)
        return rows.index_select(0, forward.flatten()).unflatten(0, forward.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what the backward pass needs: the gradient does not depend on the weights."""
        _, _, backward, ctx.signed = inputs
        ctx.save_for_backward(backward)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        """Sum the gradients of all copies of a weight."""
        (backward,) = ctx.saved_tensors
        rows = _with_negatives(grad, ctx.signed).flatten(0, 1)
        return F.embedding_bag(backward, rows, mode="sum").mT, None, None, None


def _with_negatives(x: Float[Tensor, "dim *rest"], signed: bool) -> Float[Tensor, "dims *rest"]:
    """Append the negatives if indices from `dim` on stand for a change of sign."""
    return torch.cat([x, -x]) if signed else x


def gather_indices(elements: Int[Tensor, "n dim"]) -> tuple[Int[Tensor, "dim n"], Int[Tensor, "dim n"]]:
    """Find where weights go, and where their gradients come from.

    Args:
        elements: Index arrays of the elements.

    Returns:
        For each input and element, the index of the weight to gather; and for each weight, the indices of its
        copies.

    """
    n, dim = elements.shape
    # The transpose of an index array is its inverse; a sign stays with the entry it multiplies.
    place = torch.arange(dim, device=elements.device).expand_as(elements)
    signed = torch.where(elements < dim, place, place + dim)
    inverse = torch.empty_like(elements).scatter_(1, elements % dim, signed)
    backward = elements.mT * n + torch.arange(n, device=elements.device)
    return inverse.mT.contiguous(), backward.contiguous()
