"""The rules of a race: its blocks, who leads, and who is out."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

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


def with_bounds(scored: Scored, dropped: dict[int, int], beaten_by: dict[int, int]) -> Scored:
    """From where it was dropped a hypothesis is taken to do as well as the rival that it could not catch up with.

    That is an upper bound. The rival may have been dropped itself, later or for one further ahead.
    """
    bounded = scored.copy()
    for k in dropped:
        rival, until = k, 0
        while rival in dropped:
            rival, until = beaten_by[rival], max(until, dropped[rival])
            bounded[k, :, until:] = scored[rival, :, until:]
    return bounded


def hopeless(
    seen: Float[np.ndarray, "schemes n"],
    alive: list[int],
    orders: Sequence[int],
    margin: float,
    network_error: float = 0.0,
) -> dict[int, int]:
    """Those far behind one with no more symmetry, and whom. One with less may catch up with more data: it stays.

    Four standard errors are not enough to be far behind: of the sum over examples, and, where only one network of
    each has predicted, of what another one would say.
    """
    found = {}
    for k in alive:
        ahead = {}
        for j in alive:
            gap = seen[j] - seen[k]
            error = np.hypot(np.sqrt(len(gap)) * gap.std(), network_error)
            if j != k and orders[j] <= orders[k] and gap.sum() > margin + 4 * error:
                ahead[j] = gap.sum()
        if ahead:
            found[k] = max(ahead, key=ahead.__getitem__)
    return found


def error_of_networks(block: Scored) -> float:
    """Standard error, per label, of how far two hypotheses are apart by one network of each."""
    return float(np.sqrt(2 * block.sum(-1).var(1, ddof=1).mean())) / block.shape[-1]
