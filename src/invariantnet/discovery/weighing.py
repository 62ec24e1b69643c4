"""Few inputs: groups are weighed on all labels, by several searches that begin elsewhere."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from invariantnet.discovery.candidates import REJECTED
from invariantnet.discovery.columns import Columns
from invariantnet.discovery.copies import symmetry_of
from invariantnet.discovery.evidence import MANY_CENTRES, MOST_EXAMPLES, Evidence, explained_by
from invariantnet.discovery.judging import inputs_against
from invariantnet.discovery.posterior import Posterior
from invariantnet.discovery.predictors import Labelled
from invariantnet.discovery.result import Discovery, Tested
from invariantnet.discovery.scores import scores_of
from invariantnet.inference.cache import ScoreCache
from invariantnet.symmetries.group import Group

SEARCHES = 3
"""Searches at most, each with the examples in another order, and so with other centres and gradients: until two of
them come to the same group, or to none. One search alone stopped at a wrong group now and then, which looked exact
because it never met the right one (a cycle of eight inputs, 1,000 labels, seed 102)."""

ENOUGH_OF_NUMBERS, ENOUGH_OF_CLASSES = 0.5, 0.25
"""Share of the labels that predictions should explain before a group of few inputs is called exact. With 16 right
groups of random functions (seed 1001), they explained .88 and more of numbers, and .39 and more of classes, which
vary for equal inputs too; with three wrong ones, of a function that models hardly learn, .19, .31 and .38."""


def weighed(
    examples: Labelled, rng: np.random.Generator, nothing: Discovery, columns: Columns, cache: ScoreCache | None
) -> Discovery:
    """Weigh groups of few inputs on all labels.

    Args:
        examples: All examples.
        rng: Source of randomness.
        nothing: What is returned if nothing is found.
        columns: Which inputs these are.
        cache: Scores of an interrupted search.

    Returns:
        What was found. The group counts as exact only if two searches came to it.
    """
    level = -np.log(nothing.alpha)
    searches = _searches(examples, rng, cache, level)
    searched = posterior = _together(searches)
    if max(each.log_e_value for each in searches) >= level:
        posterior = searched.weighed_again(Evidence(examples, scores_of(examples, cache), MANY_CENTRES))
    tested = tuple(
        Tested(
            columns.widen(w.generators), w.source, w.kind, w.log_prior, w.log_e_value, bool(w.log_odds >= level)
        )
        for w in {**searched.weighed, **posterior.weighed}.values()
        if np.isfinite(w.log_e_value)
    )
    nothing = replace(
        nothing,
        tested=tested,
        test="all labels",
        log_e_value=posterior.log_e_value,
        judged=min(MOST_EXAMPLES, len(examples)),
    )
    if posterior is searched or posterior.log_e_value < level:
        return nothing
    best = posterior.best.generators
    explained = explained_by(best, examples)
    against = inputs_against(symmetry_of(best), examples.x, len(examples) // 2)
    return replace(
        nothing,
        group=Group("discovered", columns.widen(best)),
        exact_probability=posterior.probability,
        of_inputs=against < REJECTED,
        log_e_value_against_inputs=against,
        explained=explained,
        enough=ENOUGH_OF_NUMBERS if examples.classes is None else ENOUGH_OF_CLASSES,
        repeatedly=sum(each.best_key == posterior.best_key for each in searches) > 1,
    )


def _searches(
    examples: Labelled, rng: np.random.Generator, cache: ScoreCache | None, level: float
) -> list[Posterior]:
    """Search until two searches agree, at most `SEARCHES` times."""
    found: list[Posterior] = []
    for number in range(SEARCHES):
        order = rng.permutation(len(examples)) if number else np.arange(len(examples))
        shuffled = examples[order]
        posterior = Posterior(Evidence(shuffled, scores_of(shuffled, cache)), rng)
        posterior.search(signed=changes_sign(shuffled.x))
        found.append(posterior)
        ends = Counter(each.best_key if each.log_e_value >= level else None for each in found)
        if max(ends.values()) > 1:
            break
    return found


def _together(searches: Sequence[Posterior]) -> Posterior:
    """All groups that were weighed, each with the most evidence that a search found for it."""
    first = searches[0]
    every = [item for each in searches for item in each.weighed.items()]
    best = dict(sorted(every, key=lambda item: item[1].log_odds))
    return Posterior(first.evidence, first.rng, {key: best[key] for key, _ in every})


def changes_sign(x: Float64[np.ndarray, "n dim"]) -> bool:
    """Whether some input has values of both signs."""
    return bool(((x < 0).any(axis=0) & (x > 0).any(axis=0)).any())
