"""Labelled examples as they pass through training and inference."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from invariantnet.data.arrays import DiskArray


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs with their targets and weights.

    Args:
        x: Flat inputs, in memory or on disk; for a heat, one input for each of its networks.
        y: Targets: class numbers, real numbers, or rows of real numbers.
        weight: Weight of each example, 1 on average; None if all count alike.

    Example:
        >>> examples = Examples(torch.zeros(5, 2), torch.arange(5))
        >>> len(examples[1:3]), examples[1:3].y
        (2, tensor([1, 2]))
    """

    x: Float[Tensor, "n *networks dim"] | DiskArray
    y: Shaped[Tensor, "n *k"]
    weight: Float[Tensor, "n *networks"] | None = None

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, which: Any) -> "Examples":
        """Select examples by a slice, by their numbers, or by a mask."""
        return Examples(self.x[which], self.y[which], None if self.weight is None else self.weight[which])

    @property
    def device(self) -> torch.device:
        """Device of the inputs; for inputs on disk, the device that they are read to."""
        return self.x.device

    def weighted_mean(self, values: Float[Tensor, " n"]) -> Float[Tensor, ""]:
        """Weighted mean of one value per example."""
        return values.mean() if self.weight is None else (self.weight * values).mean()
