r"""The full posterior over π, where the paper has its maximum.

Each hypothesis predicted every label before it was seen, with probability $p_{ik}$. If an observation follows
scheme k with probability $\pi_k$, then

$$\log p(\pi \mid D) = \log \mathrm{Dir}(\pi \mid \alpha) + \sum_i \log \sum_k \pi_k p_{ik} + \text{const}.$$

`variational` fits a Dirichlet to it, whose draws are differentiated implicitly; `nuts` samples it, for reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Dirichlet, kl_divergence
from torch.nn import functional as F

from invariantnet._system.torch_state import seeded, threads

SAMPLES = 4000
CHAINS = 2
STEPS = 1500
PER_STEP = 16
Method = Literal["variational", "nuts"]


@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """Samples of π, with what they are worth."""

    names: tuple[str, ...]
    samples: Float[np.ndarray, "chains draws schemes"]
    method: Method | Literal["neurons"]
    concentration: tuple[float, ...] | None = None
    """β of the Dirichlet that was fitted."""

    @classmethod
    def of_dirichlet(
        cls, names: Sequence[str], beta: Float[Tensor, " schemes"], method: Literal["variational", "neurons"]
    ) -> "MixturePosterior":
        """Independent samples of Dir(β)."""
        samples = Dirichlet(beta).sample((CHAINS, SAMPLES // CHAINS)).double().numpy()
        return cls(tuple(names), samples, method, tuple(beta.tolist()))

    @property
    def mean(self) -> Float[np.ndarray, " schemes"]:
        """Expected probability of each scheme."""
        return self.samples.mean((0, 1))

    def interval(self, level: float = 0.95) -> Float[np.ndarray, "schemes 2"]:
        """Credible intervals, as much left out below as above."""
        tails = [(1 - level) / 2, (1 + level) / 2]
        return np.quantile(self.samples.reshape(-1, len(self.names)), tails, axis=0).T

    @property
    def r_hat(self) -> Float[np.ndarray, " schemes"]:
        """Do the halves of all chains agree? 1 if they do (split R̂; Gelman et al. 2013)."""
        n = self.samples.shape[1] // 2
        halves = np.concatenate([self.samples[:, :n], self.samples[:, -n:]])
        within = halves.var(1, ddof=1).mean(0)
        between = n * halves.mean(1).var(0, ddof=1)
        return np.sqrt((n - 1) / n + between / (n * np.maximum(within, 1e-300)))

    @property
    def effective_sample_size(self) -> Float[np.ndarray, " schemes"]:
        """Independent samples that would be worth as much (Geyer's initial monotone sequence)."""
        chains, draws, schemes = self.samples.shape
        centred = self.samples - self.samples.mean(1, keepdims=True)
        size = 2 ** int(np.ceil(np.log2(2 * draws)))
        spectrum = np.fft.rfft(centred, size, axis=1)
        covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :draws].mean(0) / draws
        rho = covariance / np.maximum(covariance[:1], 1e-300)
        pairs = rho[: draws // 2 * 2].reshape(-1, 2, schemes).sum(1)
        positive = np.cumprod(pairs > 0, axis=0)
        total = (np.minimum.accumulate(pairs, axis=0) * positive).sum(0)
        return chains * draws / np.maximum(2 * total - 1, 1 / np.log10(chains * draws))


def log_density(
    pi: Float[Tensor, "*batch schemes"], p: Float[Tensor, "n schemes"], alpha: Float[Tensor, " schemes"]
) -> Float[Tensor, "*batch"]:
    """Up to a constant, on the simplex."""
    return torch.log(pi @ p.mT).sum(-1) + ((alpha - 1) * pi.log()).sum(-1)


def mixture_posterior(
    log_likelihood: Float[np.ndarray, "schemes n"],
    names: Sequence[str],
    *,
    weight: Float[np.ndarray, " n"] | None = None,
    alpha: float | Sequence[float] = 1.0,
    method: Method = "variational",
    seed: int = 0,
) -> MixturePosterior:
    """The posterior of π from every hypothesis' log probability of every label, which count by their weight."""
    if log_likelihood.shape[1] == 0:
        raise ValueError("no label was predicted by every hypothesis: pass more data.")
    concentration = torch.as_tensor(np.broadcast_to(np.asarray(alpha, float), len(names)).copy())
    # Constants of each example do not matter; the largest becomes 1.
    p = torch.from_numpy(np.exp(log_likelihood - log_likelihood.max(0)).T.copy())
    w = torch.ones(len(p), dtype=p.dtype) if weight is None else torch.from_numpy(weight)
    # So small a computation loses more by threads than it gains.
    with seeded(seed), threads(1):
        if method == "nuts":
            return MixturePosterior(tuple(names), _nuts(p, w, concentration, seed), "nuts")
        return MixturePosterior.of_dirichlet(names, _fit_dirichlet(p, w, concentration), "variational")


def _fit_dirichlet(
    p: Float[Tensor, "n schemes"], weight: Float[Tensor, " n"], alpha: Float[Tensor, " schemes"]
) -> Float[Tensor, " schemes"]:
    r"""β of the q = Dir(β) that maximises $E_q \sum_i w_i \log \sum_k \pi_k p_{ik} - \mathrm{KL}(q \| p)$."""
    # Start from the responsibilities of a few rounds of expectation and maximisation.
    pi = alpha / alpha.sum()
    for _ in range(50):
        pi = F.normalize((p * pi / (p @ pi)[:, None] * weight[:, None]).sum(0) + alpha, p=1, dim=0)
    log_beta = (alpha + 0.5 * weight.sum() * pi).log().requires_grad_()
    optimizer = torch.optim.Adam([log_beta], lr=0.03)
    prior = Dirichlet(alpha)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = 0.03 * (1 - step / STEPS)
        q = Dirichlet(log_beta.exp())
        draws = q.rsample((PER_STEP,)).clamp_min(1e-30)
        evidence = (torch.log(draws @ p.mT) * weight).sum(-1).mean() - kl_divergence(q, prior)
        optimizer.zero_grad()
        (-evidence).backward()
        optimizer.step()
    return log_beta.detach().exp()


def _nuts(
    p: Float[Tensor, "n schemes"], weight: Float[Tensor, " n"], alpha: Float[Tensor, " schemes"], seed: int
) -> Float[np.ndarray, "chains draws schemes"]:
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
            sampler = MCMC(NUTS(model), num_samples=SAMPLES // CHAINS, warmup_steps=500, disable_progbar=True)
            sampler.run()
            chains.append(sampler.get_samples()["pi"].numpy())
    return np.stack(chains)
