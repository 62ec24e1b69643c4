"""Readings of the text: which of them gives the paper's first row of Table 1?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.datasets import SHIFTS
from studies.framework import Claim, Part, Study
from studies.framework.freshness import NETWORKS
from studies.framework.markdown import markdown, spread
from studies.framework.records import select
from studies.paper import networks, table1
from studies.paper.networks import NetworkRecipe, NetworkResult, Reading
from studies.paper.published import CLOSE, TABLE_1, cell

SEEDS = 3
"""Differences between readings are ten times those between seeds."""


@dataclass(frozen=True)
class Difference:
    """What a reading changes about InvNet as printed."""

    reading: Reading = networks.PRINTED
    epochs: int = 60
    without: tuple[int, ...] = (6, 9)


READINGS = {
    "as printed": Difference(),
    "orbit indicators instead of unit vectors": Difference(Reading(basis="indicator")),
    "one draw of π per neuron": Difference(Reading(draw="neuron")),
    "one hard draw of π per neuron": Difference(Reading(draw="neuron", hard=True)),
    "one hard draw of π per batch": Difference(Reading(hard=True)),
    "prior counted once per example": Difference(Reading(prior_per_example=True)),
    "prior per example, indicators": Difference(Reading(basis="indicator", prior_per_example=True)),
    "prior per example, draws per neuron": Difference(Reading(draw="neuron", prior_per_example=True)),
    "prior on the logits": Difference(Reading(parametrisation="logits")),
    "with 6 and 9": Difference(without=()),
    "5 epochs": Difference(epochs=5),
    "5 epochs, indicators": Difference(Reading(basis="indicator"), epochs=5),
    "identity with a branch of its own": Difference(Reading(identity="full")),
    "identity of its own, prior per example": Difference(Reading(identity="full", prior_per_example=True)),
    "no identity: half rotations, half flips": Difference(Reading(scheme=(0.5, 0.5, 0.0))),
    "no identity, indicators": Difference(Reading(basis="indicator", scheme=(0.5, 0.5, 0.0))),
    "a tenth of identity": Difference(Reading(scheme=(0.45, 0.45, 0.1))),
}
"""Each way in which the text can be read."""


@dataclass(frozen=True)
class Record:
    """Test accuracy of InvNet in one reading, in percent."""

    reading: str
    seed: int
    plain: float
    rotated: float
    flipped: float
    pi: tuple[float, ...]


def recipes(seed: int) -> list[NetworkRecipe]:
    """InvNet in every reading."""
    base = table1.invnet(seed)
    return [replace(base, reading=d.reading, epochs=d.epochs, without=d.without) for d in READINGS.values()]


def keep(recipe: NetworkRecipe, result: NetworkResult) -> list[Record]:
    """Keep the accuracies under the name of the reading."""
    difference = Difference(recipe.reading, recipe.epochs, recipe.without)
    # A quick recipe has fewer epochs than any reading.
    names = [name for name, d in READINGS.items() if replace(d, epochs=difference.epochs) == difference]
    exact = [name for name in names if READINGS[name] == difference]
    pi = result.pi or recipe.reading.scheme or ()
    accuracy = {shift: result.accuracy[shift] for shift in SHIFTS}
    return [Record((exact or names)[0], recipe.seed, **accuracy, pi=pi)]


def table(records: Sequence[Record]) -> str:
    """One row per reading: π and the three numbers."""
    rows = [["*the paper*", "–", *(cell("InvNet", shift) for shift in SHIFTS)]]
    for reading in dict.fromkeys(r.reading for r in records):
        found = select(records, reading=reading)
        pi = " / ".join(f"{p:.2f}" for p in np.array([r.pi for r in found]).mean(0))
        rows.append([reading, pi, *(spread([getattr(r, s) for r in found]) for s in SHIFTS)])
    return markdown(["reading", "π (rot / flip / none)", *SHIFTS], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    paper = np.array([TABLE_1["InvNet"][s][0] for s in SHIFTS])
    means = {
        reading: np.mean([[getattr(r, s) for s in SHIFTS] for r in select(records, reading=reading)], axis=0)
        for reading in dict.fromkeys(r.reading for r in records)
    }

    def nearest(readings: list[str]) -> str:
        found = min(readings, key=lambda reading: math.dist(means[reading], paper))
        return f"*{found}* ({' / '.join(f'{v:.1f}' for v in means[found])})"

    given = [reading for reading in means if READINGS[reading].reading.scheme]
    learned = [reading for reading in means if reading not in given]
    return {
        "no reading fits": Claim(
            f"No reading gives all three numbers within {CLOSE} points.",
            not any((abs(mean - paper) <= CLOSE).all() for mean in means.values()),
        ),
        "nearest": Claim(
            f"With a learned π the nearest is {nearest(learned)}, with a given one {nearest(given)}."
        ),
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
    depends_on=(*NETWORKS, "studies.paper.networks"),
)
