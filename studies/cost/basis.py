"""What does an invariant basis cost on images too large for a dense operator?"""

from collections.abc import Sequence
from dataclasses import dataclass

import invariantnet as inv
from invariantnet.symmetries.lookup import symmetry
from studies.cost.timing import best_times, peak_megabytes
from studies.framework import Part, Study
from studies.framework.markdown import markdown


@dataclass(frozen=True)
class BasisRecipe:
    """The basis of one symmetry."""

    symmetry: str = "d4"
    shape: tuple[int, ...] = (3, 224, 224)
    seed: int = 0


@dataclass(frozen=True)
class Record:
    """Time and memory from the name of the symmetry to its basis."""

    symmetry: str
    shape: tuple[int, ...]
    seconds: float
    megabytes: int
    """Peak above the start."""


def run(recipe: BasisRecipe) -> list[Record]:
    """Measure one basis."""
    before = peak_megabytes()
    case = {"basis": lambda: inv.invariant_basis(symmetry(recipe.symmetry, shape=recipe.shape))}
    seconds = best_times(case, repeats=1, calls=1)["basis"]
    return [Record(recipe.symmetry, recipe.shape, round(seconds, 3), peak_megabytes() - before)]


def table(records: Sequence[Record]) -> str:
    """Time and memory."""
    rows = [[r.symmetry, "×".join(map(str, r.shape)), f"{r.seconds:.2f} s", f"{r.megabytes} MB"] for r in records]
    return markdown(["symmetry", "shape", "time", "memory"], rows)


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"large images": Part(lambda _: [BasisRecipe()])},
    run=run,
    table=table,
    alone=True,
    depends_on=("symmetries", "studies.cost.timing"),
)
