"""Numbers."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from invariantnet.likelihoods.base import (
    GRID,
    LOG_TEMPERATURE,
    LOG_TEMPERATURE_SPREAD,
    Calibration,
    log_normal_prior,
    most_probable,
)

DEGREES = 5.0
"""Degrees of freedom of the errors of numbers: heavy tails, so that one outlier costs little, with a variance."""
SCALE_WEIGHT = 0.1
"""Weight of the errors' size in what training maximises: the means learn as if all errors were alike."""
LOWEST_LOG_SCALE, HIGHEST_LOG_SCALE = -7.0, 3.0
"""Bounds of the logarithm of an error's scale, in standard deviations of all targets: a density stays bounded."""
BACKGROUND_SCALE = 3.0
"""Spread of the background prediction of numbers, in standard deviations of all targets: none is a surprise."""
LOG_SCALE, LOG_SCALE_SPREAD = math.log(0.7), 1.0
"""Prior of the logarithm of an error's scale: half of the variance is noise, give or take a factor of three."""
NATS_FOR_INPUTS = 3.0
"""Nats by which errors that depend on the input must predict better before they are preferred."""


@dataclass(frozen=True)
class StudentT:
    r"""The outputs are the means of one or more numbers, then the logarithms of the scales of their errors.

    Errors have Student's t distribution with 5 degrees of freedom; targets are of order one.

    >>> output = torch.tensor([[2.0, 0.0]])
    >>> StudentT().score(output, torch.tensor([2.0]))
    1.0
    """

    averages_probabilities: bool = False

    @property
    def error_of_unit_scale(self) -> float:
        """Standard deviation of an error whose scale is one."""
        return math.sqrt(DEGREES / (DEGREES - 2))

    def log_prob(self, output: Float[Tensor, "n outputs"], y: Float[Tensor, "n *k"]) -> Float[Tensor, " n"]:
        """Compute the log density of every target.

        Args:
            output: One row of means and log scales per target.
            y: The targets: a number each, or a row of numbers.

        Returns:
            One number of nats per target, summed over its numbers.
        """
        mean, log_scale = _mean_and_log_scale(output)
        return _log_student(_as_rows(y) - mean, log_scale).sum(-1)

    def objective(self, output: Float[Tensor, "n outputs"], y: Float[Tensor, "n *k"]) -> Float[Tensor, " n"]:
        """Compute the negative squared error, and a little of the log density of its size.

        A network that learns its own σ by the log density explains away what it has not learned yet.

        Args:
            output: One row of means and log scales per target.
            y: The targets: a number each, or a row of numbers.

        Returns:
            One number per target, which training maximises.
        """
        mean, log_scale = _mean_and_log_scale(output)
        error = _as_rows(y) - mean
        sizes = -log_scale - 0.5 * (error.detach() * torch.exp(-log_scale)).square()
        return (SCALE_WEIGHT * sizes - error.square()).sum(-1)

    def calibration(
        self,
        output: Float[Tensor, "n outputs"],
        y: Float[Tensor, "n *k"],
        weight: Float[Tensor, " n"] | None,
    ) -> Calibration:
        """Find the scale of the errors: one for all inputs, or the network's own times a factor.

        Args:
            output: One row of means and log scales per target.
            y: The targets; the network did not learn from them.
            weight: Weight of each of them; None if all count alike.

        Returns:
            Factor and summand of each log scale: factor 0 for one scale, 1 for the network's own. Means stay.
        """
        mean, log_scale = _mean_and_log_scale(output.double().cpu())
        error = _as_rows(y).double().cpu() - mean
        factors, shifts = [], []
        for k in range(mean.shape[1]):
            alike = torch.stack([_log_student(error[:, k], torch.full_like(error[:, k], a)) for a in GRID])
            own = torch.stack([_log_student(error[:, k], log_scale[:, k] + a) for a in GRID])
            constant, value = most_probable(alike, log_normal_prior(LOG_SCALE, LOG_SCALE_SPREAD), weight)
            log_prior = log_normal_prior(LOG_TEMPERATURE, LOG_TEMPERATURE_SPREAD)
            factor, of_inputs = most_probable(own, log_prior, weight)
            follows = of_inputs > value + NATS_FOR_INPUTS
            factors.append(float(follows))
            shifts.append(factor if follows else constant)
        ones, zeros = [1.0] * len(factors), [0.0] * len(factors)
        return Calibration(torch.tensor([*ones, *factors]), torch.tensor([*zeros, *shifts]))

    def background(self, output: Float[Tensor, "n outputs"], y: Float[Tensor, "n *k"]) -> Float[Tensor, " n"]:
        """Expect any number within a few standard deviations of all targets.

        Args:
            output: One row per target; it does not matter.
            y: The targets: a number each, or a row of numbers.

        Returns:
            One number of nats per target.
        """
        rows = _as_rows(y)
        return _log_student(rows, torch.full_like(rows, math.log(BACKGROUND_SCALE))).sum(-1)

    def guess(
        self, past: Float[Tensor, "m *k"], weight: Float[Tensor, " m"], y: Float[Tensor, "n *k"]
    ) -> Float[Tensor, "n outputs"]:
        """Predict the mean of the earlier targets, with their standard deviation as its error.

        Args:
            past: Earlier targets.
            weight: Weight of each of them.
            y: The targets to predict; only their number matters.

        Returns:
            One row of means and log scales per target, all equal.
        """
        rows, share = _as_rows(past).double(), (weight / weight.sum()).double()
        mean = share @ rows
        spread = (share @ (rows - mean).square()).sqrt()
        return self._output(mean, spread).expand(len(y), -1)

    def score(self, output: Float[Tensor, "n outputs"], y: Float[Tensor, "n *k"]) -> float:
        """Compute the share of the variance that the means explain, averaged over the numbers of a target.

        Args:
            output: One row of means and log scales per target.
            y: The targets: a number each, or a row of numbers.

        Returns:
            The share; 1 is perfect, and below 0 the mean of the targets predicts better.
        """
        mean, rows = _mean_and_log_scale(output)[0], _as_rows(y)
        variance = rows.double().var(0, correction=0)
        error = (mean - rows).double().square().mean(0)
        explained = torch.where(variance > 0, 1 - error / variance.clamp_min(1e-300), (error == 0).double())
        return float(explained.mean())

    def normalised(self, output: Tensor) -> Tensor:
        """Return the outputs as they are: means and errors can be combined.

        Args:
            output: One row of means and log scales per input.

        Returns:
            The same.
        """
        return output

    def combined(self, draws: Float[Tensor, "draws n outputs"]) -> Float[Tensor, "n outputs"]:
        """Take the mean and the variance of the mixture of all predictions.

        Args:
            draws: Means and log scales; the first axis counts the networks.

        Returns:
            One row of means and log scales per input.
        """
        means, _ = _mean_and_log_scale(draws)
        mean = means.mean(0)
        variance = (self.error(draws).square() + means.square()).mean(0) - mean.square()
        # Rounding can make the variance of equal predictions negative.
        return self._output(mean, variance.clamp_min(0).sqrt())

    def curvature_roots(self, output: Float[Tensor, "n outputs"]) -> Float[Tensor, "columns n outputs"]:
        r"""Compute $\sqrt{(\nu+1)/(\nu+3)}\, e/s$ for a mean, $\sqrt{2\nu/(\nu+3)}\, e$ for a log scale.

        Args:
            output: One row of means and log scales per input.

        Returns:
            One row per column and input.
        """
        _, log_scale = _mean_and_log_scale(output)
        of_means = math.sqrt((DEGREES + 1) / (DEGREES + 3)) * torch.exp(-log_scale)
        of_scales = torch.full_like(log_scale, math.sqrt(2 * DEGREES / (DEGREES + 3)))
        return torch.diag_embed(torch.cat([of_means, of_scales], dim=-1)).movedim(-2, 0)

    def mean(self, output: Float[Tensor, "*n outputs"]) -> Float[Tensor, "*n k"]:
        """Return the means, one per number of a target.

        Args:
            output: Outputs of a network.

        Returns:
            The means, in units of the targets.
        """
        return _mean_and_log_scale(output)[0]

    def error(self, output: Float[Tensor, "*n outputs"]) -> Float[Tensor, "*n k"]:
        """Compute the standard deviation of every prediction.

        Args:
            output: Outputs of a network.

        Returns:
            One standard deviation per number, in units of the targets.
        """
        return torch.exp(_mean_and_log_scale(output)[1]) * math.sqrt(DEGREES / (DEGREES - 2))

    def _output(self, mean: Float[Tensor, "*n k"], error: Float[Tensor, "*n k"]) -> Float[Tensor, "*n outputs"]:
        """Find the outputs that give this mean and this standard deviation: the inverse of `error`."""
        scale = error / math.sqrt(DEGREES / (DEGREES - 2))
        return torch.cat([mean, scale.clamp_min(math.exp(LOWEST_LOG_SCALE)).log()], dim=-1)


def _mean_and_log_scale(output: Float[Tensor, "*n outputs"]) -> tuple[Tensor, Tensor]:
    mean, log_scale = output.tensor_split(2, dim=-1)
    return mean, log_scale.clamp(LOWEST_LOG_SCALE, HIGHEST_LOG_SCALE)


def _as_rows(y: Float[Tensor, "n *k"]) -> Float[Tensor, "n k"]:
    return y if y.ndim == 2 else y[:, None]


def _log_student(difference: Tensor, log_scale: Tensor) -> Tensor:
    constant = math.lgamma((DEGREES + 1) / 2) - math.lgamma(DEGREES / 2) - 0.5 * math.log(DEGREES * math.pi)
    squared = (difference * torch.exp(-log_scale)).square() / DEGREES
    return constant - log_scale - (DEGREES + 1) / 2 * torch.log1p(squared)
