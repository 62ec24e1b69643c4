"""Is a symmetry among few inputs found without candidates, and none claimed where there is none?

Polynomials by the thousand, half of them without symmetry; the groups of Karjol et al.; the sums of Yeh et al.;
labels that are symmetric while inputs are not. The program sees nothing but inputs and labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from invariantnet.discovery import discover
from studies.discovery.hidden_groups import is_right
from studies.discovery.problems import Problem
from studies.discovery.synthetic import polynomial, ring_of_ten, sum_of_numbers, symmetric_labels
from studies.framework import Claim, Part, Study
from studies.framework.markdown import markdown

TASKS, DIMS, SIZES = ("reals", "classes"), (4, 6, 8, 10), (100, 300)
"""Cells of polynomials without symmetry, and with one."""
LARGE = 1000
"""Examples at which a symmetry should be found in nine of ten sets."""
SYMMETRIC = ("exchange", "reflection", "dihedral")
"""Hidden groups: all permutations of some inputs, a reflection of all, turns and reflections of a ring."""
SUMS = tuple(range(2, 11))
"""Numbers that are added, as many as Yeh et al. have."""
ALPHA = 0.05
"""Level of the tests, and largest share of near misses among verdicts that call themselves exact."""


@dataclass(frozen=True)
class FewRecipe:
    """One data set."""

    family: str
    kind: str
    dim: int
    n: int
    seed: int


@dataclass(frozen=True)
class FewRecord:
    """What was found in one data set."""

    family: str
    kind: str
    dim: int
    n: int
    seed: int
    found: bool
    right: bool
    """Exactly the hidden group."""
    exact: bool
    """Whether the verdict calls itself exact."""
    probability: float
    log_e_value: float
    tested: int


def problem(recipe: FewRecipe) -> Problem:
    """Make the data set of a recipe."""
    if recipe.family == "ring of ten":
        return ring_of_ten(recipe.kind, recipe.n, recipe.seed)
    if recipe.family == "sum":
        return sum_of_numbers(recipe.dim, recipe.n, recipe.seed)
    if recipe.family == "labels":
        return symmetric_labels(recipe.kind, recipe.dim, recipe.n, recipe.seed)
    return polynomial(recipe.family, recipe.kind, recipe.dim, recipe.n, recipe.seed)


def run(recipe: FewRecipe) -> list[FewRecord]:
    """Look for the hidden symmetry of one data set."""
    given = problem(recipe)
    found = discover(given.x, given.y, alpha=ALPHA, random_state=recipe.seed)
    return [
        FewRecord(
            recipe.family,
            recipe.kind,
            recipe.dim,
            recipe.n,
            recipe.seed,
            found.found,
            is_right(found, given.truth),
            found.exact,
            round(found.exact_probability, 4),
            round(found.log_e_value, 2),
            len(found.tested),
        )
    ]


def nothing(seed: int) -> list[FewRecipe]:
    """Polynomials without symmetry."""
    return [FewRecipe(task, "none", dim, n, seed) for task, dim, n in product(TASKS, DIMS, SIZES)]


def something(seed: int) -> list[FewRecipe]:
    """Polynomials with a hidden symmetry."""
    cells = product(TASKS, DIMS, SIZES, SYMMETRIC)
    return [FewRecipe(task, kind, dim, n, seed) for task, dim, n, kind in cells]


def large(seed: int) -> list[FewRecipe]:
    """The same with more examples."""
    return [FewRecipe(task, kind, dim, LARGE, seed) for task, dim, kind in product(TASKS, (4, 8), SYMMETRIC)]


def karjol(seed: int) -> list[FewRecipe]:
    """Turns, turns and reflections, all permutations of five inputs among ten."""
    return [FewRecipe("ring of ten", kind, 10, LARGE, seed) for kind in ("Z5", "D5", "S5")]


def yeh(seed: int) -> list[FewRecipe]:
    """Sums of numbers: any two of them can be exchanged."""
    return [FewRecipe("sum", "all", dim, 100, seed) for dim in SUMS]


def labels(seed: int) -> list[FewRecipe]:
    """Labels with a symmetry that inputs of different scales and offsets do not have."""
    cells = product(("reflection", "cycle", "none"), (10, 16), (LARGE, 3000))
    return [FewRecipe("labels", kind, dim, n, seed) for kind, dim, n in cells]


def table(records: Sequence[FewRecord]) -> str:
    """Count data sets in which something was found, and in which it is right."""
    cells = sorted({(r.family, r.kind != "none", r.kind, r.dim, r.n) for r in records})
    rows = []
    for family, _, kind, dim, n in cells:
        own = [r for r in records if (r.family, r.kind, r.dim, r.n) == (family, kind, dim, n)]
        counts = [sum(r.found for r in own), sum(r.right for r in own)]
        wrong = f"{sum(r.exact and not r.right for r in own)} of {sum(r.exact for r in own)}"
        rows.append([family, kind, f"{dim}", f"{n:,}", *(f"{count} of {len(own)}" for count in counts), wrong])
    return markdown(["labels", "hidden", "inputs", "n", "found", "right", "called exact, but wrong"], rows)


def claims(records: Sequence[FewRecord]) -> dict[str, Claim]:
    """What the pages say: counts, as they came out."""
    none = [r for r in records if r.kind == "none"]
    some = [r for r in records if r.kind != "none" and r.family in TASKS]
    many = [r for r in some if r.n >= LARGE]
    exact = [r for r in records if r.exact]
    cells = {(r.family, r.dim, r.n) for r in none}
    by_cell = [[r.found for r in none if (r.family, r.dim, r.n) == cell] for cell in cells]
    worst = max(by_cell, key=lambda found: sum(found) / len(found))
    return {
        "nothing": Claim(
            f"Without symmetry, one was claimed in {sum(r.found for r in none)} of {len(none):,} data sets, in "
            f"the worst cell of task, inputs and examples in {sum(worst)} of {len(worst)}.",
            sum(r.found for r in none) <= ALPHA * len(none),
        ),
        "something": Claim(
            f"With one, it was detected in {sum(r.found for r in some):,} of {len(some):,}, and in "
            f"{sum(r.found for r in many)} of {len(many)} at n = {LARGE:,}; exactly right were "
            f"{sum(r.right for r in some):,} and {sum(r.right for r in many)}."
        ),
        "exact": Claim(
            f"Of {len(exact):,} verdicts that call themselves exact, wrong: {sum(not r.right for r in exact)}."
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=FewRecord,
    parts={
        "nothing": Part(nothing, 157),
        "something": Part(something, 52),
        "large": Part(large, 10),
        "karjol": Part(karjol, 10),
        "yeh": Part(yeh, 10),
        "labels": Part(labels, 10),
    },
    run=run,
    quick=lambda recipe: replace(recipe, n=min(recipe.n, 60)),
    table=table,
    claims=claims,
    depends_on=("discovery", "symmetries", "studies.discovery.problems", "studies.discovery.synthetic"),
)
