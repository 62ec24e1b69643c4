"""The command line. Each command is a dataclass: its fields are the options, its docstring the help."""

import contextlib
import io
import itertools
import json
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from rich.table import Table

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
PIPE_WIDTH = 140
LONGEST = 600


@dataclass(frozen=True)
class Fit:
    """Find the symmetry of labelled data, and train a network that is exactly invariant to it.

    Examples: `invariantnet fit mnist:rotated --examples 3000 --out runs/demo` ·
    `invariantnet fit photos/ --groups hflip --size 32,32 --out runs/photos` ·
    `invariantnet fit table.csv --label species --groups auto`
    """

    data: tyro.conf.Positional[str] = "mnist:rotated"
    """mnist or digits (with :plain, :permuted, :rotated, :flipped), an .npz, a .csv, a folder of images,
    or one with x.npy and y.npy, which may be larger than memory."""
    groups: str = "rot90,flips"
    """Candidate symmetries, with commas; `invariantnet groups` lists them. Their joins are candidates too.
    `auto` takes every group that acts on the inputs."""
    method: Literal["evidence", "heldout", "paper"] = "evidence"
    """Compare predictions, one network per hypothesis; or learn π on held-out data; or the printed layer."""
    backbone: Literal["mlp", "cnn"] = "mlp"
    """What is made invariant: one hidden layer, or convolutions."""
    hidden: int = 100
    """Width of the hidden layer."""
    networks: int = 2
    """Networks per hypothesis, each with a seed of its own."""
    epochs: int | None = None
    """Passes of the final training; by default 50, or 12 with convolutions."""
    out: Path = Path("runs/fit")
    """Folder for the model, the record and the report."""
    examples: int | None = None
    """Use so many random training examples; by default all."""
    test_share: float = 0.2
    """Share of the examples that is kept for testing, where the data has no test set."""
    tolerance: float = 0.0
    """Nats per example that invariance may cost, if inputs will be transformed after training."""
    uncertainty: Literal["none", "ensemble", "bbb", "laplace"] = "none"
    """One network; or five, or a distribution of its weights, so that it knows what it does not know."""
    second_opinion: bool = False
    """Ask Laplace's approximation too, and say where it disagrees: one more network per hypothesis."""
    seed: int = 0
    """Decides everything that is drawn."""
    jobs: int = 1
    """Processes that train at the same time."""
    cluster: str | None = None
    """Address of a dask scheduler, such as tcp://host:8786, whose workers train instead of this machine."""
    devices: int = 1
    """Processes that share the training of each network, one per GPU, or per core where there is none."""
    nodes: int = 1
    """Machines with so many devices each; start the same command on every one with torchrun."""
    resume: bool = False
    """Go on with an interrupted run of the same settings; what is finished is not repeated."""
    shape: str | None = None
    """Shape of one input, such as 28,28, for files that hold it flat."""
    size: str | None = None
    """Height and width, such as 32,32, to which the images of a folder are resized."""
    color: Literal["auto", "grey", "rgb"] = "auto"
    """How the images of a folder are read."""
    label: str | None = None
    """Name of the label column of a .csv; by default label, class, target or y."""
    json: bool = False
    """Print the record as JSON instead of a table."""

    @property
    def after_interrupt(self) -> str:
        """What Ctrl-C leaves."""
        return "; finished networks are kept: the same command with --resume goes on"

    def run(self) -> None:
        """Fit, and print the verdict."""
        from invariantnet.cluster import on_cluster
        from invariantnet.fit import Settings, fit
        from invariantnet.team import together

        names = tuple(name.strip() for name in self.groups.split(",") if name.strip())
        settings = Settings(
            data=self.data,
            groups="auto" if names == ("auto",) else names,
            method=self.method,
            backbone=self.backbone,
            hidden=self.hidden,
            seeds=self.networks,
            epochs=self.epochs,
            tolerance=self.tolerance,
            uncertainty=self.uncertainty,
            second_opinion=self.second_opinion,
            examples=self.examples,
            test_share=self.test_share,
            seed=self.seed,
            jobs=self.jobs,
        )
        with on_cluster(self.cluster), together(self.devices, self.nodes) as team:
            record = fit(settings, self.out, resume=self.resume, **_reading(self))
        if team.rank:
            return
        if self.json:
            print(json.dumps(record, indent=1, ensure_ascii=False))
            return
        from invariantnet.actions import count_words

        posterior = record["posterior"]
        table = _table("hypothesis", "elements", "probability", "log evidence")
        rows = zip(*(posterior[k] for k in ("names", "orders", "probabilities", "log_evidence")), strict=True)
        for name, order, p, evidence in rows:
            bound = "≤ " if name in posterior["dropped"] else ""
            table.add_row(
                name, count_words(order), f"{p:.3f}", "–" if evidence is None else f"{bound}{evidence:.1f}"
            )
        _print(table)
        print(record["verdict"])
        accuracy = record["data"]["test_accuracy"]
        if accuracy is not None:
            nearly = "" if record["exact"] else "nearly "
            print(f"network {nearly}invariant to {record['chosen']}: {100 * accuracy:.1f} % on the test set")
        print(self.out / "report.html")


