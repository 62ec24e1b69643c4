"""Networks whose predictions are calibrated on examples that their weights did not see."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from invariantnet.data.examples import Examples
from invariantnet.likelihoods import Calibration, Likelihood
from invariantnet.training.config import Training
from invariantnet.training.heat import Untrained, train_heat
from invariantnet.training.loop import predict, train

FOLDS = 5
"""A network keeps one of five examples for its calibration; networks of one hypothesis keep different ones."""


def split_fold(examples: Examples, fold: int) -> tuple[Examples, Examples]:
    """Split examples into those to learn from and those to calibrate on.

    Args:
        examples: The examples, in random order.
        fold: Which fifth is kept for the calibration; all fifths are equally large.

    Returns:
        The examples to learn from, and the others; a single example is learned from.
    """
    number = torch.arange(len(examples))
    if len(examples) < FOLDS:
        held = (number == fold % max(1, len(examples))) & (len(examples) > 1)
    else:
        held = (number % FOLDS == fold % FOLDS) & (number < len(examples) - len(examples) % FOLDS)
    return examples[~held], examples[held]


@dataclass(frozen=True, eq=False)
class Trained:
    """A network, and how its predictions become as sure as they should be.

    Args:
        network: The trained network, not calibrated yet.
        calibration: Factor and summand of its outputs.
    """

    network: nn.Module
    calibration: Calibration


def train_and_calibrate(
    make_network: Callable[[], nn.Module],
    examples: Examples,
    config: Training,
    seed: int,
    *,
    likelihood: Likelihood,
    on_step: Callable[[nn.Module], None] | None = None,
) -> Trained:
    """Train a network on four fifths of the examples, and find its calibration on the last fifth.

    Args:
        make_network: Makes the untrained network.
        examples: The examples, in random order.
        config: How to train.
        seed: Seed of everything that is drawn.
        likelihood: Log density of the targets.
        on_step: Called with the network after every step.

    Returns:
        The trained network with its calibration.
    """
    learned, held = split_fold(examples, fold=0)
    network, _ = train(make_network, learned, config, seed, likelihood=likelihood, on_step=on_step)
    return _calibrated(network, learned, held, config, likelihood)


def train_and_calibrate_heat(
    makers: Sequence[Callable[[], nn.Module]],
    examples: Examples,
    config: Training,
    seeds: Sequence[int],
    folds: Sequence[int],
    likelihood: Likelihood,
) -> list[Trained]:
    """Train a heat, each network on four fifths of the examples, and calibrate each on its last fifth.

    Args:
        makers: Each makes an untrained network; all have one architecture.
        examples: The examples, in random order.
        config: How to train.
        seeds: Seed of everything that is drawn for a network.
        folds: Which fifth each network is calibrated on.
        likelihood: Log density of the targets.

    Returns:
        The trained networks, each with its calibration.
    """
    parts = [split_fold(examples, fold) for fold in folds]
    untrained = [Untrained(make, part[0], seed) for make, part, seed in zip(makers, parts, seeds, strict=True)]
    networks = train_heat(untrained, config, likelihood)
    return [_calibrated(network, *part, config, likelihood) for network, part in zip(networks, parts, strict=True)]


def _calibrated(
    network: nn.Module, learned: Examples, held: Examples, config: Training, likelihood: Likelihood
) -> Trained:
    known = held.x if len(held) else learned.x[:1]
    outputs = predict(network, known, likelihood, samples=config.samples)[: len(held)]
    return Trained(network, likelihood.calibration(outputs.nan_to_num(), held.y, held.weight))
