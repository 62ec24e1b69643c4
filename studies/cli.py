"""The command line of the studies. A command is a dataclass: its fields are options, its docstring is the help."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from invariantnet.app.cli import run_command
from invariantnet.app.cli.output import make_table, show
from invariantnet.choices import Method

if TYPE_CHECKING:
    from studies.framework.study import Study

ABOUT = "The paper, reproduced; what was measured beyond it; its cost; its reliability."
"""What the help says first."""
RESULTS, QUICK, REPRODUCE = Path("results"), Path("runs/quick"), Path("runs/reproduce")
"""Folders for records, relative to the root of the repository."""
LONGEST_QUESTION = 40
"""Characters of a question that `status` shows, so that it fits on a line."""

PaperStudy = Literal["all", "table1", "figure1", "figure2", "figure3", "ablation", "identity"]
PARTS: dict[Method, list[str]] = {
    "paper": ["paper"],
    "evidence": ["evidence", "ten digits"],
    "heldout": ["heldout"],
}
"""Parts of the paper's studies that belong to each method."""


@dataclass(frozen=True)
class Status:
    """List every study: how many of its records are fresh, stale or missing, and which version made them.

    A record is stale if the code or the settings that it depends on have changed since it was made, and confirmed
    if the changed code was seen to give the same numbers on a sample (`python -m studies confirm`).

    Example: `python -m studies status`
    """

    out: Path = RESULTS
    """Folder with the records."""

    def run(self) -> None:
        """Print the table."""
        from studies.framework.registry import NAMES, load
        from studies.framework.running import Store

        table = make_table(
            "study", "fresh", "confirmed", "stale", "missing", "made with", "CPU minutes", "question"
        )
        for study in map(load, NAMES):
            store = Store(study, self.out)
            pieces, counts = store.pieces.values(), store.count()
            stale = counts["stale"] + counts["unplanned"]
            versions = ", ".join(sorted({piece.version for piece in pieces}))
            minutes = sum(piece.cpu_seconds or 0 for piece in pieces) / 60
            numbers = [str(n or "") for n in (counts["fresh"], counts["confirmed"], stale, counts["missing"])]
            spent = f"{minutes:.0f}" if minutes else ""
            table.add_row(study.name, *numbers, versions, spent, _short_question(study))
        show(table)


def _short_question(study: "Study[Any, Any, Any]") -> str:
    sentence = (study.question or "").partition("\n")[0].partition("?")[0] + "?"
    return textwrap.shorten(sentence, LONGEST_QUESTION, placeholder=" …")


@dataclass(frozen=True)
class Run:
    """Run every recipe of a study that has no fresh record; finished ones are stored at once.

    Examples: `python -m studies run posterior` · `python -m studies run truth` ·
    `python -m studies run all --quick` · `python -m studies run calibration --seeds 1 --cluster tcp://host:8786`
    """

    name: tyro.conf.Positional[str]
    """A study that `python -m studies status` lists, a folder of studies such as `truth`, or `all`."""
    seeds: int | None = None
    """Take the seeds 0 … N-1, instead of as many as the results have."""
    n_jobs: int | None = None
    """Processes at once; by default one per core. Studies of time and memory run alone."""
    cluster: str | None = None
    """Address of a dask scheduler, such as tcp://host:8786, whose workers were started in a clone."""
    out: Path | None = None
    """Folder for the records; by default results, or runs/quick."""
    quick: bool = False
    """Few examples and epochs: a look, not a result."""

    @property
    def after_interrupt(self) -> str:
        """What Ctrl-C leaves."""
        return "; finished recipes are kept: the same command goes on"

    def run(self) -> None:
        """Store the records, and say where they are."""
        from studies.framework.registry import load, named

        studies = [load(name) for name in named(self.name)]
        if self.quick:
            slow = [study.name for study in studies if study.parts and not study.quick]
            studies = [study for study in studies if study.name not in slow]
            if self.name in slow:
                raise ValueError(f"{self.name} has no quick version: run it without --quick.")
        out = self.out or (QUICK if self.quick else RESULTS)
        _run(studies, out, self.cluster, seeds=self.seeds, quick=self.quick, n_jobs=self.n_jobs)
        if out == RESULTS:
            print("`python -m studies docs` renders the documentation from these records.")
        else:
            _show(studies, out)