@dataclass(frozen=True)
class Predict:
    """Label new inputs with a fitted network: CSV with the label and every class's probability.

    Examples: `invariantnet predict runs/demo mnist:rotated --out predictions.csv` ·
    `invariantnet predict runs/photos new_photos/`
    """

    model: tyro.conf.Positional[Path]
    """Folder that `invariantnet fit` wrote."""
    data: tyro.conf.Positional[str]
    """An .npz with x, a .csv, a folder of images or one with x.npy; of mnist or digits the test set."""
    out: Path | None = None
    """CSV file; by default it is printed."""
    size: str | None = None
    """Height and width to which images are resized; by default those of the model."""
    color: Literal["auto", "grey", "rgb"] = "auto"
    """How images are read; by default as the model needs them."""
    label: str | None = None
    """Column of a .csv to leave out; by default label, class, target or y, if there is one."""

    def run(self) -> None:
        """Predict, and print or write."""
        from invariantnet.fit import predict

        predict(self.model, self.data, self.out, **_reading(self))
        if self.out is not None:
            print(self.out)


@dataclass(frozen=True)
class Report:
    """Write the report of a run again: one HTML file that needs no network.

    Example: `invariantnet report runs/demo`
    """

    model: tyro.conf.Positional[Path]
    """Folder that `invariantnet fit` wrote."""

    def run(self) -> None:
        """Write it and say where it is."""
        from invariantnet.report import write_report

        print(write_report(self.model))


@dataclass(frozen=True)
class Export:
    """Write the network as ONNX: inputs in their shape, any batch size; outputs are probabilities.

    Example: `invariantnet export runs/demo model.onnx`
    """

    model: tyro.conf.Positional[Path]
    """Folder that `invariantnet fit` wrote."""
    out: tyro.conf.Positional[Path]
    """File to write."""

    def run(self) -> None:
        """Export, and say where it is."""
        from invariantnet.estimator import InvariantClassifier

        InvariantClassifier.load(self.model).export(self.out)
        print(self.out)


@dataclass(frozen=True)
class Groups:
    """List the groups that data can be symmetric under.

    Examples: `invariantnet groups` · `invariantnet groups --shape 3,32,32`
    """

    shape: str | None = None
    """Shape of one input, such as 28,28 or 3,32,32: adds order, orbits and whether the group acts."""

    def run(self) -> None:
        """Print the table."""
        from invariantnet.actions import ACTIONS, checked, count_words

        table = _table("name", "what it does", "input shapes")
        if self.shape is not None:
            from invariantnet.catalogue import group

            shape = checked(parse_shape(self.shape))
            table = _table("name", "order", "orbits", "what it does")
        for entry in ACTIONS.values():
            if self.shape is None:
                table.add_row(entry.name, entry.description, entry.shapes)
                continue
            try:
                found = group(entry.name, shape)
            except ValueError as error:
                table.add_row(entry.name, "–", "–", f"does not act: {error}", style="dim")
                continue
            orbits = f"{int(found.orbits().max()) + 1:,}" if found.is_permutation_group else "–"
            table.add_row(found.name, count_words(found.order), orbits, entry.description)
        _print(table)


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a figure or table of the paper; a run that was interrupted goes on where it stopped.

    Examples: `invariantnet reproduce figure3 --out runs/figure3` ·
    `invariantnet reproduce all --quick --seeds 1 --out runs/quick` ·
    `invariantnet reproduce all --seeds 5 --out results`
    """

    what: tyro.conf.Positional[
        Literal[
            "figure1",
            "figure2",
            "figure3",
            "table1",
            "ablation",
            "identity",
            "all",
            "posterior",
            "calibration",
            "schemes",
            "uncertainty",
            "learning",
        ]
    ]
    """Path of π, test accuracies, examples, extrapolation, readings of the text, a full identity; all of these.
    Beyond the paper: the posterior from held-out evidence, its calibration, the whole posterior over π, what
    networks do not know, and learning curves."""
    method: Literal["paper", "evidence", "heldout"] = "paper"
    """The paper's layer and baselines; or ours, drawn beside them (figure1, figure2, table1)."""
    seeds: int = 5
    """Repeat every run with the seeds 0 … N-1."""
    out: Path = Path("runs/reproduce")
    """Folder for the results; finished runs in it are kept and not repeated."""
    quick: bool = False
    """Few examples and epochs: a look in about two minutes, not a result."""
    jobs: int | None = None
    """Processes at once; by default one per core."""
    cluster: str | None = None
    """Address of a dask scheduler, such as tcp://host:8786, whose workers train instead of this machine."""

    @property
    def after_interrupt(self) -> str:
        """What Ctrl-C leaves."""
        return "; finished networks are kept: the same command goes on"

    def run(self) -> None:
        """Write the results and say where they are."""
        from invariantnet.cluster import on_cluster
        from invariantnet.experiments.reproduce import reproduce

        with on_cluster(self.cluster):
            written = reproduce(
                self.what, self.out, method=self.method, seeds=self.seeds, quick=self.quick, jobs=self.jobs
            )
        for path in written:
            print(path)


