"""Trained networks that know what they do not know: an ensemble, Bayes by Backprop, or Laplace's approximation."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from torch import nn

from invariantnet._system.torch_state import seeded
from invariantnet.choices import Uncertainty
from invariantnet.data.examples import Examples
from invariantnet.inference.laplace import draw_last_layer
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.bayesian import bayesian, draw_weights, mean_weights
from invariantnet.nn.ensemble import Draws
from invariantnet.training.config import History, Training
from invariantnet.training.loop import train

MEMBERS = 5
DRAWS = 16


def trainings(uncertainty: Uncertainty) -> int:
    """Networks that are trained for it."""
    return MEMBERS if uncertainty == "ensemble" else 1


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
    """Train a network, and draw from the posterior of its weights.

    `ensemble` trains several from different starts; `bbb` learns a Gaussian for every weight; `laplace` takes the
    curvature at the trained weights, of the last layer.
    """

    def trained(make: Callable[[], nn.Module], config: Training, seed: int) -> tuple[nn.Module, History]:
        return train(make, examples, config, seed, likelihood=likelihood, on_step=on_step)

    if uncertainty == "bbb":
        # The prior of the weights takes the place of their decay.
        stochastic, history = trained(lambda: bayesian(make_network()), replace(config, weight_decay=0.0), seed)
        with seeded(seed):
            network = make_network().to(examples.device)
        network.load_state_dict(mean_weights(stochastic))
        return Draws(network, draw_weights(stochastic, DRAWS, seed), likelihood).eval(), history
    network, history = trained(make_network, config, seed)
    if uncertainty == "ensemble":
        others = [trained(make_network, config, _another(seed, i))[0] for i in range(1, MEMBERS)]
        return Draws.of_networks([network, *others], likelihood).eval(), history
    if uncertainty == "laplace":
        drawn = draw_last_layer(network, examples.x, likelihood, DRAWS, seed, examples.weight)
        return Draws(network, drawn, likelihood).eval(), history
    return network, history


def _another(seed: int, member: int) -> int:
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])
