"""A heat: networks that are trained together, side by side as one network if they have one architecture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from invariantnet._system.torch_state import seeded
from invariantnet.data.examples import Examples
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.side_by_side import SideBySide
from invariantnet.objectives import LogPosterior
from invariantnet.training.config import Training
from invariantnet.training.loop import TrainingRun, train
from invariantnet.training.preparation import prepared

BATCHES = 0
"""Seed of the batches that the networks of a heat share: each network has its examples in an order of its own."""


@dataclass(frozen=True, eq=False)
class Untrained:
    """A network of a heat, before training.

    Args:
        make_network: Makes it, untrained.
        examples: What it learns from.
        seed: Decides its initial weights and the order of its examples.
    """

    make_network: Callable[[], nn.Module]
    examples: Examples
    seed: int


class LogPosteriors(LogPosterior):
    """The sum of the objectives of a heat: each network's gradient is that of its own objective."""

    def terms(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> dict[str, Tensor]:
        """Estimate the objective on a batch, which has one example of every network in each row."""
        each = self.likelihood.objective(self.network(x).flatten(0, 1), y.flatten(0, 1))
        # A network that diverged must not end the training of the others.
        each = each.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        weighted = each if weight is None else weight.flatten() * each
        return {"log_likelihood": weighted.sum() / len(x)}


@dataclass(frozen=True, eq=False)
class Heat:
    """A heat whose networks are trained side by side.

    Args:
        networks: The whole networks.
        trainable: What is left to train of each, where copies of inputs are made beforehand.
        joint: The same as one network.
        examples: One example of every network in each row.
        objective: What training maximises.
    """

    networks: Sequence[nn.Module]
    trainable: Sequence[nn.Module]
    joint: SideBySide
    examples: Examples
    objective: LogPosteriors

    @classmethod
    def of(cls, untrained: Sequence[Untrained], config: Training, likelihood: Likelihood) -> "Heat | None":
        """Make networks, and combine them if they can be trained side by side.

        Args:
            untrained: The networks.
            config: How all of them are trained.
            likelihood: Log density of the targets.

        Returns:
            The heat; None if they have to be trained one after another.
        """
        if len({len(u.examples) for u in untrained}) > 1 or config.validation or config.precision != "32-true":
            return None
        networks, learned = zip(*map(_ready, untrained), strict=True)
        trainable, examples = zip(*map(prepared, networks, learned), strict=True)
        # What is left to train has no inputs or symmetries of its own, so that networks differ in weights alone.
        alike = all(rest is not whole for rest, whole in zip(trainable, networks, strict=True))
        joint = SideBySide.of(trainable) if alike else None
        if joint is None:
            return None
        return cls(networks, trainable, joint, _rows(examples), LogPosteriors(joint, len(examples[0]), likelihood))


def train_heat(untrained: Sequence[Untrained], config: Training, likelihood: Likelihood) -> list[nn.Module]:
    """Train the networks of a heat: side by side where that is possible, or else one after another.

    Args:
        untrained: The networks, with equally many examples each.
        config: How all of them are trained; without a validation split if side by side.
        likelihood: Log density of the targets.

    Returns:
        The trained networks in evaluation mode.
    """
    heat = Heat.of(untrained, config, likelihood) if len(untrained) > 1 else None
    if heat is None:
        return [train(u.make_network, u.examples, config, u.seed, likelihood=likelihood)[0] for u in untrained]
    with seeded(BATCHES):
        TrainingRun(heat.objective, heat.examples, heat.examples[:0], config, None, ()).run()
    heat.joint.copy_to(heat.trainable)
    return [network.eval() for network in heat.networks]


def _ready(untrained: Untrained) -> tuple[nn.Module, Examples]:
    """The untrained network, and its examples in random order."""
    device = untrained.examples.device
    with seeded(untrained.seed):
        order = torch.randperm(len(untrained.examples)).to(device)
        return untrained.make_network().to(device), untrained.examples[order]


def _rows(examples: Sequence[Examples]) -> Examples:
    """Combine the examples of all networks: one of each in every row."""
    inputs = [e.x for e in examples if isinstance(e.x, Tensor)]
    weights = [e.weight for e in examples if e.weight is not None]
    return Examples(
        torch.stack(inputs, dim=1),
        torch.stack([e.y for e in examples], dim=1),
        torch.stack(weights, dim=1) if weights else None,
    )