@dataclass(frozen=True)
class Bench:
    """Measure the speed table: ratios within one run, best of several repeats, one thread.

    Example: `invariantnet bench --json`
    """

    repeats: int = 30
    """How often each case is measured; the best counts."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Measure and print."""
        from invariantnet.bench import as_json, bench

        if self.repeats < 1:
            raise ValueError(f"{self.repeats} repeats measure nothing: ask for at least one.")
        rows = bench(self.repeats)
        if self.json:
            print(json.dumps(as_json(rows), indent=1, ensure_ascii=False))
            return
        table = _table("case", "ms", "ratio", "to")
        for row in rows:
            table.add_row(row.name, f"{row.milliseconds:.3f}", f"{row.ratio:.3f}", row.reference)
        _print(table)


Command = (
    Annotated[Fit, tyro.conf.subcommand("fit")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Groups, tyro.conf.subcommand("groups")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends with status 2 and one line, Ctrl-C with 130, a failing machine with 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files and classes may hold what the terminal cannot show.
            stream.reconfigure(errors="backslashreplace")
    command: Any = None
    try:
        command = _parse(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: _complain(str(message))
            command.run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except ValueError as error:
        _complain(str(error) or "bad input")
        sys.exit(BAD_INPUT)
    except (OSError, MemoryError) as error:
        fault = "out of memory" if isinstance(error, MemoryError) else str(error)
        _complain(f"{fault}: make room and try again{getattr(command, 'after_interrupt', '')}")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        _complain(f"interrupted{getattr(command, 'after_interrupt', '')}")
        sys.exit(INTERRUPTED)


def _complain(fault: str) -> None:
    """One line, whatever a file or a name has put into it."""
    line = "".join(c if c.isprintable() else "�" for c in " ".join(fault.split()))
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    print(f"invariantnet: {line}", file=sys.stderr)


def _parse(arguments: Sequence[str] | None) -> Any:
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                Command,
                prog="invariantnet",
                description="Which symmetries does my data have? And a network that is exactly invariant to them.",
                args=arguments,
            )
    except SystemExit as end:
        if end.code != BAD_INPUT:
            raise
        # tyro frames its complaint in a box; keep the words, up to the first rule.
        words = [line.strip("│ ") for line in complaint.getvalue().splitlines()[1:]]
        said = list(itertools.takewhile(lambda line: not line.startswith(("─", "╰")), words))
        raise ValueError(f"{' '.join(said).rstrip('.')}: see invariantnet --help.") from None


def _reading(options: Any) -> dict[str, Any]:
    """How files are read, where it was said."""
    found: dict[str, Any] = {name: getattr(options, name, None) for name in ("shape", "size", "color", "label")}
    for name in ("shape", "size"):
        if found[name]:
            found[name] = parse_shape(found[name])
    if found["size"] and len(found["size"]) != 2:
        raise ValueError(f"size {options.size!r} is not height and width: write it like 32,32.")
    return {name: value for name, value in found.items() if value}


def _table(*columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    return Table(*columns, box=box.SIMPLE)


def _print(table: "Table") -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)


def parse_shape(text: str) -> tuple[int, ...]:
    """Read `3,32,32`."""
    try:
        return tuple(int(part) for part in text.replace("x", ",").replace("×", ",").split(","))
    except ValueError:
        raise ValueError(f"shape {text!r} is not a list of sizes: write it like 28,28 or 3,32,32.") from None
