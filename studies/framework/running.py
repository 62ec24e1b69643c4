"""Running recipes: every finished one is stored at once, so that an interrupted run goes on where it stopped."""

import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import joblib

from invariantnet._system.files import locked, writable_folder
from invariantnet._system.processes import watched
from invariantnet._system.progress import progress_bar
from invariantnet._system.torch_state import threads
from studies.framework.freshness import digest, settings
from studies.framework.records import AnyStudy, Confirmation, Piece, current_version, read, write
from studies.framework.study import Recipe

State = Literal["fresh", "confirmed", "stale", "missing", "unplanned"]
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn")
"""Packages whose versions may change a number."""


@dataclass(frozen=True)
class Task:
    """A recipe, and the function that runs it; tasks with equal recipes are equal."""

    recipe: Recipe
    run: Callable[[Any], Any] = field(compare=False)


@dataclass(frozen=True)
class Outcome:
    """What a worker sends back."""

    result: Any
    machine: str
    cpu_seconds: float


class Store:
    """The records of one study in one folder.

    Args:
        study: The study.
        folder: Where its records are.
        seeds: Seeds that the plan covers beside those of the study.
        quick: The plan is that of the quick version.
    """

    def __init__(self, study: AnyStudy, folder: Path, *, seeds: int | None = None, quick: bool = False) -> None:
        self.study, self.folder = study, folder
        self.planned = [_key(r) for count in (None, seeds) for r in study.plan(count, quick=quick)]
        self.pieces = {json.dumps(piece.recipe, sort_keys=True): piece for piece in read(study, folder)}

    def state(self, recipe: Recipe) -> State:
        """Say whether the recipe has a record, and whether the code would still give the same."""
        piece = self.pieces.get(_key(recipe))
        if piece is None:
            return "missing"
        now = digest(self.study, recipe)
        if piece.digest == now:
            return "fresh"
        return "confirmed" if piece.confirmed and piece.confirmed.digest == now else "stale"

    def count(self) -> Counter[State]:
        """Count the recipes of the plan by their state, and the pieces that no recipe of the plan would give."""
        states: Counter[State] = Counter(self.state(r) for r in self.study.plan())
        states["unplanned"] = len(self.pieces.keys() - set(self.planned))
        return states

    def add(self, recipe: Recipe, outcome: Outcome) -> None:
        """Store the result of a recipe."""
        self.pieces[_key(recipe)] = Piece(
            settings(recipe),
            current_version(),
            digest(self.study, recipe),
            outcome.machine,
            outcome.cpu_seconds,
            tuple(self.study.keep(recipe, outcome.result)),
        )
        self._write([*self.planned, *self.pieces])

    def records_of(self, recipe: Recipe) -> tuple[Any, ...]:
        """The stored records of a recipe."""
        return self.pieces[_key(recipe)].records

    def confirm(self, recipes: Sequence[Recipe], sampled: int, of: int) -> None:
        """Note that the code as it is now gave the same numbers on a sample.

        Args:
            recipes: The recipes whose records are kept.
            sampled: How many others were run again.
            of: How many there were to draw from.
        """
        for recipe in recipes:
            seen = Confirmation(digest(self.study, recipe), sampled, of)
            self.pieces[_key(recipe)] = replace(self.pieces[_key(recipe)], confirmed=seen)
        self._write([*self.planned, *self.pieces])

    def drop_unplanned(self) -> None:
        """Forget pieces of recipes that the study no longer has."""
        if self.pieces.keys() - set(self.planned):
            self._write(self.planned)

    def _write(self, order: Sequence[str]) -> None:
        write(self.study, self.folder, [self.pieces[key] for key in dict.fromkeys(order) if key in self.pieces])


