"""Several small networks, trained as one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from invariantnet._system.torch_state import seeded
from invariantnet.data.examples import Examples
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.stack import Stack
from invariantnet.objectives import LogPosterior
from invariantnet.training.config import Training
from invariantnet.training.loop import TrainingRun, train
from invariantnet.training.preparation import prepared

BATCHES = 0
"""Seed of the batches that networks share: each network has its examples in an order of its own."""


@dataclass(frozen=True, eq=False)
class Pupil:
    """One network that is trained beside others.

    Args:
        make_network: Makes it, untrained.
        examples: What it learns from.
        seed: Decides its initial weights and the order of its examples.
    """

    make_network: Callable[[], nn.Module]
    examples: Examples
    seed: int


class LogPosteriors(LogPosterior):
    """The sum of the objectives of several networks: each network's gradient is that of its own objective."""

    def terms(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> dict[str, Tensor]:
        """Estimate the objective on a batch, which has one example of every network in each row."""
        each = self.likelihood.objective(self.network(x).flatten(0, 1), y.flatten(0, 1))
        # A network that diverged must not end the training of the others.
        each = each.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        weighted = each if weight is None else weight.flatten() * each
        return {"log_likelihood": weighted.sum() / len(x)}


@dataclass(frozen=True, eq=False)
class Company:
    """Networks that are trained as one.

    Args:
        networks: The whole networks.
        trainable: What is left to train of each, where copies of inputs are made beforehand.
        stack: The same as one network.
        examples: One example of every network in each row.
        objective: What training maximises.
    """

    networks: Sequence[nn.Module]
    trainable: Sequence[nn.Module]
    stack: Stack
    examples: Examples
    objective: LogPosteriors

    @classmethod
    def of(cls, pupils: Sequence[Pupil], config: Training, likelihood: Likelihood) -> "Company | None":
        """Make networks and put them side by side.

        Args:
            pupils: The networks.
            config: How all of them are trained.
            likelihood: Log density of the targets.

        Returns:
            The company; None if they have to be trained one after another.
        """
        if (
            len({len(pupil.examples) for pupil in pupils}) > 1
            or config.validation
            or config.precision != "32-true"
        ):
            return None
        networks, learned = zip(*map(_ready, pupils), strict=True)
        trainable, examples = zip(*map(prepared, networks, learned), strict=True)
        # What is left to train has no inputs or symmetries of its own, so that networks differ in weights alone.
        alike = all(rest is not whole for rest, whole in zip(trainable, networks, strict=True))
        stack = Stack.of(trainable) if alike else None
        if stack is None:
            return None
        return cls(networks, trainable, stack, _rows(examples), LogPosteriors(stack, len(examples[0]), likelihood))


def train_side_by_side(pupils: Sequence[Pupil], config: Training, likelihood: Likelihood) -> list[nn.Module]:
    """Train several networks as one, where they have one architecture, or one after another.

    Args:
        pupils: The networks, with equally many examples each.
        config: How all of them are trained; without a validation split if as one.
        likelihood: Log density of the targets.

    Returns:
        The trained networks in evaluation mode.
    """
    company = Company.of(pupils, config, likelihood) if len(pupils) > 1 else None
    if company is None:
        return [train(p.make_network, p.examples, config, p.seed, likelihood=likelihood)[0] for p in pupils]
    with seeded(BATCHES):
        TrainingRun(company.objective, company.examples, company.examples[:0], config, None, ()).run()
    company.stack.copy_to(company.trainable)
    return [network.eval() for network in company.networks]


def _ready(pupil: Pupil) -> tuple[nn.Module, Examples]:
    """The untrained network, and its examples in random order."""
    device = pupil.examples.device
    with seeded(pupil.seed):
        order = torch.randperm(len(pupil.examples)).to(device)
        return pupil.make_network().to(device), pupil.examples[order]


def _rows(examples: Sequence[Examples]) -> Examples:
    """Put the examples of all networks side by side: one of each in every row."""
    inputs = [e.x for e in examples if isinstance(e.x, Tensor)]
    weights = [e.weight for e in examples if e.weight is not None]
    return Examples(
        torch.stack(inputs, dim=1),
        torch.stack([e.y for e in examples], dim=1),
        torch.stack(weights, dim=1) if weights else None,
    )
