r"""Priors over π, one probability per symmetry."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from invariantnet.choices import Parametrisation

LARGEST_ALPHA = 1e30
"""Largest parameter, and the inverse of the smallest: beyond, densities leave single precision."""


@dataclass(frozen=True)
class Dirichlet:
    r"""$\pi \sim \mathrm{Dir}(\alpha)$; for two symmetries this is $\pi_1 \sim \mathrm{Beta}(\alpha_1, \alpha_2)$.

    A maximum of the density depends on the coordinates in which it is taken. On the `simplex` the exponents are
    $\alpha_k - 1$: below 1, the density is infinite at the corners, whatever the data say. In `logits` the
    Jacobian $\prod_k \pi_k$ of the softmax makes them $\alpha_k$, and the density is finite everywhere.

    Args:
        alpha: One positive number per symmetry.
        parametrisation: The coordinates of the density.

    Raises:
        ValueError: If there are fewer than two numbers, or one is not positive or leaves single precision.

    >>> Dirichlet((2.0, 2.0, 2.0)).log_density(torch.tensor([1/3, 1/3, 1/3]).log())
    tensor(1.4917)
    """

    alpha: tuple[float, ...]
    parametrisation: Parametrisation = "simplex"

    def __post_init__(self) -> None:
        if len(self.alpha) < 2 or not all(1 / LARGEST_ALPHA <= a <= LARGEST_ALPHA for a in self.alpha):
            raise ValueError(f"α = {self.alpha} is no Dirichlet parameter: pass one positive number per symmetry.")

    def log_density(self, log_pi: Float[Tensor, " symmetries"]) -> Float[Tensor, ""]:
        r"""Compute $\log p(\pi \mid \alpha)$, with the Jacobian if the coordinates are logits.

        Args:
            log_pi: Logarithm of π.

        Returns:
            The log density.
        """
        exponents = self._exponents(log_pi.dtype, log_pi.device)
        if self._has_flat_direction:
            # An exponent of 0 contributes nothing, even where the probability is 0 and its logarithm infinite.
            log_pi = log_pi.masked_fill(exponents == 0, 0.0)
        return torch.dot(exponents, log_pi) + self._log_normaliser

    # Cached, because every training step needs the same tensor.
    @lru_cache  # noqa: B019 - a process uses few priors, and each holds a few numbers
    def _exponents(self, dtype: torch.dtype, device: torch.device) -> Float[Tensor, " symmetries"]:
        offset = 1.0 if self.parametrisation == "simplex" else 0.0
        return torch.tensor([a - offset for a in self.alpha], dtype=dtype, device=device)

    @cached_property
    def _has_flat_direction(self) -> bool:
        return self.parametrisation == "simplex" and 1.0 in self.alpha

    @cached_property
    def _log_normaliser(self) -> float:
        return math.lgamma(sum(self.alpha)) - sum(map(math.lgamma, self.alpha))


def as_prior(prior: Dirichlet | float | Sequence[float] | None, symmetries: int) -> Dirichlet:
    """Make a prior from what a layer was given.

    Args:
        prior: The prior itself, one α for all symmetries, or one for each. None is the prior of the paper:
            Jeffreys' for two symmetries, Dir(2, …, 2) for more.
        symmetries: Number of symmetries.

    Returns:
        The prior.

    Raises:
        ValueError: If the number of parameters is not the number of symmetries.
    """
    if isinstance(prior, Dirichlet):
        found = prior
    elif prior is None:
        found = Dirichlet((0.5,) * symmetries if symmetries == 2 else (2.0,) * symmetries)
    elif isinstance(prior, Sequence):
        found = Dirichlet(tuple(float(a) for a in prior))
    else:
        found = Dirichlet((float(prior),) * symmetries)
    if len(found.alpha) != symmetries:
        raise ValueError(
            f"the prior has {len(found.alpha)} parameters, but there are {symmetries} symmetries: "
            "pass one for each."
        )
    return found


def alphas(alpha: float | Sequence[float], hypotheses: int) -> Float[np.ndarray, " hypotheses"]:
    """Give every hypothesis its α.

    Args:
        alpha: One α for all hypotheses, or one for each.
        hypotheses: Number of hypotheses.

    Returns:
        One α per hypothesis.

    Raises:
        ValueError: If the numbers are not positive, or not as many as hypotheses.
    """
    values = np.full(hypotheses, alpha, dtype=float) if np.ndim(alpha) == 0 else np.array(alpha, float)
    if values.shape != (hypotheses,) or not (values > 0).all() or not np.isfinite(values).all():
        raise ValueError(
            f"α = {alpha} is no prior for {hypotheses} hypotheses: pass positive numbers, one for each."
        )
    return values


def log_prior_of(alpha: float | Sequence[float], hypotheses: int) -> Float[np.ndarray, " hypotheses"]:
    r"""Compute $\log E[\pi_k] = \log \alpha_k / \sum_j \alpha_j$ of a Dirichlet prior on π.

    Args:
        alpha: One α for all hypotheses, or one for each.
        hypotheses: Number of hypotheses.

    Returns:
        The log prior probability of each hypothesis.
    """
    logs = np.log(alphas(alpha, hypotheses))
    return logs - np.logaddexp.reduce(logs)
