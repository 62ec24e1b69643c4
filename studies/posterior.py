"""Does the posterior name the symmetry that is there? Data whose symmetry is known, many seeds."""

from typing import Any

import numpy as np

from invariantnet.data import VARIANTS
from studies.fits import TABULAR, FitRecipe
from studies.results import Flat
from studies.run import Record

FULL_EPOCHS = 20
EVERY_IMAGE_GROUP = ("rot90", "rot180", "hflip", "vflip", "flips", "transpose", "d4", "shifts")
FULL = 60_000
MANY = 4
FULL_SEEDS = 3
SECOND_OPINIONS = 5
"""All of MNIST and a second opinion take long: so many of the seeds."""


def posterior(seed: int) -> list[FitRecipe]:
    """The paper's four data sets and two more, with 1,000 to 60,000 examples; and two tables."""
    recipes = [
        FitRecipe(f"mnist:{variant}", n, seed, truth, second_opinion=seed < SECOND_OPINIONS)
        for n in (5000, 1000)
        for variant, truth in VARIANTS.items()
    ]
    recipes.append(FitRecipe("mnist:d4", 5000, seed, "d4"))
    recipes.append(FitRecipe("mnist:rotated", 5000, seed, "rot90", groups=("rot180", "rot90")))
    recipes += [FitRecipe(f"table:{name}", n, seed, "trivial") for name, (_, n) in TABULAR.items()]
    recipes += [FitRecipe(f"mnist:{v}", 5000, seed, truth, "heldout") for v, truth in VARIANTS.items()]
    recipes += [
        FitRecipe(f"mnist:{v}", 5000, seed, truth, groups=EVERY_IMAGE_GROUP) for v, truth in VARIANTS.items()
    ]
    if seed < FULL_SEEDS:
        recipes += full(seed)
    return [*recipes, FitRecipe("mnist:rotated", 5000, seed, "rot90", backbone="cnn", epochs=12)]


def full(seed: int) -> list[FitRecipe]:
    """All of MNIST, in its four variants."""
    return [FitRecipe(f"mnist:{v}", FULL, seed, truth, epochs=FULL_EPOCHS) for v, truth in VARIANTS.items()]


def flatten(recipes: list[FitRecipe], records: list[Record]) -> Flat:
    """The committed fields."""
    fields = ("names", "probabilities", "log_evidence")
    return [
        {
            "method": r.method,
            "data": r.data if r.data.startswith("table") else r.data.partition(":")[2],
            "n": r.n,
            "seed": r.seed,
            **{field: record[field] for field in fields},
            "truth": r.truth,
            "groups": list(r.groups),
            "backbone": r.backbone,
            "accuracy": record["accuracy"]["own"],
            **{field: record[field] for field in ("laplace", "seconds") if field in record},
        }
        for r, record in zip(recipes, records, strict=True)
    ]


KIND = ("method", "data", "n", "groups", "truth", "backbone")


def scores(records: Flat) -> list[dict[str, Any]]:
    """Per data set and size: how often the truth was the favourite, and how small its posterior got."""
    rows = []
    for kind in dict.fromkeys(_kind(r) for r in records):
        found = [r for r in records if _kind(r) == kind]
        first = found[0]
        of_truth = [r["probabilities"][r["names"].index(r["truth"])] for r in found]
        right = sum(r["names"][int(np.argmax(r["probabilities"]))] == r["truth"] for r in found)
        groups = first["groups"]
        rows.append(
            {
                **{field: first[field] for field in KIND},
                "candidates": ", ".join(groups) if len(groups) < MANY else f"all {len(groups)} of images",
                "favourite": f"{right} of {len(found)}",
                "lowest": min(of_truth),
                "accuracy": float(np.mean([r["accuracy"] for r in found])),
            }
        )
    return rows


def _kind(record: dict[str, Any]) -> tuple[Any, ...]:
    return (*(record[field] for field in KIND if field != "groups"), tuple(record["groups"]))
