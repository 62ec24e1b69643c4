"""`invariantnet reproduce`: run the recipes of a figure or table, store the records, draw them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from studies import (
    beside,
    calibration,
    figure3,
    figures,
    fits,
    learning,
    posterior,
    recipes,
    results,
    schemes,
    tables,
    uncertainty,
)
from studies.results import Flat
from studies.run import Record, Runnable, default_jobs, run_network, sweep
from studies.targets import Target
from invariantnet._system.files import locked, writable_folder, write_json, write_text

Method = Literal["paper", "evidence", "heldout"]
BOTH_WAYS = ("figure1", "figure2", "table1")
OF_THE_PAPER = ("table1", "figure1", "figure2", "ablation", "identity")


@dataclass(frozen=True)
class Experiment:
    """What to run, how to flatten it, how to show it."""

    of_seed: Callable[[int], Sequence[Runnable]]
    """Recipes of one seed."""
    flatten: Callable[[Any, Any], Flat]
    table: Callable[[Flat], str]
    figure: Callable[[Flat, Path], list[Path]] | None = None
    run: Callable[[Any], Record] = run_network
    quick: Callable[[Any], Any] = recipes.quick
    """A recipe made small."""


def _ours(what: str, method: Method) -> Experiment:
    recipes_of = {"figure1": beside.figure1, "figure2": beside.figure2, "table1": beside.table1}[what]
    printed = EXPERIMENTS[what]
    return replace(
        printed,
        of_seed=partial(recipes_of, method),
        flatten=partial(beside.flatten, what),
        run=fits.run_fit,
        quick=_quick_fit,
    )


def _quick_fit(recipe: fits.FitRecipe) -> fits.FitRecipe:
    return replace(recipe, n=min(recipe.n, 500), epochs=3)


EXPERIMENTS = {
    "table1": Experiment(recipes.table1, partial(results.flatten, "table1"), tables.table1),
    "figure1": Experiment(recipes.figure1, partial(results.flatten, "figure1"), tables.figure1, figures.figure1),
    "figure2": Experiment(recipes.figure2, partial(results.flatten, "figure2"), tables.figure2, figures.figure2),
    "ablation": Experiment(recipes.ablation, partial(results.flatten, "ablation"), tables.ablation),
    "identity": Experiment(recipes.identity, partial(results.flatten, "identity"), tables.figure1),
    "posterior": Experiment(
        posterior.posterior,
        posterior.flatten,
        tables.posterior,
        figures.posterior,
        fits.run_fit,
        _quick_fit,
    ),
    "calibration": Experiment(
        calibration.calibration,
        calibration.flatten,
        tables.calibration,
        figures.calibration,
        calibration.run_calibration,
        lambda r: replace(r, n=60),
    ),
    "schemes": Experiment(
        schemes.schemes, schemes.flatten, schemes.table, schemes.draw, schemes.run_schemes, _quick_fit
    ),
    "uncertainty": Experiment(
        uncertainty.uncertainty,
        uncertainty.flatten,
        uncertainty.table,
        uncertainty.draw,
        uncertainty.run_uncertainty,
        lambda r: replace(r, n=500, epochs=2),
    ),
    "learning": Experiment(
        learning.learning,
        learning.flatten,
        learning.table,
        learning.draw,
        learning.run_learning,
        lambda r: replace(r, n=min(r.n, 300)),
    ),
}


def reproduce(
    target: Target,
    folder: Path,
    *,
    method: Method = "paper",
    seeds: int,
    quick: bool = False,
    jobs: int | None = None,
) -> list[Path]:
    """Return the paths of everything written; records of other methods stay in the files."""
    if seeds < 1:
        raise ValueError(f"{seeds} seeds: ask for at least one.")
    if jobs is not None and jobs < 1:
        raise ValueError(f"{jobs} processes: ask for at least one.")
    if method != "paper" and target not in BOTH_WAYS:
        raise ValueError(f"{target} has no --method {method}: that is for {', '.join(BOTH_WAYS)}.")
    with locked(writable_folder(folder)):
        return _reproduce(target, folder, method, seeds, quick, jobs or default_jobs())


def _reproduce(target: Target, folder: Path, method: Method, seeds: int, quick: bool, jobs: int) -> list[Path]:
    wanted = OF_THE_PAPER if target == "all" else [target] if target in EXPERIMENTS else []
    chosen = {name: EXPERIMENTS[name] if method == "paper" else _ours(name, method) for name in wanted}
    planned = {name: _plan(chosen[name], seeds, quick=quick) for name in wanted}
    runners = {r.key: chosen[name].run for name in wanted for r in planned[name]}
    everything = sorted((r for name in wanted for r in planned[name]), key=_length)
    run = partial(_run_one, runners)
    records = dict(zip((r.key for r in everything), sweep(everything, folder, run, jobs=jobs), strict=True))
    written: list[Path] = []
    for name in wanted:
        flat = chosen[name].flatten(planned[name], [records[r.key] for r in planned[name]])
        written += [results.write(folder, name, flat), *draw(name, folder)]
    if target == "all":
        cpu_seconds = sum(record["cpu_seconds"] for record in records.values())
        write_json(
            folder / "machine.json", {**results.machine(), "seeds": seeds, "cpu_seconds": round(cpu_seconds)}
        )
    if target in ("figure3", "all"):
        written += figure3.draw(folder)
    return written


def draw(name: str, folder: Path) -> list[Path]:
    """Draw one experiment from its stored flat records."""
    experiment, records = EXPERIMENTS[name], results.read(folder, name)
    path = folder / f"{name}.md"
    write_text(path, experiment.table(records))
    return [path, *(experiment.figure(records, folder) if experiment.figure else [])]


def _plan(experiment: Experiment, seeds: int, *, quick: bool) -> list[Runnable]:
    planned = [r for seed in range(seeds) for r in experiment.of_seed(seed)]
    return [experiment.quick(r) for r in planned] if quick else planned


def _run_one(runners: dict[str, Callable[[Any], Record]], recipe: Runnable) -> Record:
    return runners[recipe.key](recipe)


def _length(recipe: Runnable) -> int:
    """The longest runs first, so that no core waits for one of them at the end."""
    order = ("BCNN", "CNN")
    model = getattr(recipe, "model", "")
    return order.index(model) if model in order else len(order)
