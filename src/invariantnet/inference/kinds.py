"""Kinds of symmetry: the rungs of a ladder are one kind, so that neighbours do not compete for a verdict."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.families import FAMILIES


def kind_of(name: str) -> str:
    """Name the kind of a symmetry: its own name, without the values of ranges.

    Args:
        name: Name of a symmetry.

    Returns:
        The name of the kind.

    Example:
        >>> kind_of("rot90"), kind_of("hflip+rotation:30")
        ('rot90', 'hflip+rotation')
    """
    found = []
    for part in name.split("+"):
        family = part.partition(":")[0]
        found.append(family if family in FAMILIES else part)
    return "+".join(found)


def probabilities_of_kinds(names: Sequence[str], probabilities: Sequence[float]) -> dict[str, float]:
    """Add up the probabilities of symmetries of one kind.

    Args:
        names: Names of the symmetries.
        probabilities: Probability of each.

    Returns:
        The probability of each kind, in the order of the names.
    """
    found: dict[str, float] = {}
    for name, p in zip(names, probabilities, strict=True):
        found[kind_of(name)] = found.get(kind_of(name), 0.0) + p
    return found


def log_prior_of_kinds(names: Sequence[str]) -> Float[np.ndarray, " names"]:
    """Log prior in which `trivial` has half of the probability, and the other kinds share the rest equally.

    The more candidates there are, the more often one of them seems true by chance, so each must be less probable
    beforehand. Seven rungs of a ladder are one idea, not seven: they share the probability of their kind.

    Args:
        names: Names of the symmetries, `trivial` among them.

    Returns:
        One log probability per name.

    Example:
        >>> np.exp(log_prior_of_kinds(["trivial", "hflip", "rotation:30", "rotation:60"])).round(3).tolist()
        [0.5, 0.25, 0.125, 0.125]
    """
    kinds = [kind_of(name) for name in names]
    others = len(set(kinds) - {TRIVIAL})
    return -np.log([(2 if others else 1) if k == TRIVIAL else 2 * others * kinds.count(k) for k in kinds])


def best_of_each_kind(names: Sequence[str], probabilities: Sequence[float]) -> list[int]:
    """Indices of the most probable symmetry of each kind."""
    best: dict[str, int] = {}
    for k, name in enumerate(names):
        if probabilities[k] > probabilities[best.setdefault(kind_of(name), k)]:
            best[kind_of(name)] = k
    return list(best.values())
