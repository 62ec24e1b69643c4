"""A short Augerino (Benton et al. 2020): ranges of six affine generators, learned by gradient.

The width of every generator is learned together with the weights, on the training loss minus a multiple of their
norm, without which they would shrink to nothing. Images are moved by one random map a step; predictions
average over several.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.nn.standardize import Standardize
from invariantnet.training.config import Training

STRENGTH = 0.01
"""Factor of the norm of the widths: the middle one of the three that its authors offer, and their default."""
START = 0.3
"""Widths before training, before the map that makes them positive."""
COPIES = 20
"""Random copies that a prediction is averaged over."""

_GENERATORS = torch.tensor(
    [
        [[0, 0, 1], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 1], [0, 0, 0]],
        [[0, -1, 0], [1, 0, 0], [0, 0, 0]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
        [[1, 0, 0], [0, -1, 0], [0, 0, 0]],
        [[0, 1, 0], [1, 0, 0], [0, 0, 0]],
    ],
    dtype=torch.float32,
)
"""Shifts along both axes, a turn, a scaling and two shears, as matrices on homogeneous coordinates."""


class Augerino(nn.Module):
    """A network on images that are moved at random, by ranges that are learned.

    Args:
        module: Maps flat images to logits.
        standardize: Brings pixels to order one.
        side: Pixels of a side.
    """

    def __init__(self, module: nn.Module, standardize: Standardize, side: int) -> None:
        super().__init__()
        self.module, self.standardize, self.side = module, standardize, side
        self.raw = nn.Parameter(torch.full((len(_GENERATORS),), START))

    @property
    def widths(self) -> Float[Tensor, " generators"]:
        """Largest coefficient of every generator: two translations, rotation, scaling, two stretches."""
        return F.softplus(self.raw)

    def moved(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n dim"]:
        """Move every image by one random map."""
        coefficients = (2 * torch.rand(len(x), len(_GENERATORS)) - 1) * self.widths
        maps = torch.matrix_exp(torch.einsum("ng,gij->nij", coefficients, _GENERATORS))[:, :2]
        images = x.reshape(-1, 1, self.side, self.side)
        grid = F.affine_grid(maps, list(images.shape), align_corners=False)
        return F.grid_sample(images, grid, padding_mode="border", align_corners=False).flatten(1)

    def forward(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n classes"]:
        """Logits of one random copy in training, log of the mean probability of several else."""
        x = self.standardize(x)
        if self.training:
            return self.module(self.moved(x))
        logits = torch.stack([self.module(self.moved(x)).log_softmax(-1) for _ in range(COPIES)])
        return logits.logsumexp(0) - math.log(COPIES)


def fit_augerino(
    make: Callable[[], nn.Module], standardize: Standardize, x: Tensor, y: Tensor, config: Training, seed: int
) -> Augerino:
    """Train on all examples, as the final networks of the package are trained.

    Args:
        make: Makes the backbone.
        standardize: Brings pixels to order one.
        x: Flat images.
        y: Classes.
        config: Epochs, batches and rates.
        seed: Decides weights, batches and maps.
    """
    torch.manual_seed(seed)
    network = Augerino(make(), standardize, math.isqrt(x.shape[1])).train()
    decayed = [{"params": network.module.parameters(), "weight_decay": config.weight_decay}]
    optimizer = torch.optim.AdamW([*decayed, {"params": [network.raw], "weight_decay": 0.0}], config.learning_rate)
    steps = config.steps(len(x))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.learning_rate, total_steps=steps)
    for _ in range(config.all_epochs(len(x))):
        for batch in torch.randperm(len(x)).split(config.batch_sizes(len(x))):
            loss = F.cross_entropy(network(x[batch]), y[batch]) - STRENGTH * network.widths.norm()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network.eval()
