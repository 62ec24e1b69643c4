"""The weights of a layer, moved by every element of a group."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


class Moved(torch.autograd.Function):
    """One gather there, and one back for the gradient, so that nothing is scattered."""

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor, there: Tensor, back: Tensor, signed: bool) -> Tensor:
        """An input's weights side by side, so that whole rows are moved."""
        return _signed(weight.mT.contiguous(), signed).index_select(0, there.flatten()).unflatten(0, there.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Only the way back is needed."""
        _, _, back, ctx.signed = inputs
        ctx.save_for_backward(back)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        """The sum over the copies of every weight."""
        (back,) = ctx.saved_tensors
        return F.embedding_bag(back, _signed(grad, ctx.signed).flatten(0, 1), mode="sum").mT, None, None, None


def _signed(x: Float[Tensor, "dim *rest"], signed: bool) -> Float[Tensor, "dims *rest"]:
    """Where an index beyond the inputs means a negative one."""
    return torch.cat([x, -x]) if signed else x


def ways(elements: Int[Tensor, "n dim"]) -> tuple[Int[Tensor, "dim n"], Int[Tensor, "dim n"]]:
    """Which weight each copy of an input has; and for every weight, where its copies are."""
    n, dim = elements.shape
    # The transpose of an index array is its inverse; a sign stays with the entry it multiplies.
    place = torch.arange(dim, device=elements.device).expand_as(elements)
    signed = torch.where(elements < dim, place, place + dim)
    inverse = torch.empty_like(elements).scatter_(1, elements % dim, signed)
    back = elements.mT * n + torch.arange(n, device=elements.device)
    return inverse.mT.contiguous(), back.contiguous()
