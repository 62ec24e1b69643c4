"""What does the choice among models cost? The default comparison against the model that wins, run alone.

CPU seconds of whole fits, verdict and final network, one at a time.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from invariantnet.inference import SymmetryPosterior
from invariantnet.inference.models import MODEL_NAMES
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.truth.panel_sets import PANEL
from studies.truth.problems import estimator, favourite, verdict_of

DATA = ("digits", "Connect-4", "shifted waves", "Ising")
"""Images, a board, sequences and numbers, about 1,000 examples each."""
SMALL = ("wine", "digits", "Connect-4", "shifted waves", "spirals as curves", "Ising")
"""Sets that a verdict on few examples is asked for."""
FEW = 200
"""Examples of a small problem."""
MOST_RATIO, MOST_SECONDS = 1.5, 15.0
"""Largest CPU time of the default in that of its winner; and of a verdict on few examples, in CPU seconds."""
SEEDS = 3
"""Draws of every set."""
QUICK_EXAMPLES = 60
"""Examples of a quick run."""


@dataclass(frozen=True)
class CostRecipe:
    """One set, fitted by the default and by its winner alone."""

    data: str
    seed: int
    n: int | None = None
    """Examples; None for all that the panel has."""


@dataclass(frozen=True)
class Record:
    """What both fits cost."""

    data: str
    n: int
    seed: int
    model: str
    """The model that won."""
    seconds: float
    """CPU seconds of the default fit."""
    comparison: float
    """CPU seconds of its verdict."""
    alone: float
    """CPU seconds of a fit with the winning model alone."""
    favourites: tuple[str, str]
    """What both name."""


def winning_model(posterior: SymmetryPosterior) -> str:
    """Name of the final network's model, as `backbone` takes it; the default where only one suits the symmetry."""
    best = dict(zip(posterior.names, posterior.best_models, strict=True))[posterior.favourite]
    return best if best in MODEL_NAMES else "auto"


def run(recipe: CostRecipe) -> list[Record]:
    """Fit twice."""
    problem, _ = PANEL[recipe.data].problems(recipe.seed)
    problem = problem.first(recipe.n or len(problem.x))

    def timed(**settings: Any) -> tuple[Any, float]:
        before = time.process_time()
        fitted = estimator(problem, recipe.seed, **settings).fit(problem.x, problem.y)
        return fitted, round(time.process_time() - before, 2)

    default, seconds = timed()
    model = winning_model(default.posterior_)
    winner, alone = timed(backbone=model)
    found = verdict_of(default)
    return [
        Record(
            recipe.data,
            len(problem.x),
            recipe.seed,
            model,
            seconds,
            found.seconds,
            alone,
            (favourite(found), favourite(verdict_of(winner))),
        )
    ]


def is_small(record: Record) -> bool:
    """Whether a record counts among the small problems."""
    return record.n <= FEW


def table(records: Sequence[Record]) -> str:
    """Mean seconds of every set and size."""
    rows = []
    for data, n in dict.fromkeys((r.data, r.n) for r in records):
        found = [r for r in records if (r.data, r.n) == (data, n)]
        seconds, comparison, alone = np.mean([[r.seconds, r.comparison, r.alone] for r in found], axis=0)
        models = ", ".join(dict.fromkeys(r.model for r in found))
        rows.append(
            [data, str(n), models, f"{seconds:.1f}", f"{comparison:.1f}", f"{alone:.1f}", f"{seconds / alone:.2f}"]
        )
    header = ["data", "n", "winner", "default, CPU s", "of these the verdict", "winner alone, CPU s", "ratio"]
    return markdown(header, rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    large, small = [r for r in records if not is_small(r)], [r for r in records if is_small(r)]
    named = [r for r in large if r.model != "auto"]
    ratio, of_named = (sum(r.seconds for r in rs) / max(sum(r.alone for r in rs), 1e-9) for rs in (large, named))
    slowest = max((r.comparison for r in small), default=0.0)
    return {
        "ratio": Claim(
            f"With more than {FEW} examples the default takes {ratio:.2f} times the CPU time of its winner alone; "
            f"at most {MOST_RATIO} was asked for. Where the winner is `auto`, its network cannot be asked for by "
            f"name, and both are the same; without these sets it is {of_named:.2f} times."
        ),
        "small": Claim(
            f"The slowest verdict on at most {FEW} examples took {slowest:.1f} CPU seconds; at most "
            f"{MOST_SECONDS:.0f} was asked for."
        ),
    }


def with_all(seed: int) -> list[CostRecipe]:
    """Sets with all of their examples."""
    return [CostRecipe(name, seed) for name in DATA]


def with_few(seed: int) -> list[CostRecipe]:
    """Sets with few examples."""
    return [CostRecipe(name, seed, FEW) for name in SMALL]


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"all examples": Part(with_all, SEEDS), "few examples": Part(with_few, SEEDS)},
    run=run,
    quick=lambda recipe: replace(recipe, n=QUICK_EXAMPLES),
    table=table,
    claims=claims,
    depends_on=(
        *FITS,
        "studies.truth.problems",
        "studies.truth.computed_sets",
        "studies.truth.panel_sets",
        "studies.truth.real_sets",
    ),
    alone=True,
)
