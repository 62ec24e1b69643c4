"""Figure 2: how accurate is InvariantNet on permuted, rotated and flipped images, beside its rivals and ours?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS
from studies.framework.markdown import markdown, spread
from studies.framework.records import select
from studies.inference import posterior
from studies.inference.fits import FitRecipe, FitResult
from studies.paper import figure1, published
from studies.paper.networks import NetworkRecipe, NetworkResult, Reading, invariant_net_recipe

VARIANTS = ("permuted", "rotated", "flipped")
"""The data sets, from left to right."""

FIXED = {"RotNet": "rot90", "FlipNet": "flips"}
"""Networks whose symmetry is given."""

MODEL_ORDER = (
    "ours (evidence)",
    "ours (heldout, n = 5,000)",
    "InvariantNet (rot)",
    "InvariantNet (flip)",
    *FIXED,
    "MLP",
)
"""Box plots from left to right."""


@dataclass(frozen=True)
class Record:
    """The test accuracy of one network."""

    method: str
    model: str
    data: str
    seed: int
    accuracy: float
    """Percent."""


def printed(seed: int) -> list[NetworkRecipe]:
    """InvariantNet, two networks that are told their symmetry, and an MLP."""
    recipes = []
    for data in (f"mnist:{variant}" for variant in VARIANTS):
        recipes += [invariant_net_recipe(version, data, seed) for version in ("rot", "flip")]
        recipes += [
            NetworkRecipe("baseline", name, data, seed, (group,), reading=Reading(scheme=(1.0, 0.0)))
            for name, group in FIXED.items()
        ]
        recipes.append(NetworkRecipe("baseline", "MLP", data, seed))
    return recipes


def held_out(seed: int) -> list[FitRecipe]:
    """The fits of Figure 1 that this figure shows."""
    return [r for r in figure1.held_out(seed) if r.variant in VARIANTS]


def by_evidence(seed: int) -> list[FitRecipe]:
    """The fits of Figure 1 that this figure shows."""
    return [r for r in posterior.all_of_mnist(seed) if r.variant in VARIANTS]


def keep(recipe: figure1.AnyRecipe, result: NetworkResult | FitResult) -> list[Record]:
    """Keep the accuracy on images like those of training."""
    return [Record(recipe.method, model_name(recipe), recipe.variant, recipe.seed, result.accuracy["own"])]


def model_name(recipe: figure1.AnyRecipe) -> str:
    """Name a model as the figure does."""
    if isinstance(recipe, NetworkRecipe):
        return recipe.model
    return f"ours ({recipe.method}, n = {recipe.n:,})" if recipe.method == "heldout" else f"ours ({recipe.method})"


def table(records: Sequence[Record]) -> str:
    """The numbers behind the box plots."""
    rows = []
    for model in dict.fromkeys(r.model for r in records):
        cells = [[r.accuracy for r in select(records, model=model, data=data)] for data in VARIANTS]
        rows.append([model, *(spread(cell) if cell else "–" for cell in cells)])
    return markdown(["model", *VARIANTS], rows)


def draw(records: Sequence[Record]) -> Figure:
    """Draw box plots, a panel per data set."""
    figure = Figure(figsize=(10, 3.2))
    axes = figure.subplots(1, len(VARIANTS))
    for axis, data in zip(axes, VARIANTS, strict=True):
        found = select(records, data=data)
        models = [m for m in MODEL_ORDER if select(found, model=m)]
        boxes = [[r.accuracy for r in select(found, model=m)] for m in models]
        axis.boxplot(boxes, widths=0.6, medianprops={"color": COLORS["rot90"]})
        axis.set_xticks(range(1, len(models) + 1), models, rotation=35, ha="right")
        axis.set_title(f"{figure1.PANELS[data]} data set")
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("test accuracy, %")
    figure.tight_layout()
    return figure


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""

    def gap(model: str, rival: str, data: str) -> float:
        """Percentage points by which a model is more accurate than its rival, on average over seeds."""
        means = [np.mean([r.accuracy for r in select(records, model=m, data=data)]) for m in (model, rival)]
        return float(means[0] - means[1])

    rot = gap("InvariantNet (rot)", "RotNet", "rotated")
    flip = gap("InvariantNet (flip)", "FlipNet", "flipped")
    mlp = gap("MLP", "InvariantNet (rot)", "rotated")
    told = [gap("ours (evidence)", *rival) for rival in (("RotNet", "rotated"), ("FlipNet", "flipped"))]
    plain = [gap("ours (evidence)", "MLP", data) for data in ("rotated", "flipped", "permuted")]
    return {
        "keeps up": Claim(
            f"On rotated images InvariantNet is {rot:+.1f} points from RotNet, on flipped ones {flip:+.1f} from "
            "FlipNet: as in the paper, it keeps up with them.",
            max(abs(rot), abs(flip)) <= published.CLOSE,
        ),
        "a plain MLP is better": Claim(
            f"But a plain MLP of the same width is {mlp:+.1f} points from it on rotated images: with 48,000 "
            "examples in all poses, keeping only orbit sums of the input costs more than the symmetry gains.",
            mlp > 0,
        ),
        "ours": Claim(
            f"Ours is {told[0]:+.1f} points from RotNet on rotated images and {told[1]:+.1f} from FlipNet on "
            f"flipped ones; from the MLP it is {plain[0]:+.1f} on rotated, {plain[1]:+.1f} on flipped and "
            f"{plain[2]:+.1f} on permuted images.",
            min(*told, *plain) > 0,
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={
        "paper": Part(printed, published.SEEDS),
        "heldout": Part(held_out, figure1.HELD_OUT_SEEDS),
        "evidence": Part(by_evidence, posterior.ALL_SEEDS),
    },
    run=figure1.run,
    keep=keep,
    quick=figure1.quick,
    table=table,
    draw=draw,
    claims=claims,
    depends_on=figure1.STUDY.depends_on,
)
