r"""The prior over symmetry matrices: which group would one expect before any label is seen?

Groups that differ only by the names of the inputs are equally probable. A group $G$ of permutations of $D$ inputs
has $D!/|N(G)|$ such conjugates, with the normaliser $N(G) = \{h : h G h^{-1} = G\}$, so naming one of them costs
$\ln(D!/|N(G)|)$ nats, on top of naming its type. Three kinds of types share the prior:

- *exchanges*: all permutations within the parts of a partition; partitions of the number $D$ are equally probable;
- *turns*: the powers of one permutation; types of cycles are equally probable;
- *others*: conjugacy classes of subgroups are equally probable, and $|N(G)|$ is replaced by a lower bound: $|G|$
  times the permutations of the inputs that $G$ leaves alone.

Changes of sign double every input: $2^D D!$ instead of $D!$.
"""

from collections import Counter
from collections.abc import Sequence
from math import comb, factorial, gcd, lgamma, log

import numpy as np

from invariantnet.discovery.structure import symmetric_parts
from invariantnet.symmetries.group import Group

SHARES = {"exchanges": 0.4, "turns": 0.3, "others": 0.2, "signs": 0.1}
"""Prior probability of each kind of group: simple ones are more probable than one of the many others."""

CLASSES = (1, 2, 4, 11, 19, 56, 96, 296, 554, 1593, 3094, 10723, 20832, 75154, 159129, 686165)
"""Conjugacy classes of subgroups of all permutations of 1, 2, … inputs (sequence A000638 of the OEIS)."""

SIGNED_CLASSES = 10
"""Factor by which changes of sign multiply the number of classes, roughly; an overestimate costs little power."""


def log_prior(group: Group) -> float:
    """Log probability of a group before any data, given that there is a symmetry.

    Args:
        group: A group of permutations, with changes of sign or without.

    Returns:
        A lower bound of the log probability; over all groups, the probabilities sum to at most 1.

    Example:
        >>> round(log_prior(Group.from_permutations([[1, 0, 2, 3]])), 2)  # one of six exchanges
        -3.44
    """
    if not group.is_permutation_group:
        return log(SHARES["signs"]) + _signs(group)
    ways = [log(SHARES["others"]) + _others(group)]
    sizes = symmetric_parts(group)
    if sizes:
        ways.append(log(SHARES["exchanges"]) + _exchanges(group.dim, sizes))
    generators = group.generators
    if len(generators) == 1:
        ways.append(log(SHARES["turns"]) + _turns(generators[0]))
    return float(np.logaddexp.reduce(ways))


def cycle_lengths(index: np.ndarray) -> list[int]:
    """Lengths of the cycles of a permutation, fixed points included."""
    seen, found = np.zeros(len(index), bool), []
    for start in range(len(index)):
        place, length = start, 0
        while not seen[place]:
            seen[place] = True
            place, length = int(index[place]), length + 1
        if length:
            found.append(length)
    return found


def partitions_of(number: int) -> int:
    """Count the ways to write a number as a sum of positive numbers, in any order.

    Example:
        >>> partitions_of(4)
        5
    """
    ways = [1] + [0] * number
    for part in range(1, number + 1):
        for total in range(part, number + 1):
            ways[total] += ways[total - part]
    return ways[number]


def _exchanges(dim: int, sizes: Sequence[int]) -> float:
    """One of the partitions of the inputs into parts of these sizes."""
    counts = Counter([*sizes, *[1] * (dim - sum(sizes))])
    conjugates = lgamma(dim + 1) - sum(m * lgamma(s + 1) + lgamma(m + 1) for s, m in counts.items())
    return -log(max(1, partitions_of(dim) - 1)) - conjugates


def _turns(index: np.ndarray) -> float:
    """One of the cyclic groups whose generator has cycles of these lengths."""
    dim, counts = len(index), Counter(cycle_lengths(index))
    elements = lgamma(dim + 1) - sum(m * log(k) + lgamma(m + 1) for k, m in counts.items())
    order = int(np.lcm.reduce(list(counts)))
    generators = sum(gcd(k, order) == 1 for k in range(order))
    return -log(max(1, partitions_of(dim) - 1)) - elements + log(max(1, generators))


def _others(group: Group) -> float:
    fixed = int((group.generators == np.arange(group.dim)).all(axis=0).sum())
    conjugates = lgamma(group.dim + 1) - lgamma(fixed + 1) - log(group.order)
    return -log(_classes(group.dim)) - max(0.0, conjugates)


def _signs(group: Group) -> float:
    """Changes of the sign of single inputs, one by one; or any group with changes of sign."""
    dim, generators = group.dim, group.generators
    changed = (generators != np.arange(dim)).sum(axis=1)
    if (changed == 1).all():
        return log(0.5) - log(dim) - log(comb(dim, len(generators)))
    fixed = int((generators == np.arange(dim)).all(axis=0).sum())
    conjugates = lgamma(dim + 1) - lgamma(fixed + 1) + (dim - fixed) * log(2) - log(group.order)
    return log(0.5) - log(SIGNED_CLASSES * _classes(dim)) - max(0.0, conjugates)


def _classes(dim: int) -> int:
    return CLASSES[dim - 1] if dim <= len(CLASSES) else factorial(dim)
