"""Networks on the features of all copies of an input, as they are compared with a pretrained body."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.nn.standardize import Standardize


class MeanOverCopies(nn.Module):
    r"""$\log \frac{1}{|S|} \sum_{c \in S} \mathrm{softmax} f(z_c)$: one head on every copy of a symmetry.

    Args:
        head: From the features of one copy to outputs.
        copies: Number of copies among the features.
        used: Numbers of the copies of the symmetry.
        standardize: Brings the features of one copy to order one.
        probabilities: Whether outputs are logits; if not, the outputs themselves are averaged.
    """

    used: Tensor

    def __init__(
        self,
        head: nn.Module,
        copies: int,
        used: Sequence[int],
        standardize: Standardize,
        *,
        probabilities: bool,
    ) -> None:
        super().__init__()
        self.head, self.copies, self.standardize, self.probabilities = head, copies, standardize, probabilities
        self.register_buffer("used", torch.tensor(used), persistent=False)

    def forward(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n outputs"]:
        """Average the predictions over the copies of the symmetry."""
        return self.from_prepared(self.prepare(x))

    def can_prepare(self, numbers: int) -> bool:
        """Whether `prepare` fits into memory: it takes no more numbers than the inputs have."""
        return True

    def prepare(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n used"]:
        """Take the copies of the symmetry, in units of order one: nothing here is learned."""
        return self.standardize(x.unflatten(-1, (self.copies, -1))[:, self.used]).flatten(1)

    def from_prepared(self, z: Float[Tensor, "n used"]) -> Float[Tensor, "n outputs"]:
        """Average the predictions from copies that are prepared."""
        count = len(self.used)
        outputs = self.head(z.reshape(count * len(z), -1)).unflatten(0, (len(z), count))
        if not self.probabilities:
            return outputs.mean(1)
        return outputs.log_softmax(-1).logsumexp(1) - math.log(count)
