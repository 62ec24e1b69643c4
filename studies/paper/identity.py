"""Figure 1 once more: where does π converge if the branch without symmetry sees every input?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.framework import Claim, Part, Study
from studies.framework.freshness import NETWORKS
from studies.framework.markdown import markdown
from studies.framework.records import select
from studies.paper import figure1, networks
from studies.paper.networks import NetworkRecipe, NetworkResult, Reading
from studies.paper.published import FIGURE_1

SEEDS = 3
"""π ends at the same corner in every seed."""

WORDS = {"rot90": "rotations", "flips": "flips", "trivial": "no symmetry"}
"""What the table calls the schemes."""


@dataclass(frozen=True)
class Record(figure1.Record):
    """The path of π with a full identity."""


def recipes(seed: int) -> list[NetworkRecipe]:
    """The networks of Figure 1 with one candidate."""
    found = [r for r in figure1.printed(seed) if r.variant != "plain"]
    return [replace(r, reading=Reading(identity="full")) for r in found]


def keep(recipe: NetworkRecipe, result: NetworkResult) -> list[Record]:
    """Keep the path."""
    return [Record(recipe.method, recipe.variant, recipe.seed, result.names, result.trajectory)]


def table(records: Sequence[figure1.Record]) -> str:
    """Where π ends: in the paper, as printed, and with a full identity."""
    full = [r for r in records if isinstance(r, Record)]
    printed = [r for r in select(records, method="paper") if not isinstance(r, Record)]

    def ending(found: Sequence[figure1.Record], data: str, names: tuple[str, ...]) -> str:
        ends = [r.trajectory[-1] for r in select(found, data=data, names=names)]
        if not ends:
            return "–"
        mean = np.mean(ends, axis=0)
        return f"{WORDS[names[int(mean.argmax())]]} ({mean.max():.2f})"

    rows = [
        [data, " / ".join(names), FIGURE_1[data], ending(printed, data, names), ending(full, data, names)]
        for data, names in dict.fromkeys((r.data, r.names) for r in printed)
    ]
    return markdown(["data", "schemes", "the paper", "as printed", "with a full identity"], rows)


def claims(records: Sequence[figure1.Record]) -> dict[str, Claim]:
    """What the page says."""
    full = [r for r in records if isinstance(r, Record)]
    return {
        "leaves the symmetries": Claim(
            "With a full identity the opposite happens: π leaves the symmetries on every data set.",
            all(r.trajectory[-1][-1] > 0.5 for r in full),
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"paper": Part(recipes, SEEDS)},
    run=networks.run_network,
    keep=keep,
    quick=networks.quick,
    table=table,
    claims=claims,
    reads=("figure1",),
    depends_on=(*NETWORKS, "studies.paper.networks"),
)
