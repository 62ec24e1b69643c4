"""What a likelihood must know, and how the surest honest prediction is found."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

LOG_TEMPERATURE, LOG_TEMPERATURE_SPREAD = 0.5, 0.7
"""Prior of the logarithm of a temperature: networks are mostly too sure, seldom by a factor of six."""
GRID = torch.arange(-6.0, 3.0, 0.05)
"""Logarithms of temperatures and scales that are tried: a step changes predictions by a few per cent."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Factor and summand of each output that make predictions as sure as they should be.

    Args:
        scale: Factor of each output.
        shift: Summand of each output.
    """

    scale: Float[Tensor, " outputs"]
    shift: Float[Tensor, " outputs"]


@runtime_checkable
class Likelihood(Protocol):
    """The log density of targets, given the outputs of a network."""

    @property
    def averages_probabilities(self) -> bool:
        """Whether outputs are logits, so that the average over copies is one of probabilities."""

    def log_prob(self, output: Tensor, y: Tensor) -> Tensor:
        """Compute the log density of every target.

        Args:
            output: One row of outputs per target.
            y: The targets.

        Returns:
            One number of nats per target.
        """

    def objective(self, output: Tensor, y: Tensor) -> Tensor:
        """Compute what training maximises: the log density, or what leads to better predictions of it.

        Args:
            output: One row of outputs per target.
            y: The targets.

        Returns:
            One number per target.
        """

    def calibration(self, output: Tensor, y: Tensor, weight: Tensor | None) -> Calibration:
        """Find how sure the predictions should be, from targets that the network did not learn from.

        Args:
            output: One row of outputs per target.
            y: The targets.
            weight: Weight of each of them; None if all count alike.

        Returns:
            The most probable calibration; its prior decides if there are no targets.
        """

    def background(self, output: Tensor, y: Tensor) -> Tensor:
        """Compute the log density of every target under a prediction that uses neither inputs nor examples.

        Args:
            output: One row of outputs per target; only its shape and type matter.
            y: The targets.

        Returns:
            One number of nats per target.
        """

    def guess(self, past: Tensor, weight: Tensor, y: Tensor) -> Tensor:
        """Predict targets from earlier targets alone, without any input.

        Args:
            past: Earlier targets.
            weight: Weight of each of them.
            y: The targets to predict; only their number and range matter.

        Returns:
            One row of outputs per target.
        """

    def score(self, output: Tensor, y: Tensor) -> float:
        """Tell how good predictions are; 1 is perfect.

        Args:
            output: One row of outputs per target.
            y: The targets.

        Returns:
            The score.
        """

    def normalised(self, output: Tensor) -> Tensor:
        """Bring outputs into the form in which the predictions of several networks can be combined.

        Args:
            output: One row of outputs per input.

        Returns:
            Outputs of the same shape that say the same.
        """

    def combined(self, draws: Tensor) -> Tensor:
        """Combine the predictions of several networks.

        Args:
            draws: Normalised outputs; the first axis counts the networks.

        Returns:
            One row of normalised outputs per input.
        """

    def curvature_roots(self, output: Tensor) -> Tensor:
        r"""Compute columns $r$ with $\sum_r r r^\top$ the Fisher information of every output.

        Args:
            output: One row of outputs per input.

        Returns:
            One row per column and input.
        """


def log_normal_prior(mean: float, spread: float) -> Float[Tensor, " values"]:
    """Log density, up to a constant, of every value of the grid under a Gaussian.

    Args:
        mean: Mean of the Gaussian.
        spread: Its standard deviation.

    Returns:
        One number of nats per value.
    """
    return -0.5 * ((GRID.double() - mean) / spread).square()


def most_probable(
    log_likelihood: Float[Tensor, "values n"], log_prior: Float[Tensor, " values"], weight: Tensor | None
) -> tuple[float, float]:
    """Find the value of the grid with the largest posterior density.

    Args:
        log_likelihood: Log density of every target under every value of the grid.
        log_prior: Log prior density of every value.
        weight: Weight of each target; None if all count alike.

    Returns:
        The value, and the logarithm of its density.
    """
    each = log_likelihood if weight is None else log_likelihood * weight.double().cpu()
    total = each.sum(1) + log_prior
    best = int(total.argmax())
    return float(GRID[best]), float(total[best])
