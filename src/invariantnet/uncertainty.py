"""Final networks that know what they do not know: an ensemble, Bayes by Backprop, or Laplace's approximation."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from invariantnet._system.torch_state import seeded
from invariantnet.choices import Uncertainty
from invariantnet.data.examples import Examples
from invariantnet.inference.laplace import draw_last_layer
from invariantnet.likelihoods import Calibration, Likelihood
from invariantnet.nn.bayesian import bayesian, draw_weights, mean_weights
from invariantnet.nn.ensemble import Ensemble
from invariantnet.nn.symmetrized import Symmetrized
from invariantnet.training.calibrated import FOLDS, train_and_calibrate
from invariantnet.training.config import History, Training
from invariantnet.training.loop import train

NETWORKS = 5
"""Networks of an ensemble. Five bring most of the gain of many (Lakshminarayanan et al. 2017)."""
DRAWS = 16
"""Draws from a posterior of weights. Each costs a forward pass; 16 give their spread to within about a fifth."""


def training_steps(config: Training, examples: int, uncertainty: Uncertainty) -> int:
    """Count the steps that `train_uncertain` takes.

    Args:
        config: How a network is trained.
        examples: Number of examples.
        uncertainty: How uncertainty is estimated.

    Returns:
        The number of steps of all trainings.
    """
    steps = config.steps(examples)
    to_calibrate = config.steps(examples - len(range(0, examples, FOLDS)) or 1)
    return to_calibrate + steps * (NETWORKS if uncertainty == "ensemble" else 1)


def train_uncertain(
    make_network: Callable[[], nn.Module],
    examples: Examples,
    config: Training,
    seed: int,
    *,
    uncertainty: Uncertainty,
    likelihood: Likelihood,
    on_step: Callable[[nn.Module], None] | None = None,
) -> tuple[nn.Module, History]:
    """Train a network together with the uncertainty of its weights.

    Args:
        make_network: Makes an untrained network.
        examples: What to learn from.
        config: How to train.
        seed: Seed of everything that is drawn.
        uncertainty: `none` trains one network; `ensemble` several, with different initial weights; `bbb` learns a
            Gaussian for every weight; `laplace` takes a Gaussian from the curvature at the trained weights of the
            last layer.
        likelihood: Log density of the targets.
        on_step: Called with the network after every step.

    Returns:
        The network, or an `Ensemble` of networks, in evaluation mode; and the history of the first training.
    """

    def train_one(make: Callable[[], nn.Module], config: Training, seed: int) -> tuple[nn.Module, History]:
        return train(make, examples, config, seed, likelihood=likelihood, on_step=on_step)

    if uncertainty == "bbb":
        # The prior of the weights takes the place of their decay.
        without_decay = replace(config, weight_decay=0.0)
        calibration = _calibration(
            lambda: bayesian(make_network()), examples, without_decay, seed, likelihood, on_step
        )
        stochastic, history = train_one(lambda: bayesian(make_network()), without_decay, seed)
        with seeded(seed):
            network = make_network().to(examples.device)
        network.load_state_dict(mean_weights(stochastic))
        if isinstance(network, Symmetrized):
            network.calibrate.set(calibration)
        return Ensemble(network, draw_weights(stochastic, DRAWS, seed), likelihood).eval(), history
    calibration = _calibration(make_network, examples, config, seed, likelihood, on_step)
    network, history = train_one(make_network, config, seed)
    networks = [network]
    if uncertainty == "ensemble":
        networks += [train_one(make_network, config, _seed_of(seed, i))[0] for i in range(1, NETWORKS)]
    for each in networks:
        if isinstance(each, Symmetrized):
            each.calibrate.set(calibration)
    if uncertainty == "ensemble":
        return Ensemble.from_networks(networks, likelihood).eval(), history
    if uncertainty == "laplace":
        drawn = draw_last_layer(network, examples.x, likelihood, DRAWS, seed, examples.weight)
        return Ensemble(network, drawn, likelihood).eval(), history
    return network, history


def _calibration(
    make_network: Callable[[], nn.Module],
    examples: Examples,
    config: Training,
    seed: int,
    likelihood: Likelihood,
    on_step: Callable[[nn.Module], None] | None,
) -> Calibration:
    """Find how sure a network may be that is trained like this, from a fifth of the examples."""
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
    return train_and_calibrate(
        make_network, examples[order], config, seed, likelihood=likelihood, on_step=on_step
    ).calibration


def _seed_of(seed: int, network: int) -> int:
    """Derive the seed of a further network of an ensemble."""
    return int(np.random.SeedSequence([seed, network]).generate_state(1)[0])
