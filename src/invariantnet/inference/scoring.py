"""How well one network predicts one block."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from invariantnet.data.examples import Examples
from invariantnet.inference.prices import PRICED, predict_moved
from invariantnet.likelihoods import Likelihood
from invariantnet.symmetries.group import Group
from invariantnet.training.config import Training
from invariantnet.training.loop import predict, train

MakeNetwork = Callable[[Group], nn.Module]
"""Makes the untrained network of a symmetry."""


@dataclass(frozen=True, eq=False)
class BlockScore:
    """How one network predicted its block."""

    log_likelihood: Float[np.ndarray, " n"]
    """Log probability of every label in the block."""
    accuracy: dict[str, float]
    """Accuracy on inputs of the block moved by each symmetry, by its name."""


@dataclass(frozen=True)
class Scorer:
    """Trains networks and scores what they predict.

    Args:
        make_network: Makes the network of a symmetry.
        likelihood: Log density of the targets.
        training: How every network is trained.
        doubt: Share of a background prediction mixed into every network's, so that one surprise costs a bounded
            number of nats.
    """

    make_network: MakeNetwork
    likelihood: Likelihood
    training: Training
    doubt: float

    def score(
        self, symmetry: Group, past: Examples, block: Examples, seed: int, moved_by: Sequence[Group] = ()
    ) -> BlockScore:
        """Train a network on the past and score its predictions of the block.

        Args:
            symmetry: What the network is invariant to.
            past: Examples to learn from.
            block: Examples to predict.
            seed: Decides the network's start and its batches.
            moved_by: Symmetries by which inputs of the block are moved to measure accuracy.

        Returns:
            The score of the block.
        """
        network, _ = train(
            lambda: self.make_network(symmetry), past, self.training, seed, likelihood=self.likelihood
        )
        outputs = predict(network, block.x, self.likelihood)
        if not bool(outputs.isfinite().all()):
            warnings.warn(
                f"a network of {symmetry.name} diverged on {len(past)} examples, so this hypothesis falls behind: "
                "look for extreme values in the data, or use another backbone.",
                RuntimeWarning,
                stacklevel=2,
            )
        shown = block[:PRICED]
        accuracy = {
            g.name: self.likelihood.score(predict_moved(network, g, shown.x, self.likelihood), shown.y)
            for g in moved_by
        }
        return BlockScore(self.log_likelihood(outputs, block.y), accuracy)

    def guess(self, past: Examples, block: Examples) -> Float[np.ndarray, " block"]:
        """Log probability of a block's labels, predicted from earlier labels alone."""
        weight = torch.ones(len(past), device=past.y.device) if past.weight is None else past.weight
        output = self.likelihood.guess(past.y, weight, block.y)
        return self.log_likelihood(output, block.y)

    def log_likelihood(
        self, output: Float[Tensor, "n outputs"], y: Shaped[Tensor, " n"]
    ) -> Float[np.ndarray, " n"]:
        r"""$\log\big((1-\epsilon)\, p(y_i \mid x_i) + \epsilon\, p_0(y_i)\big)$ for each example."""
        output = output.double()
        y = y.double() if y.is_floating_point() else y
        # A network that diverged predicts nothing: its hypothesis loses, and the others go on.
        known = self.likelihood.log_prob(output, y).nan_to_num(nan=-math.inf) + math.log1p(-self.doubt)
        unknown = self.likelihood.background(output, y) + (math.log(self.doubt) if self.doubt else -math.inf)
        return torch.logaddexp(known, unknown).cpu().numpy()

    def diverged(self, log_likelihood: Float[np.ndarray, " n"]) -> bool:
        """Whether a network never beats the background prediction."""
        return bool(log_likelihood.max() <= (math.log(self.doubt) if self.doubt else -math.inf))
