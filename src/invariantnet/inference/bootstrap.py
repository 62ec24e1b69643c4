"""Probabilities of hypotheses from their predictions, by a Bayesian bootstrap."""

import numpy as np
from jaxtyping import Float

BOOTSTRAPS = 2000
MIXES = 40
CHUNK = 20_000_000


def mean_prediction(log_likelihood: Float[np.ndarray, "schemes seeds n"]) -> Float[np.ndarray, "schemes n"]:
    r"""$\log \frac1S \sum_s p_{iks}$: a hypothesis predicts with the average of its networks."""
    return np.logaddexp.reduce(log_likelihood, axis=1) - np.log(log_likelihood.shape[1])


def bootstrap_probabilities(
    log_likelihood: Float[np.ndarray, "schemes seeds examples"],
    log_prior: Float[np.ndarray, " schemes"],
    seed: int,
    weight: Float[np.ndarray, " examples"] | float = 1.0,
    draws: int = BOOTSTRAPS,
) -> Float[np.ndarray, " schemes"]:
    r"""Posterior that knows its evidence is a finite sample (pseudo-BMA+, Yao et al. 2018).

    The sum over the examples seen would be other examples' sum on another day, and other networks' predictions.
    Bayesian bootstrap: average $\mathrm{softmax}_k(\log p_k + n \sum_i w_i \log \sum_s u_s p_{iks})$ over $w$ and
    $u$ uniform on their simplices.
    """
    schemes, seeds, examples = log_likelihood.shape
    rng = np.random.default_rng(seed)
    total = np.zeros(schemes)
    mixes = MIXES if seeds > 1 else 1
    for count in _shares(draws, mixes):
        u = rng.dirichlet(np.ones(seeds))
        mixed = np.logaddexp.reduce(log_likelihood + np.log(u)[:, None], axis=1) * weight
        for size in _shares(count, -(-count * examples // CHUNK)):
            w = rng.standard_exponential((size, examples))
            w *= examples / w.sum(1, keepdims=True)
            score = w @ mixed.T + log_prior
            score -= score.max(1, keepdims=True)
            p = np.exp(score)
            total += (p / p.sum(1, keepdims=True)).sum(0)
    return total / draws


def _shares(total: int, parts: int) -> list[int]:
    """A number, split as evenly as it goes."""
    return [len(part) for part in np.array_split(np.arange(total), max(1, parts))]
