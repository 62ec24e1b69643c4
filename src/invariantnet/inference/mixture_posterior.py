r"""The full posterior over π, where the paper has only its maximum.

Each hypothesis predicted every label before the label was seen, with probability $p_{ik}$. If an observation
follows scheme k with probability $\pi_k$, then

$$\log p(\pi \mid D) = \log \mathrm{Dir}(\pi \mid \alpha) + \sum_i \log \sum_k \pi_k p_{ik} + \text{const}.$$

`variational` fits a Dirichlet to it, with implicit gradients through its draws; `nuts` samples it, for reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Dirichlet, kl_divergence
from torch.nn import functional as F

from invariantnet._system.torch_state import seeded, threads
from invariantnet.choices import MixtureMethod, require_choice

SAMPLES = 4000
"""Samples of π over all chains: 100 of them lie beyond each end of a 95 % interval."""

CHAINS = 2
"""Chains of samples: the fewest that can be compared with one another."""

WARMUP = 500
"""Samples of each NUTS chain that only adapt its step size and mass, and are discarded."""

STEPS = 1500
"""Adam steps that fit the Dirichlet."""

RATE = 0.03
"""Adam's first learning rate for log β; it falls to 0 over all steps, so that the last draws hardly move β."""

DRAWS = 16
"""Draws of π that each step averages over: they make its gradient a quarter as noisy."""

ROUNDS = 50
"""Rounds of expectation maximisation that find where Adam starts."""

TINY = 1e-300
"""Bounds a variance from below, so that a constant sample divides by no zero."""


