"""Does the verdict claim symmetries that are absent, and name the true ones? Random teachers and their twins.

A teacher is a random network of 32 tanh units on Gaussian inputs; its twin is the same network averaged over a
group. Labels are classes (two or three, by quantiles) or numbers, both with noise. These seeds are for reporting:
settings are chosen on seeds from 1,000 on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from invariantnet.inference.hypotheses import candidates
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.group import Group
from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.framework.records import select
from studies.truth.asked_for import EDGES, TARGETS, Record, parts_stated, with_verdict
from studies.truth.problems import is_right, is_sure, judge, share
from studies.truth.teachers import teacher_problem

SHAPES: dict[tuple[int, ...], tuple[str, ...]] = {
    (8,): ("reversal", "cyclic"),
    (4, 4): ("rot90", "flips"),
    (6, 6): ("rot90", "flips"),
    (3, 8, 8): ("rot90", "flips"),
}
"""Shapes of the inputs, with their candidates."""
SIZES = (100, 300, 1000, 3000)
"""Examples: from hardly enough to plenty."""
KINDS: tuple[Literal["classes", "numbers"], ...] = ("classes", "numbers")
"""What is predicted."""
SEEDS = 20
"""Data sets without and with symmetry in every cell, so that one false claim is 5 %."""
QUICK_EXAMPLES = 60
"""Examples of a quick run: seconds, and too few for a result."""


@dataclass(frozen=True)
class TeacherRecipe:
    """One data set of a teacher or of its twin."""

    shape: tuple[int, ...]
    n: int
    kind: Literal["classes", "numbers"]
    has_symmetry: bool
    seed: int

    @property
    def twin_of(self) -> str:
        """Symmetry of the twin; the seeds take turns."""
        groups = candidates(list(SHAPES[self.shape]), self.shape, joins=True)
        return groups[1 + self.seed // 2 % (len(groups) - 1)].name

    @property
    def classes(self) -> int:
        """Number of classes: seeds take turns; 0 for numbers."""
        return 0 if self.kind == "numbers" else 2 + self.seed % 2


def recipes(seed: int) -> list[TeacherRecipe]:
    """Every cell once without and once with symmetry, so that a run that is stopped has covered every cell."""
    return [TeacherRecipe(*cell, seed) for cell in product(SHAPES, SIZES, KINDS, (False, True))]


def run(recipe: TeacherRecipe) -> list[Record]:
    """Ask for the verdict on one data set."""
    problem, contrast = teacher_problem(
        recipe.shape,
        SHAPES[recipe.shape],
        recipe.twin_of,
        recipe.has_symmetry,
        recipe.n,
        recipe.classes,
        recipe.seed,
    )
    found = judge(problem, recipe.seed)
    return [
        Record(
            recipe.shape,
            recipe.n,
            recipe.kind,
            recipe.seed,
            problem.true_group().name,
            found.names,
            found.probabilities,
            found.strength,
            round(contrast, 3),
            found.seconds,
        )
    ]


def table(records: Sequence[Record]) -> str:
    """The targets and whether they were met; then every cell."""
    rows = [
        [
            t.name,
            f"{'≤' if t.at_most else '≥'} {100 * t.bound:.0f} %",
            f"{100 * t.measure(records):.1f} %",
            "yes" if t.met(records) else "**no**",
        ]
        for t in TARGETS.values()
    ]
    summary = markdown([f"{len(records):,} data sets", "target", "measured", "met"], rows)
    rows = [
        ["×".join(map(str, shape)), kind, *[_cell(select(records, shape=shape, kind=kind, n=n)) for n in SIZES]]
        for shape, kind in product(SHAPES, KINDS)
    ]
    return f"{summary}\n{markdown(['inputs', 'labels', *[f'n = {n:,}' for n in SIZES]], rows)}"


def _cell(records: Sequence[Record]) -> str:
    """False claims among the data sets without symmetry, and twins whose symmetry is named."""
    without, twins = [[r for r in records if (r.truth == TRIVIAL) is none] for none in (True, False)]
    if not records:
        return "–"
    return f"{sum(r.claims_falsely for r in without)}/{len(without)}, {sum(r.named for r in twins)}/{len(twins)}"


def draw(records: Sequence[Record]) -> Figure:
    """Draw how often the favourite is right against the probability it was given, for classes and for numbers."""
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    for axis, kind in zip(figure.subplots(1, 2, sharey=True), KINDS, strict=True):
        axis.plot([0, 1], [0, 1], "--", color=COLORS["trivial"], linewidth=1)
        found = with_verdict(select(records, kind=kind))
        for low, high in pairwise(EDGES):
            inside = [r for r in found if low <= max(r.probabilities) < high]
            if inside:
                stated, right = (
                    np.mean([max(r.probabilities) for r in inside]),
                    share([is_right(r) for r in inside]),
                )
                error = np.sqrt(max(right * (1 - right), 0.25 / len(inside)) / len(inside))
                axis.errorbar(stated, right, yerr=error, fmt="o", color=COLORS["rot90"], capsize=3)
                beside = (-14, 5) if high <= EDGES[-2] else (-4, -16)  # the last two bins are close together
                axis.annotate(f"{len(inside)}", (stated, right), xytext=beside, textcoords="offset points")
        axis.set(title=kind, xlabel="stated probability of the favourite", xlim=(0, 1.1), ylim=(-0.05, 1.1))
    figure.axes[0].set_ylabel("share that is right")
    return figure


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    cells = {(r.shape, r.n, r.kind, r.truth == TRIVIAL) for r in records}
    met = [name for name, target in TARGETS.items() if target.met(records)]
    groups = {s: [g for g in candidates(list(SHAPES[s]), s, joins=True) if isinstance(g, Group)] for s in SHAPES}
    parts = [parts_stated(r, groups[r.shape]) for r in records]
    still_open = sum(not is_sure(r) for r in with_verdict(records))
    return {
        "data sets": Claim(
            f"{len(records):,} data sets of random teachers, half of them without symmetry: "
            f"{', '.join('×'.join(map(str, s)) for s in SHAPES)} inputs, n from {min(SIZES)} to {max(SIZES):,}.",
            len(cells) == 2 * len(SHAPES) * len(SIZES) * len(KINDS),
        ),
        "silent": Claim(f"On {len(records) - len(with_verdict(records))} nothing was learned: no verdict."),
        "at least": Claim(
            f"Of {still_open} open verdicts, {sum(map(bool, parts))} are sure of a part all the same: "
            f"of {sum(map(len, parts))} parts in all, {sum(part for each in parts for part in each)} are true."
        ),
        "met": Claim(f"{len(met)} of the {len(TARGETS)} targets were met."),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"teachers": Part(recipes, SEEDS)},
    run=run,
    quick=lambda recipe: replace(recipe, n=QUICK_EXAMPLES),
    table=table,
    draw=draw,
    claims=claims,
    depends_on=(*FITS, "studies.truth.problems", "studies.truth.teachers"),
)