def run_studies(
    studies: Sequence[AnyStudy],
    folder: Path,
    *,
    seeds: int | None = None,
    parts: Sequence[str] | None = None,
    quick: bool = False,
    n_jobs: int | None = None,
) -> None:
    """Run every recipe that has no fresh record.

    Args:
        studies: The studies to run; recipes that they have in common are run once.
        folder: Where records are read and stored.
        seeds: Take the seeds 0 to N-1, instead of as many as each part of a study has.
        parts: Names of the parts to run; by default all that this machine can run.
        quick: Make every recipe small.
        n_jobs: Processes at once; by default one per core.

    Raises:
        ValueError: If a number is below one, or another process is writing to the folder.
    """
    for number, what in ((seeds, "seeds"), (n_jobs, "processes")):
        if number is not None and number < 1:
            raise ValueError(f"{number} {what}: ask for at least one.")
    with locked(writable_folder(folder)):
        stores = [Store(study, folder, seeds=seeds, quick=quick) for study in studies]
        wanted: dict[Task, list[Store]] = {}
        plans = [(s, s.study.plan(seeds, parts=runnable(s.study, parts), quick=quick)) for s in stores]
        # What was never run tells more than what is run again, so an interrupted run has done that first.
        for state in ("missing", "stale"):
            for store, plan in plans:
                for recipe in plan:
                    if store.state(recipe) == state:
                        wanted.setdefault(Task(recipe, store.study.run), []).append(store)
        with progress_bar() as bar:
            shown = bar.add_task("first recipes", total=len(wanted))
            for number, (task, outcome) in enumerate(outcomes(wanted, n_jobs or os.cpu_count() or 1), 1):
                for store in wanted[task]:
                    store.add(task.recipe, outcome)
                words = f"{wanted[task][0].study.name} · {_describe(task.recipe)}"
                bar.update(shown, completed=number, description=words)
                if not bar.console.is_terminal:
                    print(f"{number} of {len(wanted)} · {words}", file=sys.stderr, flush=True)
        for store in stores:
            store.drop_unplanned()


def runnable(study: AnyStudy, parts: Sequence[str] | None) -> list[str]:
    """Leave out the parts that this machine cannot run, and say why on standard error.

    Args:
        study: The study.
        parts: Names of the parts that were asked for; None for all.

    Returns:
        Names of the parts to run.
    """
    found = []
    for name, part in study.parts.items():
        if parts is not None and name not in parts:
            continue
        if lack := part.lacks():
            print(f"{study.name}, part {name}: left out, {lack}", file=sys.stderr)
        else:
            found.append(name)
    return found


def machine() -> str:
    """Describe where numbers come from."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{where}, Python {platform.python_version()}, {versions}"


def outcomes(wanted: Mapping[Task, Sequence[Store]], n_jobs: int) -> Iterator[tuple[Task, Outcome]]:
    """Run tasks, and yield each as soon as it is finished. Tasks that may share the machine come first.

    Args:
        wanted: The tasks, with the stores that want their results.
        n_jobs: Processes at once.

    Yields:
        A task and its outcome.
    """
    alone = [task for task, stores in wanted.items() if stores[0].study.alone]
    sharing = [task for task, stores in wanted.items() if not stores[0].study.alone]
    if sharing:
        workers = min(n_jobs, len(sharing))
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
        yield from parallel(joblib.delayed(watched(run_task))(task) for task in sharing)
    yield from map(run_task, alone)


def run_task(task: Task) -> tuple[Task, Outcome]:
    """Run one recipe on one thread; CPU seconds include those of processes that it started."""
    before = sum(os.times()[:4])
    with threads(1):
        result = task.run(task.recipe)
    return task, Outcome(result, machine(), round(sum(os.times()[:4]) - before, 2))


def _describe(recipe: Recipe) -> str:
    """Show the settings of a recipe on one line."""
    values = [value if isinstance(value, list) else [value] for value in settings(recipe).values()]
    return ", ".join("+".join(map(str, value)) for value in values)


def _key(recipe: Recipe) -> str:
    return json.dumps(settings(recipe), sort_keys=True)
