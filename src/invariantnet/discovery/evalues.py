r"""Evidence against "nothing is gained", valid at any finite number of examples.

An *e-value* is a number that is on average at most 1 if the null hypothesis holds, so that by Markov's
inequality it exceeds $1/\alpha$ with probability at most $\alpha$. It is the wealth of a gambler that starts
with 1 and bets at fair odds:

$$E = \sum_b w_b \prod_i \left(1 + b\, \frac{\min(\max(d_i, -c), c)}{c}\right),$$

with the gain $d_i$ of one prediction over another in nats, and fixed bets $0 < b < 1$ whose weights $w_b$ sum
to 1. Under the null hypothesis the clipped gain of an example is at most 0 on average, whatever came before, so
every factor is at most 1 on average. The sum over bets is the gambler that moves money to the bets that have
paid so far: it looks at the past only.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64

LARGEST_GAIN = 2.0
"""Nats at which a gain is clipped, so that no single label decides."""

BETS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Shares of the wealth that are put at stake: the best one is about mean gain over mean square, in units of
`LARGEST_GAIN`."""


def log_e_value(gains: Float64[np.ndarray, " n"]) -> float:
    """Log e-value of the null hypothesis that the clipped gains are on average at most 0.

    Args:
        gains: Log probability of each label by one prediction minus that by the other. Both predictions may use
            earlier labels only.

    Returns:
        The log of the wealth after all bets; log 20 = 3 or more is evidence at the level 0.05.

    Example:
        >>> round(log_e_value(np.full(100, 0.1)), 1), round(log_e_value(np.full(100, -0.1)), 1)
        (2.4, -0.8)
    """
    shares = np.clip(gains, -LARGEST_GAIN, LARGEST_GAIN) / LARGEST_GAIN
    wealth = np.log1p(np.outer(BETS, shares)).sum(axis=1)
    return float(np.logaddexp.reduce(wealth) - np.log(len(BETS)))


def e_bh(
    log_e_values: Sequence[float], alpha: float, weights: Sequence[float] | None = None
) -> Bool[np.ndarray, " hypotheses"]:
    """Reject null hypotheses so that the expected share of false rejections is at most alpha.

    The e-BH procedure rejects the k largest of m e-values, for the largest k with a k-th e-value of at least
    m / (alpha k). It holds however the e-values depend on one another.

    Args:
        log_e_values: One per null hypothesis.
        alpha: Level, between 0 and 1.
        weights: Chosen before the tests: how much more willingly one hypothesis is rejected than another. Their
            mean is made 1, so that the level still holds.

    Returns:
        Whether each null hypothesis is rejected.

    Example:
        >>> e_bh([5.0, 4.0, 0.0], alpha=0.05)
        array([ True,  True, False])
    """
    values = np.asarray(log_e_values, dtype=np.float64)
    if not len(values):
        return np.zeros(0, bool)
    if weights is not None:
        values = values + np.log(np.asarray(weights) / np.mean(weights))
    order = np.argsort(-values, kind="stable")
    ranks = np.arange(1, len(values) + 1)
    enough = values[order] >= np.log(len(values)) - np.log(alpha * ranks)
    rejected = np.zeros(len(values), bool)
    if enough.any():
        rejected[order[: ranks[enough].max()]] = True
    return rejected


def log_e_value_of_copies(log_density: Float64[np.ndarray, "n copies"]) -> float:
    """Log e-value of the null hypothesis that each input is as probable as any of its copies.

    "Which copy of the orbit is the original?" If all are equally probable, the share of the original in a density
    of all copies, times the number of copies, is exactly 1 on average, for any density that was fixed before. No
    network is involved.

    Args:
        log_density: Log density of each copy of each input, the original first; up to a constant per input.

    Returns:
        Large if originals can be told from copies: then the inputs do not have the symmetry.
    """
    copies = log_density.shape[1]
    share = log_density[:, 0] - np.logaddexp.reduce(log_density, axis=1)
    odds = np.expm1(share + np.log(copies))
    wealth = np.log1p(np.outer(BETS, odds)).sum(axis=1)
    return float(np.logaddexp.reduce(wealth) - np.log(len(BETS)))
