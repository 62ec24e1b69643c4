"""Candidates that nobody named: one half of the examples discovers them, the other half compares them."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from invariantnet.data.arrays import read
from invariantnet.data.examples import Examples
from invariantnet.discovery.neighbours import subgroups
from invariantnet.discovery.predictors import Labelled
from invariantnet.discovery.result import Discovery
from invariantnet.discovery.search import discover_labelled
from invariantnet.inference.cache import ScoreCache
from invariantnet.symmetries.group import Group

DISCOVERING = 0.5
"""Share of the examples that discover; the others compare what was found, so that both are honest."""

MOST_DISCOVERING = 10_000
"""Examples that discover at most: their number hardly matters beyond, their memory does."""

MOST_PARTS = 6
"""Subgroups of what was found that are compared too."""


@dataclass(frozen=True, eq=False)
class Discovered:
    """What one part of the examples discovered.

    Args:
        discovery: The verdict on that part.
        groups: The group that was found and some of its subgroups; none if nothing was found.
        rest: Numbers of the examples that discovery has not seen.
    """

    discovery: Discovery
    groups: list[Group]
    rest: Int64[Tensor, " m"]


def discover_candidates(
    examples: Examples, classes: int | None, seed: int, cache: ScoreCache | None = None
) -> Discovered:
    """Discover symmetries on one part of the examples.

    Args:
        examples: All examples.
        classes: Number of classes; None for real labels.
        seed: Decides which examples discover.
        cache: Scores of an interrupted fit, which are not computed again.

    Returns:
        What was found, and the examples that are left to compare it.

    Raises:
        ValueError: If there are several numbers to predict, or too many inputs vary.
    """
    if examples.y.ndim > 1:
        raise ValueError(
            "discovery needs one label per example: name candidate symmetries, or fit output by output."
        )
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(examples)))
    first = min(MOST_DISCOVERING, round(DISCOVERING * len(examples)))
    part = examples[order[:first].sort().values]
    x, y = read(part.x).double().cpu().numpy(), part.y.cpu().numpy()
    labelled = Labelled(x, y if classes else y.astype(np.float64), classes)
    found = discover_labelled(labelled, alpha=0.05, seed=seed, cache=cache)
    return Discovered(found, groups_to_compare(found.group) if found.found else [], order[first:].sort().values)


def groups_to_compare(group: Group) -> list[Group]:
    """List a discovered group and some of its subgroups.

    Args:
        group: The discovered group.

    Returns:
        The group, named "discovered", then subgroups by single generators and by all but one.

    Example:
        >>> [g.order for g in groups_to_compare(Group.from_permutations([[1, 2, 3, 0]]))]
        [4, 2]
    """
    found = [replace(group, name="discovered")]
    generators = group.index_generators()
    assert generators is not None
    for part in [*subgroups(generators), *(g[None] for g in generators)]:
        smaller = Group(f"discovered-part-{len(found)}", part) if len(part) else None
        if smaller is not None and smaller.order > 1 and all(smaller != g for g in found):
            found.append(smaller)
    return found[: 1 + MOST_PARTS]
