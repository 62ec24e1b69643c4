"""Are the stated probabilities honest? Hundreds of small data sets whose symmetry is known by construction.

Inputs are Gaussian. Labels are drawn from a random teacher network, averaged over the true group; an easy teacher
is nearly deterministic, a hard one leaves much to chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from invariantnet._system.torch_state import seeded
from invariantnet.estimator import InvariantClassifier
from invariantnet.inference.hypotheses import with_joins
from invariantnet.nn import Symmetrized
from invariantnet.symmetries import lookup as catalogue
from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.inference.fits import opinion_seconds

FAMILIES: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "images": ((4, 4), ("rot90", "flips")),
    "sequences": ((6, 2), ("reversal", "cyclic")),
    "sets": ((4, 2), ("permutations",)),
    "signs": ((8,), ("sign",)),
    "channels": ((3, 2, 2), ("channels",)),
}
"""Shape of the inputs and the candidates of each kind of data."""

SIZES = (100, 300, 1000)
"""Examples: from hardly enough to plenty for these problems."""
SHARPNESS = {"easy": 12.0, "hard": 3.0}
"""Log odds of a label, one standard deviation from the boundary."""
SEEDS = 3
"""Data sets of every kind; 252 in all, so that 90 % can be told from 95 %."""
TEACHER_WIDTH, TEACHER_STD = 8, 1.5
"""Enough units, and weights large enough, that labels depend on inputs in more than a linear way."""
HIDDEN = 32
"""Width of the classifier: the problems are small."""
QUICK_EXAMPLES = 60
"""Examples of a quick run: seconds, and too few for a result."""
SURE = 0.9
"""A verdict with this probability counts as confident: the package calls it strong."""
EDGES = (0.25, 0.5, 0.7, 0.9, 0.99, 1.0001)
"""Bounds of the points in the figure; the last holds a probability of 1."""


@dataclass(frozen=True)
class CalibrationRecipe:
    """One synthetic data set."""

    family: str
    truth: str
    n: int
    difficulty: str
    seed: int


@dataclass(frozen=True)
class Record:
    """The verdict on one data set."""

    family: str
    n: int
    truth: str
    favourite: str
    probability: float
    """Of the favourite."""
    difficulty: str
    seed: int
    laplace: str
    """What Laplace's approximation favours."""
    seconds: tuple[float, ...]
    """CPU seconds of the comparison and of Laplace's approximation."""


def recipes(seed: int) -> list[CalibrationRecipe]:
    """Every family, every truth, every size and difficulty, once."""
    return [
        CalibrationRecipe(family, truth, n, difficulty, seed)
        for family, (shape, names) in FAMILIES.items()
        for truth, n, difficulty in product(_truths(shape, names), SIZES, SHARPNESS)
    ]


def _truths(shape: tuple[int, ...], names: tuple[str, ...]) -> list[str]:
    return [g.name for g in with_joins([catalogue.symmetry(name, shape) for name in names])]


def synthetic(recipe: CalibrationRecipe) -> tuple[np.ndarray, np.ndarray]:
    """Draw a data set whose labels are exactly invariant to the true group, and to no larger one.

    Args:
        recipe: Which data set.

    Returns:
        Inputs and labels.
    """
    shape, names = FAMILIES[recipe.family]
    groups = with_joins([catalogue.symmetry(name, shape) for name in names])
    group = next(g for g in groups if g.name == recipe.truth)
    words = f"{recipe.family} {recipe.truth} {recipe.difficulty}"
    seed = int(np.random.SeedSequence([recipe.seed, recipe.n, *words.encode()]).generate_state(1)[0])
    with seeded(seed), torch.no_grad():
        hidden, output = nn.Linear(group.dim, TEACHER_WIDTH), nn.Linear(TEACHER_WIDTH, 1)
        nn.init.normal_(hidden.weight, std=TEACHER_STD / group.dim**0.5)
        nn.init.normal_(output.weight)
        teacher = Symmetrized(nn.Sequential(hidden, nn.Tanh(), output), [group], "features")
        x = torch.randn(recipe.n, group.dim)
        score = teacher(x)[:, 0]
        # Balanced classes and one scale, so that a larger group does not mean weaker labels.
        score = (score - score.median()) / score.std()
        y = (torch.rand(recipe.n) < torch.sigmoid(SHARPNESS[recipe.difficulty] * score)).long()
    return x.numpy(), y.numpy()