@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """Samples of π, and how much they are worth."""

    names: tuple[str, ...]
    """Names of the hypotheses."""
    samples: Float[np.ndarray, "chains draws schemes"]
    """Samples of π, chain by chain."""
    method: MixtureMethod | Literal["neurons"]
    """How the posterior was found; `neurons` is the method of `fit_heldout`."""
    concentration: tuple[float, ...] | None = None
    """Parameters β of the fitted Dirichlet; None if the posterior was sampled."""

    @classmethod
    def of_dirichlet(
        cls, names: Sequence[str], beta: Float[Tensor, " schemes"], method: Literal["variational", "neurons"]
    ) -> "MixturePosterior":
        """Draw independent samples of Dir(β).

        Args:
            names: Names of the hypotheses.
            beta: Parameters of the Dirichlet.
            method: How they were found.

        Returns:
            The samples, split into `CHAINS` chains.
        """
        samples = Dirichlet(beta).sample((CHAINS, SAMPLES // CHAINS)).double().numpy()
        return cls(tuple(names), samples, method, tuple(beta.tolist()))

    @property
    def mean(self) -> Float[np.ndarray, " schemes"]:
        """Expected probability of each scheme."""
        return self.samples.mean((0, 1))

    def interval(self, level: float = 0.95) -> Float[np.ndarray, "schemes 2"]:
        """Compute central credible intervals.

        Args:
            level: Probability that an interval contains.

        Returns:
            The lower and upper end for each scheme.
        """
        tails = [(1 - level) / 2, (1 + level) / 2]
        return np.quantile(self.samples.reshape(-1, len(self.names)), tails, axis=0).T

    @property
    def r_hat(self) -> Float[np.ndarray, " schemes"]:
        """Split R̂ of each scheme: 1 if the halves of all chains agree (Gelman et al. 2013)."""
        n = self.samples.shape[1] // 2
        halves = np.concatenate([self.samples[:, :n], self.samples[:, -n:]])
        within = halves.var(1, ddof=1).mean(0)
        between = n * halves.mean(1).var(0, ddof=1)
        return np.sqrt((n - 1) / n + between / (n * np.maximum(within, TINY)))

    @property
    def effective_sample_size(self) -> Float[np.ndarray, " schemes"]:
        """Number of independent samples worth as much as these (Geyer's initial monotone sequence)."""
        chains, draws, schemes = self.samples.shape
        centred = self.samples - self.samples.mean(1, keepdims=True)
        size = 2 ** int(np.ceil(np.log2(2 * draws)))
        spectrum = np.fft.rfft(centred, size, axis=1)
        covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :draws].mean(0) / draws
        rho = covariance / np.maximum(covariance[:1], TINY)
        pairs = rho[: draws // 2 * 2].reshape(-1, 2, schemes).sum(1)
        positive = np.cumprod(pairs > 0, axis=0)
        total = (np.minimum.accumulate(pairs, axis=0) * positive).sum(0)
        return chains * draws / np.maximum(2 * total - 1, 1 / np.log10(chains * draws))


def mixture_posterior(
    log_likelihood: Float[np.ndarray, "schemes n"],
    names: Sequence[str],
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    alpha: float | Sequence[float] = 1.0,
    method: MixtureMethod = "variational",
    seed: int = 0,
) -> MixturePosterior:
    """Find the posterior over π from the predictions of every hypothesis.

    Args:
        log_likelihood: Log probability that each hypothesis gave to each label before seeing it.
        names: Names of the hypotheses.
        weight: How often each label counts; once by default.
        alpha: Parameters of the Dirichlet prior: one for all hypotheses, or one for each.
        method: Fit a Dirichlet, or sample with NUTS.
        seed: Seed of everything that is drawn.

    Returns:
        Samples of π.

    Raises:
        ValueError: There are no labels, the method is unknown, or pyro is missing for NUTS.
    """
    require_choice("method", method, get_args(MixtureMethod))
    if log_likelihood.shape[1] == 0:
        raise ValueError("no label was predicted by every hypothesis: pass more data.")
    concentration = torch.as_tensor(np.broadcast_to(np.asarray(alpha, float), len(names)).copy())
    # A constant factor per example does not matter: scale the largest probability to 1, against underflow.
    p = torch.from_numpy(np.exp(log_likelihood - log_likelihood.max(0)).T.copy())
    w = torch.ones(len(p), dtype=p.dtype) if weight is None else torch.from_numpy(weight)
    # The computation is too small to gain from several threads.
    with seeded(seed), threads(1):
        if method == "nuts":
            return MixturePosterior(tuple(names), _nuts(p, w, concentration, seed), "nuts")
        return MixturePosterior.of_dirichlet(names, _fit_dirichlet(p, w, concentration), "variational")


def _fit_dirichlet(
    p: Float[Tensor, "n schemes"], weight: Float[Tensor, " n"], alpha: Float[Tensor, " schemes"]
) -> Float[Tensor, " schemes"]:
    r"""Find β of the q = Dir(β) that maximises $E_q \sum_i w_i \log \sum_k \pi_k p_{ik} - \mathrm{KL}(q \| p)$."""
    log_beta = (alpha + 0.5 * weight.sum() * _most_probable(p, weight, alpha)).log().requires_grad_()
    optimizer = torch.optim.Adam([log_beta], lr=RATE)
    prior = Dirichlet(alpha)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
        q = Dirichlet(log_beta.exp())
        pi = q.rsample((DRAWS,)).clamp_min(1e-30)
        bound = (torch.log(pi @ p.mT) * weight).sum(-1).mean() - kl_divergence(q, prior)
        optimizer.zero_grad()
        (-bound).backward()
        optimizer.step()
    return log_beta.detach().exp()


def _most_probable(
    p: Float[Tensor, "n schemes"], weight: Float[Tensor, " n"], alpha: Float[Tensor, " schemes"]
) -> Float[Tensor, " schemes"]:
    """Approximate the most probable π by a few rounds of expectation maximisation."""
    pi = alpha / alpha.sum()
    for _ in range(ROUNDS):
        pi = F.normalize((p * pi / (p @ pi)[:, None] * weight[:, None]).sum(0) + alpha, p=1, dim=0)
    return pi


def _nuts(
    p: Float[Tensor, "n schemes"], weight: Float[Tensor, " n"], alpha: Float[Tensor, " schemes"], seed: int
) -> Float[np.ndarray, "chains draws schemes"]:
    """Sample the posterior with NUTS."""
    try:
        import pyro
        from pyro.infer import MCMC, NUTS
    except ImportError:
        raise ValueError("pyro is missing: pip install 'invariantnet[bayes]'.") from None

    def model() -> None:
        pi = pyro.sample("pi", pyro.distributions.Dirichlet(alpha))
        pyro.factor("labels", (torch.log(pi @ p.mT) * weight).sum())

    chains = []
    for chain in range(CHAINS):
        with seeded(seed + chain):
            sampler = MCMC(NUTS(model), num_samples=SAMPLES // CHAINS, warmup_steps=WARMUP, disable_progbar=True)
            sampler.run()
            chains.append(sampler.get_samples()["pi"].numpy())
    return np.stack(chains)
