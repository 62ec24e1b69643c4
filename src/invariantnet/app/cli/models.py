"""Commands about one data set and its network: fit, predict, report, export."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from invariantnet.app.cli.output import parse_names, parse_shape, parse_size, show_text, starting
from invariantnet.choices import Color, Method, Placement, Pool, Precision, Task, Uncertainty

if TYPE_CHECKING:
    from invariantnet.estimator.persistence import ModelRecord

RunFolder = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
"""Folder of a run."""

OwnBackbone = Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION")]
"""Where a backbone of the user's own is; never taken from a stored file."""


@dataclass(frozen=True)
class Fit:
    """Find the symmetry of labelled data; train a network exactly invariant to it.

    Try:
    - `invariantnet fit mnist:rotated --symmetries rot90,flips --examples 3000`
    - `invariantnet fit photos/ --size 32,32 --out runs/photos`
    - `invariantnet fit table.csv --label species --symmetries permutations`
    """

    data: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="DATA")]] = "mnist:rotated"
    """mnist or digits (with :plain, :permuted, :rotated, :flipped), an .npz, a .csv, a folder of images,
    or one with x.npy and y.npy, which may be larger than memory."""
    symmetries: str = "auto"
    """Candidate symmetries, with commas; `invariantnet symmetries` lists them. Symmetries that combine them are
    candidates too. `auto` takes every one that suits the inputs, such as rot90 and flips for square images; a few
    that you name are compared faster. `discover` takes what one half of the examples discovers."""
    task: Task = "auto"
    """What is predicted: classes or numbers. Labels with fractions are numbers, any others classes, unless you say
    so."""
    method: Method = "evidence"
    """How symmetries are compared: by the predictions of networks for each; by π learned on held-out data; or by
    the layer of the paper."""
    backbone: str = "auto"
    """The network that is made invariant: mlp (hidden layers), cnn (convolutions), or auto (whichever of them
    predicts best); or one kind by its name, such as "plain mlp". Or package.module:function, a function of your
    own: without arguments it gives a pretrained body, of which only heads are trained; from input shape and number
    of outputs it makes networks. Pass it again to predict, report and export, as no code is stored."""
    placement: Placement = "features"
    """Where the network is averaged over the symmetry: in its first weights, its features, or its outputs."""
    pool: Pool = "max"
    """Whether features are the largest or the mean over the moved copies of an input."""
    joins: bool = True
    """Whether symmetries that combine candidates, such as turns and mirror images together, are candidates too."""
    hidden: int = 100
    """Width of the hidden layer."""
    n_networks: int = 2
    """Networks per symmetry: fewer if the first one settles it, up to four times as many while the verdict is
    open."""
    epochs: int | None = None
    """Passes of the final training; by default as many as suit the network, and more where the data is small."""
    out: Path = Path("runs/fit")
    """Folder for the model, the record and the report."""
    examples: int | None = None
    """Number of training examples to use, chosen at random; by default all."""
    test_share: float = 0.2
    """Share of the examples that is kept for testing, where the data has no test set."""
    tolerance: float = 0.0
    """Nats per example that invariance may cost, if inputs will be transformed after training."""
    uncertainty: Uncertainty = "none"
    """How the final network estimates its doubts: not at all, by five networks, by a distribution of every weight,
    or by Laplace's approximation for the last layer."""
    second_opinion: bool = False
    """Compare the symmetries by Laplace's approximation too, with one more network for each."""
    seed: int = 0
    """Seed of everything random: equal seeds give equal runs."""
    n_jobs: int | None = None
    """Processes that train at the same time; by default one per core. Results do not depend on it."""
    device: str = "auto"
    """Where to compute, such as cpu or cuda; by default a GPU if there is one."""
    precision: Precision = "32-true"
    """Numbers that networks are trained with: bf16-mixed is faster on GPUs that have units for 16 bits."""
    cluster: str | None = None
    """Address of a dask scheduler, such as tcp://host:8786, whose workers train instead of this machine."""
    devices: int = 1
    """Processes that share the training of each network, one per GPU, or per core where there is none."""
    nodes: int = 1
    """Machines with that many devices each; start the same command on each of them with torchrun."""
    resume: bool = False
    """Go on with an interrupted run of the same settings and data; what is finished is not repeated."""
    overwrite: bool = False
    """Replace what the folder holds: a finished run, or what an interrupted one has left."""
    shape: str | None = None
    """Shape of one input, such as 28,28, for files that hold it flat."""
    size: str | None = None
    """Height and width, such as 32,32, to which the images of a folder are resized."""
    color: Color = "auto"
    """How the images of a folder are read."""
    label: str | None = None
    """Name of the label column of a .csv; by default label, class, target or y."""
    without: str = ""
    """Names of columns of a .csv that are no inputs, such as id,name."""
    json: bool = False
    """Print the record as JSON instead of a table."""

    @property
    def after_interrupt(self) -> str:
        """What to say after Ctrl-C."""
        return "; finished networks are kept: the same command with --resume goes on"

    def run(self) -> None:
        """Fit, and print the verdict."""
        with starting():
            from invariantnet._system.dask import on_cluster
            from invariantnet.app.preparation import Reading
            from invariantnet.app.record import Settings, run_json
            from invariantnet.app.runs import fit
            from invariantnet.training.distributed import launch_processes

        shape = parse_shape(self.shape) if self.shape is not None else None
        reading = Reading(shape, parse_size(self.size), self.color, self.label, parse_names(self.without))
        names = parse_names(self.symmetries)
        settings = Settings(
            data=self.data,
            symmetries=names[0] if names in (("auto",), ("discover",)) else names,
            method=self.method,
            task=self.task,
            backbone=self.backbone,
            hidden=self.hidden,
            placement=self.placement,
            pool=self.pool,
            joins=self.joins,
            n_networks=self.n_networks,
            epochs=self.epochs,
            tolerance=self.tolerance,
            uncertainty=self.uncertainty,
            second_opinion=self.second_opinion,
            examples=self.examples,
            test_share=self.test_share,
            seed=self.seed,
            n_jobs=self._jobs,
            device=self.device,
            precision=self.precision,
        )
        with on_cluster(self.cluster), launch_processes(self.devices, self.nodes):
            record = fit(settings, self.out, resume=self.resume, overwrite=self.overwrite, reading=reading)
        if record is None:
            return  # another process reports
        if self.json:
            print(json.dumps(run_json(record), indent=1, ensure_ascii=False))
            return
        show_text(str(record.model.posterior))
        if record.data.test_accuracy is not None:
            accuracy = 100 * record.data.test_accuracy
            show_text(f"the network, {_invariance(record.model)}: {accuracy:.1f} % right on the test set")
        if record.data.test_explained is not None:
            explained = 100 * record.data.test_explained
            network = f"the network, {_invariance(record.model)}"
            show_text(f"{network}: explains {explained:.1f} % of the test set's variance")
        print(self.out / "report.html")

    @property
    def _jobs(self) -> int:
        """Processes: as many as were asked for, or one per core, unless other processes share each training."""
        if self.n_jobs is not None:
            return self.n_jobs
        if self.devices > 1 or self.nodes > 1 or self.cluster is not None:
            return 1
        return -1


