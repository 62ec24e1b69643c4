"""Apply affine maps to tensors, and collect copies of inputs."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from invariantnet.symmetries._affine import Affine


def stacked(copies: Iterator[Tensor], like: Tensor, count: int) -> Float[Tensor, "*batch count dim"]:
    """Stack copies before the last axis; without gradients into one array, so that memory holds them once."""
    if torch.compiler.is_exporting() or like.requires_grad:
        return torch.stack(list(copies), dim=-2)
    stacked = like.new_empty((*like.shape[:-1], count, like.shape[-1]))
    for k, copy in enumerate(copies):
        stacked[..., k, :] = copy
    return stacked


def warped(x: Float[Tensor, "batch *shape"], affine: Affine) -> Float[Tensor, "batch *shape"]:
    """Interpolate images, or sequences as images of one column per feature."""
    height, width = x.shape[-2:] if x.ndim > 2 else (x.shape[1], 1)
    indices, shares = affine.corners(int(height), int(width))
    index = torch.from_numpy(indices).to(x.device)
    share = torch.from_numpy(shares).to(x)
    planes = x.reshape(-1, height * width)
    if torch.compiler.is_exporting():
        # ONNX has no embedding bag: gather all four corners at once, which takes more memory.
        return (planes[:, index.long()] * share).sum(-1).reshape(x.shape)
    mixed = F.embedding_bag(index, planes.T.contiguous(), per_sample_weights=share, mode="sum")
    return mixed.T.reshape(x.shape)
