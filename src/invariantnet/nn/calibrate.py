"""Outputs that are as sure as they should be: an affine map after the last layer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.likelihoods import Calibration


class Calibrate(nn.Module):
    """Multiplies each output and adds to it; stored with the weights of a network, and the identity until set.

    Args:
        outputs: Number of outputs.
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(outputs))
        self.register_buffer("shift", torch.zeros(outputs))

    @torch.no_grad()
    def set(self, calibration: Calibration) -> None:
        """Use a calibration from now on."""
        self.scale, self.shift = calibration.scale.to(self.scale), calibration.shift.to(self.shift)

    def forward(self, output: Float[Tensor, "*batch outputs"]) -> Float[Tensor, "*batch outputs"]:
        """Calibrate outputs."""
        return output * self.scale + self.shift

    @torch.no_grad()
    def folded_into(self, last: nn.Linear) -> None:
        """Let a linear layer give calibrated outputs."""
        last.weight.mul_(self.scale[:, None])
        if last.bias is not None:
            last.bias.mul_(self.scale).add_(self.shift)
        elif bool(self.shift.any()):
            last.bias = nn.Parameter(self.shift.expand(last.out_features).clone())
