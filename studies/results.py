"""From stored runs to the flat records that are committed, drawn and tabulated."""

import json
import platform
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from studies.recipes import READINGS, Recipe
from studies.run import Record
from invariantnet._system.files import write_json

Flat = list[dict[str, Any]]
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn")


def flatten(what: str, recipes: Sequence[Recipe], records: Iterable[Record]) -> Flat:
    """Records in the order of the recipes, with the fields that each experiment promises."""
    pairs = list(zip(recipes, records, strict=True))
    if what in ("figure1", "identity"):
        return [
            {
                "method": r.method,
                "data": variant(r),
                "seed": r.seed,
                "names": record["names"],
                "trajectory": record["trajectory"],
            }
            for r, record in pairs
        ]
    if what == "figure2":
        return [
            {
                "method": r.method,
                "model": r.model,
                "data": variant(r),
                "seed": r.seed,
                "accuracy": record["accuracy"]["own"],
            }
            for r, record in pairs
        ]
    if what == "table1":
        return [
            {"method": r.method, "model": r.model, "seed": r.seed, **record["accuracy"], "pi": record["pi"]}
            for r, record in pairs
        ]
    readings = list(READINGS)
    return [
        {
            "reading": readings[i % len(readings)],
            "seed": r.seed,
            **record["accuracy"],
            "pi": record["pi"] or list(dict(r.layer).get("scheme", ())),
        }
        for i, (r, record) in enumerate(pairs)
    ]


def write(folder: Path, name: str, flat: Flat) -> Path:
    """Store flat records as `name.json`; those of methods that are not among the new ones stay."""
    path = folder / f"{name}.json"
    methods = {r.get("method") for r in flat}
    others = [r for r in read(folder, name) if r.get("method") not in methods] if path.exists() else []
    write_json(path, others + flat)
    return path


def read(folder: Path, name: str) -> Flat:
    """Read flat records, or say which command makes them."""
    path = folder / f"{name}.json"
    try:
        records = json.loads(path.read_text())
    except (OSError, ValueError):
        raise ValueError(
            f"{path} is missing or damaged: run `invariantnet reproduce {name} --out {folder}`."
        ) from None
    if not isinstance(records, list):
        raise ValueError(f"{path} is not a list of records: it comes from another program.")
    return records


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


def variant(recipe: Recipe) -> str:
    """The data set without its family: `permuted`, `rotated`, `flipped` or `plain`."""
    return recipe.data.partition(":")[2]
