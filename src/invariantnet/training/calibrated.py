"""Networks whose predictions are calibrated on examples that their weights did not see."""

from collections.abc import Callable

import torch
from torch import nn

from invariantnet.data.examples import Examples
from invariantnet.likelihoods import Calibration, Likelihood
from invariantnet.training.config import History, Training
from invariantnet.training.loop import predict, train

FOLDS = 5
"""A network keeps one of five examples for its calibration; networks of one hypothesis keep different ones."""


def split_fold(examples: Examples, fold: int) -> tuple[Examples, Examples]:
    """Split examples into those to learn from and those to calibrate on.

    Args:
        examples: The examples, in random order.
        fold: Which fifth is kept for the calibration.

    Returns:
        The examples to learn from, and the others; a single example is learned from.
    """
    held = torch.arange(len(examples)) % FOLDS == fold % FOLDS
    if bool(held.all()):
        held[:] = False
    return examples[~held], examples[held]


def train_and_calibrate(
    make_network: Callable[[], nn.Module],
    examples: Examples,
    config: Training,
    seed: int,
    *,
    likelihood: Likelihood,
    fold: int = 0,
    on_step: Callable[[nn.Module], None] | None = None,
) -> tuple[nn.Module, Calibration, History]:
    """Train a network on four fifths of the examples, and find its calibration on the last fifth.

    Args:
        make_network: Makes the untrained network.
        examples: The examples, in random order.
        config: How to train.
        seed: Seed of everything that is drawn.
        likelihood: Log density of the targets.
        fold: Which fifth is kept for the calibration.
        on_step: Called with the network after every step.

    Returns:
        The trained network, not calibrated yet; its calibration; and what happened epoch by epoch.
    """
    learned, held = split_fold(examples, fold)
    network, history = train(make_network, learned, config, seed, likelihood=likelihood, on_step=on_step)
    known = held.x if len(held) else learned.x[:1]
    outputs = predict(network, known, likelihood, samples=config.samples)[: len(held)]
    return network, likelihood.calibration(outputs.nan_to_num(), held.y, held.weight), history
