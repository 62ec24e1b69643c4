"""Outputs that are as sure as they should be: an affine map after the last layer."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.likelihoods import Calibration


class Calibrate(nn.Module):
    """Multiplies each output and adds to it; stored with the weights of a network, and the identity until set.

    Args:
        outputs: Number of outputs; None if it is not known before a calibration is set or loaded.
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, outputs: int | None = None) -> None:
        super().__init__()
        self.any_number = outputs is None
        self.register_buffer("scale", torch.ones(outputs or 1))
        self.register_buffer("shift", torch.zeros(outputs or 1))

    @torch.no_grad()
    def set(self, calibration: Calibration) -> None:
        """Use a calibration from now on."""
        self.scale, self.shift = calibration.scale.to(self.scale), calibration.shift.to(self.shift)

    def forward(self, output: Float[Tensor, "*batch outputs"]) -> Float[Tensor, "*batch outputs"]:
        """Calibrate outputs."""
        return output * self.scale + self.shift

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take as many outputs as were stored, unless their number is known."""
        if self.any_number:
            for name in ("scale", "shift"):
                stored = state_dict.get(prefix + name)
                if isinstance(stored, Tensor) and stored.ndim == 1:
                    setattr(self, name, getattr(self, name).new_empty(len(stored)))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @torch.no_grad()
    def folded_into(self, last: nn.Linear) -> None:
        """Let a linear layer give calibrated outputs."""
        last.weight.mul_(self.scale[:, None])
        if last.bias is not None:
            last.bias.mul_(self.scale).add_(self.shift)
        elif bool(self.shift.any()):
            last.bias = nn.Parameter(self.shift.expand(last.out_features).clone())
