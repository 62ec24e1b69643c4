"""`invariantnet reproduce`: run the recipes of a figure or table, store the records, draw them."""

from pathlib import Path
from typing import Literal

from invariantnet.experiments import figure3, figures, results, tables
from invariantnet.experiments.recipes import What, recipes_for
from invariantnet.experiments.run import default_jobs, run_network, sweep
from invariantnet.storage import writable_folder, write_json, write_text

Target = Literal["figure1", "figure2", "figure3", "table1", "ablation", "identity", "all"]
TABLES = {
    "table1": tables.table1,
    "figure1": tables.figure1,
    "figure2": tables.figure2,
    "ablation": tables.ablation,
    "identity": tables.figure1,
}
SWEEPS: tuple[What, ...] = ("table1", "figure1", "figure2", "ablation", "identity")


def reproduce(
    target: Target, folder: Path, *, seeds: int, quick: bool = False, jobs: int | None = None
) -> list[Path]:
    """Return the paths of everything written."""
    if seeds < 1:
        raise ValueError(f"{seeds} seeds: ask for at least one.")
    writable_folder(folder)
    written: list[Path] = []
    wanted: list[What] = [what for what in SWEEPS if target in (what, "all")]
    recipes = recipes_for(wanted, seeds, quick=quick)
    everything = [r for what in wanted for r in recipes[what]]
    # The longest runs first, so that no core waits for one of them at the end.
    by_length = sorted(
        everything, key=lambda r: ("BCNN", "CNN").index(r.model) if r.model in ("BCNN", "CNN") else 2
    )
    records = dict(
        zip(
            (r.key for r in by_length),
            sweep(by_length, folder, run_network, jobs=jobs or default_jobs()),
            strict=True,
        )
    )
    for what in wanted:
        flat = results.flatten(what, recipes[what], [records[r.key] for r in recipes[what]])
        written += [results.write(folder, what, flat), *draw(what, folder)]
    if wanted:
        cpu_seconds = sum(record["cpu_seconds"] for record in records.values())
        write_json(
            folder / "machine.json", {**results.machine(), "seeds": seeds, "cpu_seconds": round(cpu_seconds)}
        )
    if target in ("figure3", "all"):
        written += figure3.draw(folder)
    return written


def draw(what: What, folder: Path) -> list[Path]:
    """Draw one experiment from its stored flat records."""
    records = results.read(folder, what)
    path = folder / f"{what}.md"
    write_text(path, TABLES[what](records))
    if what == "figure1":
        return [path, *figures.figure1(records, folder)]
    if what == "figure2":
        return [path, *figures.figure2(records, folder)]
    return [path]
