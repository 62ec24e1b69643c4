"""The rules of a race: its blocks, who leads, and who is out."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from invariantnet.inference.posterior import mean_prediction

Scored = Float[np.ndarray, "schemes seeds n"]
"""Log probability that each network of each hypothesis gave to each label."""
GROWTH, FEW = 4.0, 1000


def block_ends(n: int, first_block: int | None = None, growth: float | None = None) -> list[int]:
    """Sizes of the training sets, each `growth` times the one before; the last is all of the data."""
    first = first_block or min(500, max(16, n // 16), n // 2)
    if not 0 < first < n:
        raise ValueError(f"a first block of {first} leaves none of {n} examples to predict: pass more data.")
    # Few examples cost little, and every bit of them is needed.
    growth = growth or (GROWTH if n >= FEW else 2.0)
    ends = [first]
    while ends[-1] < n:
        ends.append(min(n, max(ends[-1] + 1, round(ends[-1] * growth))))
    # A last block much smaller than its training set would cost a full training for few predictions.
    if len(ends) > 2 and n - ends[-2] < 0.25 * ends[-2]:
        del ends[-2]
    return ends


def with_bounds(
    scored: Scored, counts: Float[np.ndarray, " n"], alive: list[int], dropped: dict[int, int]
) -> Scored:
    """From where it was dropped a hypothesis is taken to do as well as the leader: an upper bound."""
    leader = alive[int((mean_prediction(scored[alive]) * counts).sum(1).argmax())]
    bounded = scored.copy()
    for k, until in dropped.items():
        bounded[k, :, until:] = scored[leader, :, until:]
    return bounded


def hopeless(
    seen: Float[np.ndarray, "schemes n"],
    alive: list[int],
    orders: Sequence[int],
    margin: float,
    network_error: float = 0.0,
) -> list[int]:
    """Those far behind one with no more symmetry. One with less may catch up when there is more data: it stays.

    Four standard errors are not enough to be far behind: of the sum over examples, and, where only one network of
    each has predicted, of what another one would say.
    """
    found = []
    for k in alive:
        rivals = [j for j in alive if j != k and orders[j] <= orders[k]]
        gaps = [seen[j] - seen[k] for j in rivals]
        if any(gap.sum() > margin + 4 * np.hypot(np.sqrt(len(gap)) * gap.std(), network_error) for gap in gaps):
            found.append(k)
    return found


def error_of_networks(block: Scored) -> float:
    """Standard error, per label, of how far two hypotheses are apart by one network of each."""
    return float(np.sqrt(2 * block.sum(-1).var(1, ddof=1).mean())) / block.shape[-1]
