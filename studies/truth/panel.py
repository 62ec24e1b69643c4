"""Is the verdict right on real and provable data, and does its network predict as well as others do?

The truth was written down before any verdict, and no setting was chosen on these sets. Rivals learn from the same
examples with their defaults: scikit-learn's scaler and MLP, and its random forest.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.framework.records import select
from studies.truth.panel_sets import COMPUTED, PANEL, PICTURES, SERIES, TABLES, Proof
from studies.truth.problems import Problem, estimator, favourite, is_right, is_sure, verdict_of
from studies.truth.real_sets import missing_pictures, missing_series

SEEDS = 3
"""Draws of every set."""
MOST_ITERATIONS = 1000
"""Epochs of scikit-learn's MLP, five times its default, so that it converges."""
EXCEPTIONS = 2
"""Sets on which a rival may be more accurate."""
QUICK_EXAMPLES, QUICK_EPOCHS = 60, 1
"""Size of a quick run: seconds, and too few examples for a result."""


@dataclass(frozen=True)
class PanelRecipe:
    """One draw of one set."""

    data: str
    seed: int
    n: int | None = None
    """Examples to learn from; None for all."""


@dataclass(frozen=True)
class Record:
    """The verdict on one draw, and how well the network and its rivals predict."""

    data: str
    seed: int
    n: int
    truth: str | None
    """The largest true symmetry; None where it is not known."""
    proof: Proof
    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    strength: str
    verdict: str
    claims_falsely: bool
    """The favourite has at least 90 %, and is known to be no symmetry."""
    scores: dict[str, float]
    """Accuracy, or R² of numbers, in percent: `ours`, and the rivals `mlp` and `forest`."""
    seconds: dict[str, float]
    """CPU seconds of the parts of the fit that the estimator measures."""


def run(recipe: PanelRecipe) -> list[Record]:
    """Fit to one draw, and test the network and its rivals."""
    known = PANEL[recipe.data]
    problem, test = known.problems(recipe.seed)
    if recipe.n is not None:
        problem = problem.first(recipe.n)
    fitted = estimator(problem, recipe.seed, **({} if recipe.n is None else {"epochs": QUICK_EPOCHS}))
    fitted.fit(problem.x, problem.y)
    found = verdict_of(fitted)
    provable = known.proof != "none"
    scores = {"ours": fitted.score(test.x, test.y)} | rival_scores(problem, test, recipe.seed)
    return [
        Record(
            recipe.data,
            recipe.seed,
            len(problem.x),
            problem.true_group().name if provable else None,
            known.proof,
            found.names,
            found.probabilities,
            found.strength,
            fitted.posterior_.verdict,
            provable and is_sure(found) and not problem.is_true(favourite(found)),
            {name: round(100 * float(score), 2) for name, score in scores.items()},
            {name: round(value, 2) for name, value in fitted.cpu_seconds_.items()},
        )
    ]


def rival_scores(problem: Problem, test: Problem, seed: int) -> dict[str, float]:
    """Fit scikit-learn's estimators to the same examples, and test them.

    Args:
        problem: Examples to learn from.
        test: Examples to test on.
        seed: Seed of both rivals.

    Returns:
        Accuracy, or R² of numbers, by rival.
    """
    network, forest = (
        (MLPRegressor, RandomForestRegressor) if problem.numbers else (MLPClassifier, RandomForestClassifier)
    )
    rivals: dict[str, BaseEstimator] = {
        "mlp": make_pipeline(StandardScaler(), network(max_iter=MOST_ITERATIONS, random_state=seed)),
        "forest": forest(random_state=seed),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {name: rival.fit(problem.x, problem.y).score(test.x, test.y) for name, rival in rivals.items()}


@dataclass(frozen=True)
class Summary:
    """One set over all of its draws."""

    data: str
    scores: dict[str, float]
    """Mean scores."""

    @property
    def rival(self) -> float:
        """Score of the better rival."""
        return max(self.scores["mlp"], self.scores["forest"])


def summarise(records: Sequence[Record]) -> list[Summary]:
    """Average the scores of every set over its draws."""
    found = []
    for data in dict.fromkeys(r.data for r in records):
        draws = select(records, data=data)
        scores = {name: float(np.mean([r.scores[name] for r in draws])) for name in draws[0].scores}
        found.append(Summary(data, scores))
    return found


def table(records: Sequence[Record]) -> str:
    """The truth, how often it was named, and all scores."""
    rows = []
    for summary in summarise(records):
        draws = select(records, data=summary.data)
        first = draws[0]
        named = sum(is_right(r) and is_sure(r) for r in draws)
        least = min(first.probabilities[first.names.index(favourite(first))] for first in draws)
        rows.append(
            [
                summary.data,
                str(first.n),
                f"{first.truth} ({first.proof})" if first.truth else "not known",
                f"{named} of {len(draws)}" if first.truth else "–",
                ", ".join(dict.fromkeys(favourite(r) for r in draws)) + f" (≥ {least:.2f})",
                str(sum(r.claims_falsely for r in draws)) if first.truth else "–",
                *(f"{summary.scores[name]:.1f}" for name in ("ours", "mlp", "forest")),
            ]
        )
    header = ["data", "n", "truth", "named with 90 %", "favourite", "false with 90 %"]
    return markdown([*header, "ours", "MLP", "forest"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    known = [r for r in records if r.truth is not None]
    proved = [r for r in known if r.proof != "meaning"]
    false, named = sum(r.claims_falsely for r in known), sum(is_right(r) and is_sure(r) for r in proved)
    every = summarise(records)
    behind = [s.data for s in every if s.scores["ours"] < s.rival]
    ours, rivals = (np.mean(values) for values in ([s.scores["ours"] for s in every], [s.rival for s in every]))
    return {
        "verdicts": Claim(
            f"Of {len(proved)} verdicts on {len({r.data for r in proved})} sets whose truth is proved, {named} "
            f"name it with at least 90 %. Of {len(known)} verdicts on these and on tables whose columns differ in "
            f"meaning, {false} claim something false with at least 90 %."
        ),
        "scores": Claim(
            f"On {len(every) - len(behind)} of {len(every)} sets the network predicts at least as well as the "
            f"better of its rivals; on average {ours:.1f} against {rivals:.1f}."
            + (f" It is behind on {', '.join(behind)}." if behind else "")
        ),
    }


def recipes(names: Sequence[str], seed: int) -> list[PanelRecipe]:
    """One draw of every set."""
    return [PanelRecipe(name, seed) for name in names]


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={
        "computed": Part(partial(recipes, tuple(COMPUTED)), SEEDS),
        "tables": Part(partial(recipes, tuple(TABLES)), SEEDS),
        "pictures": Part(partial(recipes, tuple(PICTURES)), SEEDS, missing_pictures),
        "series": Part(partial(recipes, tuple(SERIES)), SEEDS, missing_series),
    },
    run=run,
    quick=lambda recipe: PanelRecipe(recipe.data, recipe.seed, QUICK_EXAMPLES),
    table=table,
    claims=claims,
    depends_on=(
        *FITS,
        "studies.truth.problems",
        "studies.truth.computed_sets",
        "studies.truth.panel_sets",
        "studies.truth.real_sets",
    ),
)
