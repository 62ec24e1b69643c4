"""Probabilities of hypotheses from their predictions, by a Bayesian bootstrap."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

BOOTSTRAPS = 2000
"""Draws of example weights. With one network, the Monte Carlo error of a probability is at most 0.011."""

MIXES = 40
"""Draws of network weights, each shared by as many draws of example weights: averaging networks anew costs a pass
over all their predictions."""

CHUNK = 20_000_000
"""Random numbers held in memory at once: 160 MB in double precision."""


def mean_prediction(
    log_likelihood: Float[np.ndarray, "hypotheses networks n"],
) -> Float[np.ndarray, "hypotheses n"]:
    r"""Return $\log \frac1S \sum_s p_{iks}$: a hypothesis predicts with the average of its networks.

    Args:
        log_likelihood: Log probability that each network of each hypothesis gave to each label.

    Returns:
        Log probability that each hypothesis gave to each label.
    """
    return np.logaddexp.reduce(log_likelihood, axis=1) - np.log(log_likelihood.shape[1])


def bootstrap_probabilities(
    log_likelihood: Float[np.ndarray, "hypotheses networks examples"],
    log_prior: Float[np.ndarray, " hypotheses"],
    seed: int,
    weight: Float[np.ndarray, " examples"] | float = 1.0,
    draws: int = BOOTSTRAPS,
    spread: float | Float[np.ndarray, " kinds"] = 0.0,
    kinds: Sequence[int] | None = None,
) -> Float[np.ndarray, " hypotheses"]:
    r"""Compute a posterior that allows for finite evidence (pseudo-BMA+, Yao et al. 2018).

    The evidence is a finite sample: resample examples and networks. With $w$ and $u$ uniform on their simplices,
    average $\mathrm{softmax}_k(\log p_k + n \sum_i w_i \log \sum_s u_s p_{iks})$.

    Args:
        log_likelihood: Log probability that each network of each hypothesis gave to each label.
        log_prior: Log prior probability of each hypothesis.
        seed: Seed of the draws.
        weight: How often each example counts.
        draws: Number of draws of $w$.
        spread: Standard deviation of a further error of each log evidence, in nats; one for all kinds, or one
            for each.
        kinds: Number of the kind of each hypothesis: those of one kind share that error. By default, each has
            its own.

    Returns:
        Posterior probability of each hypothesis.
    """
    hypotheses, networks, examples = log_likelihood.shape
    rng = np.random.default_rng(seed)
    total = np.zeros(hypotheses)
    own = np.arange(hypotheses) if kinds is None else np.asarray(kinds)
    mixes = MIXES if networks > 1 else 1
    for count in _shares(draws, mixes):
        u = rng.dirichlet(np.ones(networks))
        mixed = np.logaddexp.reduce(log_likelihood + np.log(u)[:, None], axis=1) * weight
        for size in _shares(count, -(-count * examples // CHUNK)):
            w = rng.standard_exponential((size, examples))
            w *= examples / w.sum(1, keepdims=True)
            score = w @ mixed.T + log_prior
            if np.any(spread):
                score += (spread * rng.standard_normal((size, own.max() + 1)))[:, own]
            score -= score.max(1, keepdims=True)
            p = np.exp(score)
            total += (p / p.sum(1, keepdims=True)).sum(0)
    return total / draws


def _shares(total: int, parts: int) -> list[int]:
    """Split a number as evenly as possible."""
    return [len(part) for part in np.array_split(np.arange(total), max(1, parts))]
