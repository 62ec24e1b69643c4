"""What does a ladder cost? The verdict on eight rungs of rotation beside that on four groups."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from invariantnet.estimator import InvariantClassifier
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.ranges.tasks import SHAPE, split

EXAMPLES, SEEDS = 5000, 3
"""Digits to learn from, and draws of them."""
DATA = "mnist:rotation:90"
"""Digits turned by up to 90°."""
MOST_RATIO = 3.0
"""Largest CPU time of the ladder in that of the four groups."""


@dataclass(frozen=True)
class CostRecipe:
    """One draw."""

    seed: int
    n: int = EXAMPLES
    backbone: str = "auto"


@dataclass(frozen=True)
class Record:
    """CPU seconds of both verdicts."""

    n: int
    seed: int
    backbone: str
    ladder: float
    groups: float
    favourite: str


def run(recipe: CostRecipe) -> list[Record]:
    """Compare twice."""
    data = split(DATA, recipe.n, recipe.seed)

    def compared(*symmetries: str) -> InvariantClassifier:
        clf = InvariantClassifier(symmetries, SHAPE, backbone=recipe.backbone, random_state=recipe.seed)
        clf.compare(data.x, data.y)
        return clf

    ladder, groups = compared("rotation"), compared("rot90", "flips")
    first, second = (round(clf.cpu_seconds_["comparison"], 1) for clf in (ladder, groups))
    return [Record(recipe.n, recipe.seed, recipe.backbone, first, second, ladder.posterior_.favourite)]


def table(records: Sequence[Record]) -> str:
    """One row per draw."""
    rows = [
        [str(r.seed), f"{r.n:,}", f"{r.ladder:.0f}", f"{r.groups:.0f}", f"{r.ladder / r.groups:.1f}", r.favourite]
        for r in records
    ]
    return markdown(["seed", "n", "ladder, CPU s", "four groups, CPU s", "ratio", "favourite"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    ratio = sum(r.ladder for r in records) / max(sum(r.groups for r in records), 1e-9)
    return {
        "ratio": Claim(
            f"The verdict on the ladder takes {ratio:.1f} times the CPU time of the verdict on four groups; at "
            f"most {MOST_RATIO:.0f} times was asked for."
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"draws": Part(lambda seed: [CostRecipe(seed)], SEEDS)},
    run=run,
    quick=lambda recipe: replace(recipe, n=100, backbone="plain mlp"),
    table=table,
    claims=claims,
    depends_on=(*FITS, "studies.ranges.tasks"),
    alone=True,
)
