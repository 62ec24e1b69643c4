"""How much time and memory do photographs of ordinary size take that pass through a frozen body?

Photographs lie in an array on disk. Each measurement is a process of its own, whose peak is recorded: reading, the
passes through EfficientNet-lite0, the comparison of `hflip` with no symmetry, and the final head.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

import invariantnet as inv
from studies.backbones.bodies import lite0, missing_photographs
from studies.backbones.images import crops
from studies.cost.timing import peak_megabytes
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown

AT_ONCE = 50
"""Crops that are written together."""
MOST_MEGABYTES = 4096
"""Memory that a fit may take."""


@dataclass(frozen=True)
class SizeRecipe:
    """Photographs of one size."""

    side: int
    examples: int
    seed: int = 0


@dataclass(frozen=True)
class Record:
    """Time and memory of a fit."""

    side: int
    examples: int
    copies: int
    """Copies of all photographs that passed through the body."""
    body_seconds: float
    """CPU seconds of their passes."""
    fit_seconds: float
    """CPU seconds of everything."""
    peak_megabytes: int
    """Most memory that the process had, torch included."""


def run(recipe: SizeRecipe) -> list[Record]:
    """Measure in a process of its own."""
    code = "import sys; from studies.backbones.image_sizes import measure; measure(sys.argv[1])"
    arguments = [sys.executable, "-c", code, json.dumps(asdict(recipe))]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return [Record(**json.loads(done.stdout.splitlines()[-1]))]


def measure(text: str) -> None:
    """Fit, and print the record as JSON."""
    recipe = SizeRecipe(**json.loads(text))
    with tempfile.TemporaryDirectory() as scratch:
        x, y = _written(recipe, Path(scratch) / "x.npy")
        clf = inv.InvariantClassifier(["hflip"], backbone=lite0(), n_networks=1, random_state=recipe.seed)
        start = time.process_time()
        clf.fit(x, y)
        whole = time.process_time() - start
    record = Record(
        recipe.side,
        recipe.examples,
        2 * recipe.examples,
        round(clf.cpu_seconds_["body"], 1),
        round(whole, 1),
        peak_megabytes(),
    )
    print(json.dumps(asdict(record)))


def _written(recipe: SizeRecipe, file: Path) -> tuple[np.memmap, np.ndarray]:
    """Crops as numbers from 0 to 1 in a file, part by part."""
    shape = (recipe.examples, 3, recipe.side, recipe.side)
    x = open_memmap(file, "w+", np.float32, shape)
    labels = []
    for start in range(0, recipe.examples, AT_ONCE):
        part, y = crops("mirrored", min(AT_ONCE, recipe.examples - start), recipe.side, recipe.seed + start)
        x[start : start + len(part)] = part
        labels.append(y)
    x.flush()
    return open_memmap(file, "r"), np.concatenate(labels)


def table(records: Sequence[Record]) -> str:
    """One row per size."""
    rows = [
        [
            f"3×{r.side}×{r.side}",
            f"{r.examples:,}",
            f"{1000 * r.body_seconds / r.copies:.0f} ms",
            f"{1000 * r.fit_seconds / r.examples:.0f} ms",
            f"{r.fit_seconds:.0f} s",
            f"{r.peak_megabytes:,} MB",
        ]
        for r in records
    ]
    header = ["size", "photographs", "body, per copy", "all, per photograph", "all", "most memory"]
    return markdown(header, rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    most = max(r.peak_megabytes for r in records)
    return {"memory": Claim(f"Memory stays below 4 GB: at most {most:,} MB.", most < MOST_MEGABYTES)}


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    run=run,
    parts={
        "large": Part(lambda seed: [SizeRecipe(224, 100, seed)], lacks=missing_photographs),
        "many": Part(lambda seed: [SizeRecipe(128, 2000, seed)], lacks=missing_photographs),
    },
    table=table,
    claims=claims,
    alone=True,
    depends_on=(*FITS, "studies.backbones", "studies.truth.real_sets"),
)
