"""Average the outputs of any network."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.nn.placements._layers import check_first_layer
from invariantnet.nn.placements.base import Averaging, OverElements
from invariantnet.symmetries.draws import drawn_copies
from invariantnet.symmetries.ranges import AnySymmetry


class Outputs(OverElements):
    r"""$\log \sum_g \mu_\pi(g)\, \mathrm{softmax} f(T_g x)$, or the mean of outputs that are not logits.

    With a range, a training step may learn from a few random copies instead of all, so that it takes no more time
    and memory than these. Predictions average over all copies.
    """

    def __init__(self, module: nn.Module, symmetries: Sequence[AnySymmetry], averaging: Averaging) -> None:
        check_first_layer(module, symmetries[0], averaging.input_shape)
        super().__init__(module, symmetries, averaging)
        self.probabilities, self.drawn = averaging.probabilities, averaging.drawn

    def average(
        self, module: nn.Module, x: Float[Tensor, "*batch dim"], pi: Float[Tensor, "..."]
    ) -> Float[Tensor, "*batch outputs"]:
        """Call the network on every copy and average its outputs."""
        if self.training and self.range is not None and self.drawn is not None and self.drawn < len(self.haar):
            drawn = drawn_copies(self.range, x, self.drawn)
            weights = torch.full((self.drawn,), 1 / self.drawn, dtype=x.dtype, device=x.device)
            outputs = module(self.in_shape(drawn)).unflatten(0, drawn.shape[:-1])
        else:
            weights, used = self.weighted_elements(pi)
            copies, axes = self.transformed(x, used)
            outputs = module(copies).unflatten(0, axes)
        return self._averaged(outputs, weights)

    def finish(self, module: nn.Module, z: Float[Tensor, "n prepared"]) -> Float[Tensor, "n outputs"]:
        """Call the network on prepared copies and average its outputs."""
        if not self.prepares_copies:
            return super().finish(module, z)
        outputs = module(self.prepared_copies(z)).unflatten(0, (len(z), -1))
        return self._averaged(outputs, self.haar[:, 0])

    def _averaged(
        self, outputs: Float[Tensor, "*batch n outputs"], weights: Float[Tensor, " n"]
    ) -> Float[Tensor, "*batch outputs"]:
        if not self.probabilities:
            return self.mean(outputs, weights)
        return torch.logsumexp(outputs.log_softmax(-1) + weights.log()[:, None], dim=-2)

    def copies(self, module: nn.Module) -> int:
        """Every element makes one."""
        return len(self.haar)
