"""The command that looks for symmetries that nobody named."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from invariantnet.app.cli.output import make_table, parse_names, parse_shape, parse_size, show, show_text, starting
from invariantnet.choices import Color, Task


@dataclass(frozen=True)
class Discover:
    """Find symmetries that nobody named: exchanges of inputs that leave labels alike.

    Try:
    - `invariantnet discover digits:rotated --examples 500`
    - `invariantnet discover table.csv --label species`
    """

    data: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="DATA")]]
    """mnist or digits (with :plain, :permuted, :rotated, :flipped), an .npz, a .csv, a folder of images,
    or one with x.npy and y.npy."""
    task: Task = "auto"
    """What is predicted: classes or numbers. Labels with fractions are numbers, any others classes, unless you say
    so."""
    alpha: float = 0.05
    """Largest expected share of false discoveries."""
    examples: int | None = None
    """Number of examples to use, chosen at random; by default all."""
    out: Path = Path("runs/discover")
    """Folder for the record."""
    seed: int = 0
    """Seed of everything random: equal seeds give equal results."""
    resume: bool = False
    """Go on with an interrupted search of the same settings and data; what was scored is not repeated."""
    overwrite: bool = False
    """Replace what the folder holds: a finished search, or what an interrupted one has left."""
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

    picture: Path | None = None
    """File for a picture of the orbits, such as orbits.svg."""

    @property
    def after_interrupt(self) -> str:
        """What to say after Ctrl-C."""
        return "; scores are kept: the same command with --resume goes on"

    def run(self) -> None:
        """Discover, and print the verdict and everything that was tested."""
        with starting():
            from invariantnet._system.files import writable_file, write_text
            from invariantnet.app.discoveries import DiscoverySettings, discover_data
            from invariantnet.app.preparation import Reading
            from invariantnet.report.orbits import orbits_svg

        if self.picture is not None:
            writable_file(self.picture)
        shape = None if self.shape is None else parse_shape(self.shape)
        reading = Reading(shape, parse_size(self.size), self.color, self.label, parse_names(self.without))
        settings = DiscoverySettings(self.data, self.task, self.alpha, self.examples, self.seed)
        found = discover_data(settings, self.out, reading, resume=self.resume, overwrite=self.overwrite)
        table = make_table("proposal", "from", "moved inputs", "log e-value", "accepted")
        for tested in sorted(found.tested, key=lambda t: -t.log_e_value):
            accepted = "yes" if tested.accepted else "no"
            table.add_row(tested.kind, tested.source, f"{tested.moved:,}", f"{tested.log_e_value:.1f}", accepted)
        show(table)
        show_text(found.verdict)
        print(self.out / "discovery.json")
        if self.picture is not None:
            write_text(self.picture, orbits_svg(found.group, found.shape, found.set_aside))