def _invariance(model: "ModelRecord") -> str:
    from invariantnet.symmetries.catalogue import TRIVIAL
    from invariantnet.symmetries.plain import both_names

    named = both_names(model.chosen)
    if model.parameters.method == "paper":
        return f"a mixture of schemes, most of all {named}"
    if model.chosen == TRIVIAL:
        return "with no symmetry built in"
    if model.exact:
        return f"invariant to {named}"
    if model.deviation is not None:
        numbers = model.learned.y_mean is not None
        nearly = "nearly" if numbers or model.deviation.is_small else "only roughly"
        what = "predictions" if numbers else "probabilities"
        return f"{nearly} invariant to {named} (measured: {what} change by {model.deviation})"
    return f"nearly invariant to {named}"


@dataclass(frozen=True)
class Predict:
    """Predict new inputs with a fitted network, as CSV.

    What it says of an input:
    - the label, and the probability of every class
    - of numbers, the mean and its standard error
    - if inputs have labels (subfolders, or a column): how many answers are right

    Try:
    - `invariantnet predict runs/photos one.jpg`
    - `invariantnet predict runs/photos new_photos/`
    - `invariantnet predict runs/demo mnist:rotated --out predictions.csv`
    """

    model: RunFolder
    """Folder that `invariantnet fit` wrote."""
    data: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="DATA")]]
    """An .npz with x, a .csv, an image, a folder of images or one with x.npy; of mnist or digits the test set."""
    out: Path | None = None
    """CSV file; by default it is printed."""
    size: str | None = None
    """Height and width to which images are resized; by default those of the model."""
    color: Color = "auto"
    """How images are read; by default as the model needs them."""
    label: str | None = None
    """Name of the label column of a .csv, if it has one; by default that of the fit."""
    backbone: OwnBackbone = None
    """Your own backbone that the model was fitted with."""

    def run(self) -> None:
        """Predict, and print or write."""
        with starting():
            from invariantnet.app.backbones import resolve_own_backbone
            from invariantnet.app.predictions import predict
            from invariantnet.app.preparation import Reading

        reading = Reading(size=parse_size(self.size), color=self.color, label=self.label)
        assessment = predict(self.model, self.data, self.out, reading, resolve_own_backbone(self.backbone))
        if assessment:
            # Standard output holds the predictions, unless a file does.
            print(assessment, file=sys.stderr if self.out is None else sys.stdout)
        if self.out is not None:
            print(self.out)


@dataclass(frozen=True)
class Report:
    """Write the report of a run again: one HTML file that works offline.

    Try:
    - `invariantnet report runs/demo`
    """

    model: RunFolder
    """Folder that `invariantnet fit` wrote."""
    backbone: OwnBackbone = None
    """Your own backbone that the model was fitted with."""

    def run(self) -> None:
        """Write it and say where it is."""
        with starting():
            from invariantnet.app.backbones import resolve_own_backbone
            from invariantnet.app.runs import write_report

        print(write_report(self.model, resolve_own_backbone(self.backbone)))


@dataclass(frozen=True)
class Export:
    """Write the network as ONNX, for programs without this package.

    What it takes and gives:
    - inputs: in their shape and units, any number at once
    - outputs: the probability of every class, or numbers

    Try:
    - `invariantnet export runs/demo model.onnx`
    """

    model: RunFolder
    """Folder that `invariantnet fit` wrote."""
    out: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FILE")]]
    """File to write."""
    backbone: OwnBackbone = None
    """Your own backbone that the model was fitted with."""

    def run(self) -> None:
        """Export, and say where it is."""
        if self.out.suffix.lower() != ".onnx":
            raise ValueError(f"{self.out}: ONNX files end in .onnx: name it {self.out.stem or 'model'}.onnx.")
        with starting():
            from invariantnet._system.progress import working
            from invariantnet.app.backbones import resolve_own_backbone
            from invariantnet.estimator import load_estimator

        with working(f"exporting {self.model}", visible=True):
            load_estimator(self.model, backbone=resolve_own_backbone(self.backbone)).export(self.out)
        print(self.out)