def run(recipe: CalibrationRecipe) -> list[Record]:
    """Ask for the posterior of one data set."""
    shape, names = FAMILIES[recipe.family]
    clf = InvariantClassifier(names, shape, hidden=HIDDEN, second_opinion=True, random_state=recipe.seed)
    found = clf.compare(*synthetic(recipe))
    return [
        Record(
            recipe.family,
            recipe.n,
            recipe.truth,
            found.favourite,
            round(max(found.probabilities), 5),
            recipe.difficulty,
            recipe.seed,
            str(found.second_opinion),
            opinion_seconds(clf) or (),
        )
    ]


@dataclass(frozen=True)
class Summary:
    """How good the verdicts are, as shares."""

    right: float
    confident: int
    """Number of verdicts with at least 90 %."""
    right_if_confident: float
    false_claims: float
    """Of the data sets without symmetry, the share where one is claimed with at least 90 %."""


def summarise(records: Sequence[Record]) -> Summary:
    """Count verdicts that are right, confident and false."""
    sure = [r for r in records if r.probability >= SURE]
    without = [r for r in records if r.truth == "trivial"]
    claimed = [r for r in without if r.probability >= SURE and r.favourite != "trivial"]
    return Summary(
        right=float(np.mean([r.favourite == r.truth for r in records])),
        confident=len(sure),
        right_if_confident=float(np.mean([r.favourite == r.truth for r in sure])) if sure else 1.0,
        false_claims=len(claimed) / max(1, len(without)),
    )


def table(records: Sequence[Record]) -> str:
    """How often the favourite is right, in all and where it is sure."""
    found = summarise(records)
    rows = [
        ["data sets", f"{len(records)}"],
        ["favourite is the truth", f"{100 * found.right:.1f} %"],
        ["verdicts with at least 90 %", f"{found.confident}"],
        ["of these right", f"{100 * found.right_if_confident:.1f} %"],
        ["symmetry claimed with 90 % where there is none", f"{100 * found.false_claims:.1f} %"],
    ]
    return markdown(["", ""], rows)


def draw(records: Sequence[Record]) -> Figure:
    """Draw how often the favourite is right against the probability it was given."""
    stated = np.array([r.probability for r in records])
    right = np.array([r.favourite == r.truth for r in records], float)
    figure = Figure(figsize=(4, 3.6))
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], "--", color=COLORS["trivial"], linewidth=1)
    for low, high in pairwise(EDGES):
        inside = (stated >= low) & (stated < high)
        if not inside.any():
            continue
        mean, count = right[inside].mean(), inside.sum()
        error = np.sqrt(max(mean * (1 - mean), 0.25 / count) / count)
        axis.errorbar(stated[inside].mean(), mean, yerr=error, fmt="o", color=COLORS["rot90"], capsize=3)
        beside = (6, -12) if high > 1 else (-14, 5)  # the last two points are close to one another
        axis.annotate(f"{count}", (stated[inside].mean(), mean), xytext=beside, textcoords="offset points")
    axis.set(xlabel="stated probability of the favourite", ylabel="share that is right", ylim=(-0.05, 1.05))
    axis.set_xlim(right=1.1)
    figure.tight_layout()
    return figure


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    found = summarise(records)
    return {
        "data sets": Claim(
            f"{len(records)} small data sets whose symmetry is known: images, sequences, sets, signs and "
            f"channels, with and without symmetry, easy and hard, n from {min(SIZES)} to {max(SIZES):,}.",
            {r.family for r in records} == set(FAMILIES) and {r.n for r in records} == set(SIZES),
        ),
        "honest": Claim(
            "Of the verdicts with at least 90 %, at least 90 % are right.", found.right_if_confident >= SURE
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"synthetic": Part(recipes, SEEDS)},
    run=run,
    quick=lambda recipe: replace(recipe, n=QUICK_EXAMPLES),
    table=table,
    draw=draw,
    claims=claims,
    depends_on=FITS,
)
