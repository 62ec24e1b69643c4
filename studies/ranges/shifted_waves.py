"""Are shifts found in one-dimensional data? Ten wave forms in a window, shifted, stretched and noisy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int64

from invariantnet.estimator import InvariantClassifier
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown

LENGTH, WAVE, CLASSES = 64, 20, 10
"""Steps of the window and of a wave form, and number of wave forms."""
SHIFT, STRETCH, NOISE = 12.0, 1.15, 0.25
"""Largest shift in steps, largest factor of length, and standard deviation of the noise."""
EXAMPLES, SEEDS = 1000, 10
"""Waves to learn from, and draws of them."""


@dataclass(frozen=True)
class WaveRecipe:
    """One draw."""

    seed: int
    n: int = EXAMPLES
    backbone: str = "auto"


@dataclass(frozen=True)
class Record:
    """The verdict on shifts."""

    n: int
    seed: int
    kind: str
    """The most probable kind of symmetry."""
    certainty: float
    median: float
    interval: tuple[float, float]
    model: str


def waves(n: int, seed: int) -> tuple[Float[np.ndarray, "n length"], Int64[np.ndarray, " n"]]:
    """Draw waves: smooth forms that are the same for all seeds, at random places."""
    forms = np.random.default_rng(0).normal(size=(CLASSES, WAVE // 4))
    rng = np.random.default_rng(seed)
    y = np.arange(n) % CLASSES
    knots = np.linspace(-1, 1, WAVE // 4 + 2)
    x = rng.normal(0, NOISE, size=(n, LENGTH))
    for i, form in enumerate(forms[y]):
        centre = LENGTH / 2 + rng.uniform(-SHIFT, SHIFT)
        half = WAVE / 2 * STRETCH ** rng.uniform(-1, 1)
        x[i] += np.interp((np.arange(LENGTH) - centre) / half, knots, [0.0, *form, 0.0])
    return x.astype(np.float32), y


def run(recipe: WaveRecipe) -> list[Record]:
    """Compare shifts with no symmetry."""
    x, y = waves(recipe.n, recipe.seed)
    clf = InvariantClassifier(["time-shift"], (LENGTH,), backbone=recipe.backbone, random_state=recipe.seed)
    found = clf.compare(x, y)
    reach = found.ranges["time-shift"]
    model = dict(zip(found.names, found.best_models, strict=True))[found.favourite]
    kind = found.favourite.partition(":")[0]
    return [Record(recipe.n, recipe.seed, kind, round(found.certainty, 4), reach.median, reach.interval, model)]


def table(records: Sequence[Record]) -> str:
    """One row per draw."""
    rows = [
        [
            str(r.seed),
            f"{r.n:,}",
            r.kind,
            f"{r.certainty:.3f}",
            f"{r.median:.1f}",
            f"{r.interval[0]:.1f} to {r.interval[1]:.1f}",
            r.model,
        ]
        for r in records
    ]
    return markdown(["seed", "n", "symmetry", "p", "reach, steps", "95 % interval", "model"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    right = sum(r.kind == "time-shift" and r.certainty >= 0.9 for r in records)
    return {
        "found": Claim(
            f"Shifts were found with at least 90 % in {right} of {len(records)} draws; the waves were shifted by "
            f"up to {SHIFT:.0f} steps."
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"draws": Part(lambda seed: [WaveRecipe(seed)], SEEDS)},
    run=run,
    quick=lambda recipe: replace(recipe, n=100, backbone="plain mlp"),
    table=table,
    claims=claims,
    depends_on=FITS,
)
