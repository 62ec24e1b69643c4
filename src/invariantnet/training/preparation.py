"""The part of a network that has no parameters, computed once and not in every training step."""

import math
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from invariantnet.data.arrays import blocks
from invariantnet.data.examples import Examples


@runtime_checkable
class Prepares(Protocol):
    """A network whose first part has no parameters."""

    def can_prepare(self, numbers: int) -> bool:
        """Whether the first part of all inputs, which have this many numbers together, fits into memory."""

    def prepare(self, x: Tensor) -> Tensor:
        """Compute the first part, one row per input."""

    def from_prepared(self, z: Tensor) -> Tensor:
        """Compute the rest from rows that are prepared."""


class _FromPrepared(nn.Module):
    """The rest of a network whose first part is computed already."""

    def __init__(self, network: Prepares) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Tensor) -> Tensor:
        return self.network.from_prepared(z)


@torch.no_grad()
def prepared(network: nn.Module, examples: Examples) -> tuple[nn.Module, Examples]:
    """Compute the first part of a network once, if it has no parameters.

    Args:
        network: The network to train.
        examples: What it learns from.

    Returns:
        What is left to train, and the examples that it takes; both as they are where nothing can be prepared.
    """
    first, *rest = network if type(network) is nn.Sequential and len(network) else [network]
    if not isinstance(first, Prepares) or not first.can_prepare(math.prod(examples.x.shape)):
        return network, examples
    z = torch.cat([first.prepare(part) for part in blocks(examples.x)])
    left = _FromPrepared(first)
    return nn.Sequential(left, *rest) if rest else left, Examples(z, examples.y, examples.weight)