@dataclass(frozen=True)
class Confirm:
    """Run a sample of a study's stale recipes again; if their numbers are equal, the other stale records hold too.

    For changes of the code that should change no number. What was run again is stored either way.

    Example: `python -m studies confirm null_and_power --sample 20`
    """

    name: tyro.conf.Positional[str]
    """A study that `python -m studies status` lists."""
    sample: int = 20
    """Recipes to run again."""
    n_jobs: int | None = None
    """Processes at once; by default one per core."""
    out: Path = RESULTS
    """Folder with the records."""

    def run(self) -> None:
        """Compare, and say how many records were confirmed."""
        from studies.framework.confirming import confirm
        from studies.framework.registry import load

        of = confirm(load(self.name), self.out, sample=self.sample, n_jobs=self.n_jobs)
        print(f"{min(self.sample, of)} of {of} stale records were made again, with equal numbers.")


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a figure or table of the paper, with a table and pictures beside the records.

    All of them with five seeds take about 70 CPU minutes.

    Examples: `python -m studies reproduce figure3` · `python -m studies reproduce all --quick --seeds 1` ·
    `python -m studies reproduce all`
    """

    what: tyro.conf.Positional[PaperStudy]
    """Extrapolation, path of π, test accuracies, the data, readings of the text, a full identity; or all of it."""
    method: Method = "paper"
    """The paper's layer and baselines; or ours, shown beside them (figure1, figure2, table1)."""
    seeds: int = 5
    """Repeat every run with the seeds 0 … N-1."""
    out: Path = REPRODUCE
    """Folder for the results; fresh records in it are kept."""
    quick: bool = False
    """Few examples and epochs: a look in about two minutes, not a result."""
    n_jobs: int | None = None
    """Processes at once; by default one per core."""
    cluster: str | None = None
    """Address of a dask scheduler, such as tcp://host:8786, whose workers were started in a clone."""

    @property
    def after_interrupt(self) -> str:
        """What Ctrl-C leaves."""
        return "; finished networks are kept: the same command goes on"

    def run(self) -> None:
        """Write the results, and say where they are."""
        from studies.framework.registry import FOLDERS, load

        parts = PARTS[self.method]
        studies = [load(name) for name in (FOLDERS["paper"] if self.what == "all" else [self.what])]
        able = [study for study in studies if not study.parts or set(parts) & set(study.parts)]
        if not able:
            raise ValueError(f"{self.what} has no --method {self.method}: figure1, figure2 and table1 have.")
        options: dict[str, Any] = {"seeds": self.seeds, "quick": self.quick, "n_jobs": self.n_jobs}
        _run(able, self.out, self.cluster, parts=parts, **options)
        _show(able, self.out)


def _run(studies: "Sequence[Study[Any, Any, Any]]", out: Path, cluster: str | None, **options: Any) -> None:
    from invariantnet._system.dask import on_cluster
    from studies.framework.running import run_studies

    with on_cluster(cluster):
        run_studies(studies, out, **options)


def _show(studies: "Sequence[Study[Any, Any, Any]]", out: Path) -> None:
    """Write the tables and figures beside the records, and print every path."""
    from invariantnet._system.files import write_text
    from studies.framework.drawing import draw
    from studies.framework.records import read, records
    from studies.framework.registry import load

    for study in studies:
        found = [r for source in (study, *map(load, study.reads)) for r in records(read(source, out))]
        paths = [out / f"{study.name}.json"] if study.parts else []
        if study.table and found:
            paths.append(out / f"{study.name}.md")
            write_text(paths[-1], study.table(found))
        if study.draw and (found or not study.parts):
            paths += draw(study, found, out)
        for path in paths:
            print(path)


@dataclass(frozen=True)
class Bench:
    """Measure what a training step and a prediction cost beside a plain MLP, and print it; nothing is stored.

    Example: `python -m studies bench --json`
    """

    repeats: int = 30
    """How often each case is measured; the best counts."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Measure and print."""
        if self.repeats < 1:
            raise ValueError(f"{self.repeats} repeats measure nothing: ask for at least one.")
        from studies.cost.step_times import StepRecipe, run

        records = run(StepRecipe(repeats=self.repeats))
        if self.json:
            print(json.dumps([asdict(r) for r in records], indent=1, ensure_ascii=False))
            return
        table = make_table("case", "ms", "ratio", "to")
        for r in records:
            table.add_row(r.name, f"{r.milliseconds:.3f}", f"{r.ratio:.3f}", r.reference)
        show(table)


@dataclass(frozen=True)
class Docs:
    """Render the pages, the README's tables and the pictures from the records in results.

    A claim that its records do not support is an error; numbers of an older version are marked.

    Example: `python -m studies docs`
    """

    def run(self) -> None:
        """Write everything, and say what was written."""
        from studies.pages import write_all

        for path in write_all():
            print(path)


Command = (
    Annotated[Status, tyro.conf.subcommand("status")]
    | Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Confirm, tyro.conf.subcommand("confirm")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Docs, tyro.conf.subcommand("docs")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command."""
    run_command(Command, "python -m studies", ABOUT, arguments)
