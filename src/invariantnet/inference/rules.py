"""The rules of a race: its blocks, which hypotheses are hopeless, and what a dropped one could still reach."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Scored = Float[np.ndarray, "hypotheses networks n"]
"""Log probability that each network of each hypothesis gave to each label."""

LARGEST_FIRST_BLOCK, USUAL_FIRST_BLOCK, SMALLEST_FIRST_BLOCK = 500, 32, 16
"""Examples that are only learned from: 1/16 of all, or 1/8 of fewer than 2,000, within these bounds. Of few
examples it is 1/4, up to the second bound: networks that learned from less hardly know anything, at equal cost."""
GROWTH, SMALL_GROWTH, SMALL = 4.0, 2.0, 2000
"""Each training set is 4 times the one before it, or twice with fewer than 2,000 examples: few examples cost
little, and every one of them is needed."""
SHORTEST_LAST_BLOCK = 0.25
"""A last block smaller than this share of its training set costs a full training for few predictions."""
MOST_COMPARED = 32_000
"""Examples of a comparison at most, drawn at random. The networks of its last block learn from 8,000 of them; a
block that learns from four times as many would take three times as long as all before it."""
ENOUGH = 5_000
"""Labels after which a race ends if all others are far behind the favourite of two blocks in a row. Of 60,000
examples, most comparisons then end after 7,500 predictions, by networks that learned from at most 2,000."""
FAR_BEHIND = 4.0
"""Standard errors that a gap must exceed, beyond the margin, before a symmetry is hopeless."""
MODEL_MARGIN, MODEL_FAR_BEHIND = 3.0, 2.0
"""Nats, and standard errors beyond them, that a model must be behind another with the same symmetry before it is
dropped: a model that predicts almost as well decides nothing about symmetries."""
MATURE = 64
"""Models are judged by networks that learned from this many examples, or from a fifth of all: with fewer, small
models lead that others overtake later."""
SCREEN_MARGIN, SCREEN_FAR_BEHIND = 5.0, 3.0
"""The same for a model without symmetry after one network, before it is dropped for every symmetry."""
EARLY, LEFT = 300, 0.2
"""Labels after whose prediction a clear verdict drops hypotheses: the more were predicted before a block, the
fewer networks are left for it, down to this part: the best symmetry and those with fewer elements go on to the
end. Of 3,000 rotated digits (seed 0) 0.22 were trained in all, and 0.09 in the last block."""
LEARNED_MARGIN, LEARNED_ERRORS = 2.0, 2.0
"""Nats, and standard errors beyond them, by which the best hypothesis must beat the guess from labels alone."""


@dataclass(frozen=True)
class Block:
    """One step of a race: networks learn from the examples before `start` and predict those up to `end`."""

    number: int
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Drop:
    """Why a hypothesis left the race."""

    rival: int
    """Index of the hypothesis that it could not catch up with."""
    labels: int
    """How many labels it had predicted."""


def plan_blocks(n: int, first_block: int | None = None, growth: float | None = None) -> list[Block]:
    """Split n examples into growing blocks.

    Args:
        n: Number of examples.
        first_block: Examples that are only learned from; by default 1/16 of all, or 1/8 of fewer than 2,000,
            at least 32 or 1/4, within 16 and 500, at most half.
        growth: Ratio of successive training sets; by default 4, or 2 with fewer than 2,000 examples.

    Returns:
        The blocks to predict, in order; the last ends at n, or at `MOST_COMPARED`.

    Raises:
        ValueError: If the first block leaves nothing to predict.
    """
    n = min(n, MOST_COMPARED)
    share = n // 16 if n >= SMALL else n // 8
    least = max(SMALLEST_FIRST_BLOCK, min(USUAL_FIRST_BLOCK, n // 4))
    first = first_block or min(LARGEST_FIRST_BLOCK, max(least, share), n // 2)
    if not 0 < first < n:
        raise ValueError(f"a first block of {first} leaves none of {n} examples to predict: pass more data.")
    growth = growth or (GROWTH if n >= SMALL else SMALL_GROWTH)
    ends = [first]
    while ends[-1] < n:
        ends.append(min(n, max(ends[-1] + 1, round(ends[-1] * growth))))
    if len(ends) > 2 and n - ends[-2] < SHORTEST_LAST_BLOCK * ends[-2]:
        del ends[-2]
    return [Block(number, start, end) for number, (start, end) in enumerate(itertools.pairwise(ends))]


def may_end(block: Block, blocks: Sequence[Block]) -> bool:
    """Whether a race may end with this block if its verdict is sure: after two blocks and enough labels.

    Args:
        block: One of the blocks.
        blocks: All of them.

    Returns:
        True if it may.
    """
    return block.number > 0 and block.end - blocks[0].start >= ENOUGH


def expected_share(predicted: int) -> float:
    """Share of the hypotheses that are expected to be left, beside what is dropped in any case.

    Args:
        predicted: Labels that were predicted.

    Returns:
        The share.
    """
    return min(1.0, max(LEFT, EARLY / max(1, predicted)))


def with_bounds(scored: Scored, drops: dict[int, Drop]) -> Scored:
    """Fill in what dropped hypotheses did not predict.

    From where it was dropped, a hypothesis is taken to do as well as the rival that it could not catch up with:
    an upper bound. The rival may itself have been dropped later.
    """
    bounded = scored.copy()
    for k in drops:
        rival, until = k, 0
        while rival in drops:
            rival, until = drops[rival].rival, max(until, drops[rival].labels)
            bounded[k, :, until:] = scored[rival, :, until:]
    return bounded


def far_behind(gap: Float[np.ndarray, " n"], margin: float, network_error: float) -> bool:
    """Whether a gap is above margin + 4 standard errors, over examples and networks.

    Args:
        gap: How much more log probability a rival gave to each label.
        margin: Nats that the gap must exceed in any case.
        network_error: Standard error of the gap that comes from the choice of networks.

    Returns:
        True if it is.
    """
    error = np.hypot(np.sqrt(len(gap)) * gap.std(), network_error)
    return bool(gap.sum() > margin + FAR_BEHIND * error)


def hopeless(
    seen: Float[np.ndarray, "hypotheses n"],
    alive: list[int],
    orders: Sequence[int],
    margin: float,
    network_error: float = 0.0,
) -> dict[int, int]:
    """Map each hopeless hypothesis to the rival that beats it.

    Far behind means a gap above margin + 4 standard errors, over examples and networks. Only a rival with no more
    symmetry counts: a smaller group may still catch up with more data.

    Args:
        seen: Log probability that each hypothesis gave to each label.
        alive: Hypotheses still in the race.
        orders: How much symmetry each hypothesis has: elements of its group, or any other numbers in that order.
        margin: Nats that a gap must exceed in any case.
        network_error: Standard error of a gap that comes from the choice of networks.

    Returns:
        Indices of hopeless hypotheses, each with the index of the rival that is furthest ahead.
    """
    found = {}
    for k in alive:
        ahead = {}
        for j in alive:
            gap = seen[j] - seen[k]
            if j != k and orders[j] <= orders[k] and far_behind(gap, margin, network_error):
                ahead[j] = gap.sum()
        if ahead:
            found[k] = max(ahead, key=ahead.__getitem__)
    return found


def error_of_networks(block: Scored) -> float:
    """Standard error, per label, of the gap between two hypotheses with one network each."""
    return float(np.sqrt(2 * block.sum(-1).var(1, ddof=1).mean())) / block.shape[-1]


def outclassed(
    seen: Float[np.ndarray, "hypotheses n"], rivals: Sequence[int], margin: float, errors: float
) -> dict[int, int]:
    """Map each hypothesis that is clearly behind the best of its rivals to that one.

    Args:
        seen: Log probability that each hypothesis gave to each label.
        rivals: Hypotheses that share a symmetry.
        margin: Nats that the gap must exceed in any case.
        errors: Standard errors, over examples, that it must exceed beyond the margin.

    Returns:
        Indices of hypotheses, each with the index of the best.
    """
    if not rivals or not seen.shape[1]:
        return {}
    best = max(rivals, key=lambda k: seen[k].sum())
    gaps = {k: seen[best] - seen[k] for k in rivals if k != best}
    return {k: best for k, gap in gaps.items() if gap.sum() > margin + errors * np.sqrt(len(gap)) * gap.std()}


def has_learned(best: Float[np.ndarray, " n"], guess: Float[np.ndarray, " n"]) -> bool:
    """Whether predictions from inputs clearly beat the guess from labels alone.

    Args:
        best: Log probability of each label under the best hypothesis.
        guess: Log probability of each label under the guess.

    Returns:
        True if they do.
    """
    gain = best - guess
    return bool(gain.sum() > LEARNED_MARGIN + LEARNED_ERRORS * np.sqrt(len(gain)) * gain.std())
