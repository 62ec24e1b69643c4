"""Does the program find symmetries that nobody named, and none where there is none?

Digits are moved by a random element of a group, and all pixels are scrambled by one secret permutation. The
program sees nothing but scrambled inputs and labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from invariantnet.discovery import Discovery, discover
from invariantnet.symmetries.group import Group
from studies.discovery.problems import Problem, scrambled_images
from studies.framework import Claim, Part, Study
from studies.framework.markdown import markdown

KINDS = ("rot90", "hflip", "flips", "d4", "rows", "none")
"""Groups that digits are moved by."""
SIZES = (500, 1000)
"""Examples of 8×8 digits."""
SEEDS = 10
"""Scrambled data sets of every kind."""
LISTED = 10_000
"""Largest group whose elements are compared one by one."""


@dataclass(frozen=True)
class DiscoveryRecipe:
    """One data set with a hidden symmetry."""

    task: str
    kind: str
    n: int
    seed: int
    dim: int = 64


@dataclass(frozen=True)
class Record:
    """What was found in one data set."""

    task: str
    kind: str
    n: int
    dim: int
    seed: int
    found: bool
    right: bool
    """Exactly the hidden group, on the inputs that were not set aside."""
    exact: bool
    """Whether the verdict calls itself exact."""
    probability: float
    order: int
    log_e_value: float
    set_aside: int
    tested: int


def problem(recipe: DiscoveryRecipe) -> Problem:
    """Make the data set of a recipe."""
    return scrambled_images(recipe.task, recipe.kind, recipe.n, recipe.seed)


def run(recipe: DiscoveryRecipe) -> list[Record]:
    """Look for the hidden symmetry of one data set."""
    given = problem(recipe)
    found = discover(given.x, given.y, random_state=recipe.seed)
    return [
        Record(
            recipe.task,
            recipe.kind,
            recipe.n,
            given.x.shape[1],
            recipe.seed,
            found.found,
            is_right(found, given.truth),
            found.exact,
            round(found.exact_probability, 5),
            min(found.group.order, 10**9),
            round(found.log_e_value, 2),
            len(found.set_aside),
            len(found.tested),
        )
    ]


def is_right(found: Discovery, truth: Group) -> bool:
    """Compare groups element by element, on the inputs that were not set aside."""
    kept = np.setdiff1d(np.arange(truth.dim), found.set_aside)
    if len(kept) == truth.dim or max(found.group.order, truth.order) > LISTED:
        return found.group == truth
    sets = [{tuple(e[kept]) for e in g.elements.numpy()} for g in (found.group, truth)]
    return sets[0] == sets[1]


def recipes(seed: int) -> list[DiscoveryRecipe]:
    """Scrambled digits of 8×8 pixels, moved by every group."""
    return [DiscoveryRecipe("digits", kind, n, seed) for kind, n in product(KINDS, SIZES)]


def large(seed: int) -> list[DiscoveryRecipe]:
    """Scrambled digits of 28×28 pixels."""
    return [DiscoveryRecipe("mnist", kind, 5000, seed, 784) for kind in KINDS]


def table(records: Sequence[Record]) -> str:
    """Count data sets in which something was found, and in which it is right."""
    cells = sorted({(r.task, r.n, r.kind) for r in records}, key=lambda cell: (cell[0], cell[1], cell[2]))
    rows = []
    for task, n, kind in cells:
        own = [r for r in records if (r.task, r.n, r.kind) == (task, n, kind)]
        rows.append(
            [
                task,
                f"{n:,}",
                kind,
                f"{sum(r.found for r in own)} of {len(own)}",
                f"{sum(r.right for r in own)} of {len(own)}",
                f"{sum(r.exact and not r.right for r in own)} of {sum(r.exact for r in own)}",
            ]
        )
    return markdown(["data", "n", "hidden", "found", "exactly right", "called exact, but wrong"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    moved = [r for r in records if r.kind != "none"]
    still = [r for r in records if r.kind == "none"]
    exact = [r for r in records if r.exact]
    kinds = {(r.task, r.kind, r.n) for r in records if r.task == "digits"}
    rows = [[r.right for r in records if (r.task, r.kind, r.n) == kind] for kind in kinds]
    enough = sum(10 * sum(row) >= 9 * len(row) for row in rows)
    return {
        "scrambled": Claim(
            f"The group behind scrambled digits was found exactly in {sum(r.right for r in moved)} of "
            f"{len(moved)} data sets; of {len(exact)} verdicts that call themselves exact, wrong: "
            f"{sum(not r.right for r in exact)}."
        ),
        "rows": Claim(
            f"In {enough} of the {len(rows)} rows of 8×8 digits, at least nine in ten are right; asked: all."
        ),
        "unmoved": Claim(
            f"In digits that were not moved, a symmetry was claimed in {sum(r.found for r in still)} of "
            f"{len(still)}."
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"digits": Part(recipes, SEEDS), "mnist": Part(large, 1)},
    run=run,
    quick=lambda recipe: replace(recipe, n=min(recipe.n, 200)),
    table=table,
    claims=claims,
    depends_on=("discovery", "symmetries", "studies.discovery.problems"),
)
