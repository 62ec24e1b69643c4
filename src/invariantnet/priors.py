r"""Priors over π, the probabilities of the weight-sharing schemes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Parametrisation = Literal["simplex", "logits"]
LARGEST = 1e30
"""A parameter beyond it, or below its inverse, leaves single precision."""


@dataclass(frozen=True)
class Dirichlet:
    r"""$\pi \sim \mathrm{Dir}(\alpha)$; for two schemes this is $p_1 \sim \mathrm{Beta}(\alpha_1, \alpha_2)$.

    A maximum of the density depends on the coordinates in which it is taken. On the `simplex` the exponents are
    $\alpha_k - 1$: below 1, the density is infinite at the corners, whatever the data say. In `logits` the
    Jacobian $\prod_k \pi_k$ of the softmax makes them $\alpha_k$, and the density is finite everywhere.

    >>> Dirichlet((2.0, 2.0, 2.0)).log_density(torch.tensor([1/3, 1/3, 1/3]).log())
    tensor(1.4917)
    """

    alpha: tuple[float, ...]
    parametrisation: Parametrisation = "simplex"

    def __post_init__(self) -> None:
        if len(self.alpha) < 2 or not all(1 / LARGEST <= a <= LARGEST for a in self.alpha):
            raise ValueError(f"α = {self.alpha} is no Dirichlet parameter: pass one positive number per scheme.")

    def log_density(self, log_pi: Float[Tensor, " schemes"]) -> Float[Tensor, ""]:
        r"""$\log p(\pi \mid \alpha)$, with the Jacobian where the coordinates are logits."""
        exponents = self._exponents(log_pi.dtype, log_pi.device)
        if self._has_flat_direction:
            # It says nothing, even where its probability is 0.
            log_pi = log_pi.masked_fill(exponents == 0, 0.0)
        return torch.dot(exponents, log_pi) + self._log_normaliser

    # The same at every step of a training.
    @lru_cache  # noqa: B019 - a few priors, and a few numbers each
    def _exponents(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        offset = 1.0 if self.parametrisation == "simplex" else 0.0
        return torch.tensor([a - offset for a in self.alpha], dtype=dtype, device=device)

    @cached_property
    def _has_flat_direction(self) -> bool:
        return self.parametrisation == "simplex" and 1.0 in self.alpha

    @cached_property
    def _log_normaliser(self) -> float:
        return math.lgamma(sum(self.alpha)) - sum(map(math.lgamma, self.alpha))


def as_prior(prior: Dirichlet | float | Sequence[float] | None, schemes: int) -> Dirichlet:
    """The prior for a number of schemes; by default the paper's: Jeffreys for two, Dir(2, …, 2) for more."""
    if isinstance(prior, Dirichlet):
        found = prior
    elif prior is None:
        found = Dirichlet((0.5,) * schemes if schemes == 2 else (2.0,) * schemes)
    elif isinstance(prior, Sequence):
        found = Dirichlet(tuple(float(a) for a in prior))
    else:
        found = Dirichlet((float(prior),) * schemes)
    if len(found.alpha) != schemes:
        raise ValueError(f"the prior has {len(found.alpha)} parameters, but there are {schemes} schemes.")
    return found


def alphas(alpha: float | Sequence[float], schemes: int) -> Float[np.ndarray, " schemes"]:
    """One α for each hypothesis, from one for all or one for each."""
    values = np.full(schemes, alpha, dtype=float) if np.ndim(alpha) == 0 else np.array(alpha, float)
    if values.shape != (schemes,) or not (values > 0).all() or not np.isfinite(values).all():
        raise ValueError(f"α = {alpha} is no prior for {schemes} hypotheses: pass positive numbers, one for each.")
    return values


def log_prior_of(alpha: float | Sequence[float], schemes: int) -> Float[np.ndarray, " schemes"]:
    r"""$\log E[\pi_k] = \log \alpha_k / \sum_j \alpha_j$ of a Dirichlet prior on π."""
    logs = np.log(alphas(alpha, schemes))
    return logs - np.logaddexp.reduce(logs)
