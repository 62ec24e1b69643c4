"""Seeing on a sample that changed code gives the same numbers, so that other records need not be made again."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from invariantnet._system.files import locked, writable_folder
from studies.framework.records import AnyStudy
from studies.framework.running import Store, Task, outcomes

TIMES = ("seconds", "minutes")
"""Words in the names of fields that hold CPU time, which is never the same twice."""
SHOWN = 3
"""Recipes that an error names at most."""


def confirm(study: AnyStudy, folder: Path, *, sample: int, n_jobs: int | None = None, seed: int = 0) -> int:
    """Run some recipes with stale records again; if all numbers are equal, note so in the other records.

    What was run again is stored either way.

    Args:
        study: The study.
        folder: Where its records are.
        sample: How many recipes to run again.
        n_jobs: Processes at once; by default one per core.
        seed: Decides which recipes are drawn.

    Returns:
        How many records were stale.

    Raises:
        ValueError: If a number differs, no record is stale, or there is nothing but times to compare.
    """
    if study.alone:
        raise ValueError(f"{study.name} measures time or memory, which no sample confirms: run it again.")
    if sample < 1:
        raise ValueError(f"a sample of {sample} confirms nothing: ask for at least one.")
    with locked(writable_folder(folder)):
        store = Store(study, folder)
        stale = [recipe for recipe in study.plan() if store.state(recipe) == "stale"]
        if not stale:
            raise ValueError(f"{study.name} has no stale records: there is nothing to confirm.")
        chosen = [stale[k] for k in np.random.default_rng(seed).permutation(len(stale))[:sample]]
        before = {recipe: _numbers(store.records_of(recipe)) for recipe in chosen}
        differ = []
        tasks = {Task(recipe, study.run): [store] for recipe in chosen}
        for task, outcome in outcomes(tasks, n_jobs or os.cpu_count() or 1):
            store.add(task.recipe, outcome)
            if _numbers(store.records_of(task.recipe)) != before[task.recipe]:
                differ.append(task.recipe)
        if differ:
            named = "; ".join(map(str, differ[:SHOWN]))
            raise ValueError(
                f"{study.name}: {len(differ)} of {len(chosen)} recipes give other numbers now ({named}): "
                f"python -m studies run {study.name} makes all records again."
            )
        store.confirm([r for r in stale if r not in before], len(chosen), len(stale))
    return len(stale)


def _numbers(records: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Everything but times, as it is stored."""
    return [
        {name: repr(value) for name, value in asdict(record).items() if not any(word in name for word in TIMES)}
        for record in records
    ]
