"""The command that looks for symmetries that nobody named."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from invariantnet.app.cli.output import make_table, parse_shape, parse_size, show
from invariantnet.choices import Color


@dataclass(frozen=True)
class Discover:
    """Find the permutations of inputs to which labels are invariant, without any candidates.

    Examples: `invariantnet discover digits:rotated --examples 500` ·
    `invariantnet discover table.csv --label species`
    """

    data: tyro.conf.Positional[str]
    """mnist or digits (with :plain, :permuted, :rotated, :flipped), an .npz, a .csv, a folder of images,
    or one with x.npy and y.npy."""
    alpha: float = 0.05
    """Largest expected share of false discoveries."""
    examples: int | None = None
    """Number of examples to use, chosen at random; by default all."""
    seed: int = 0
    """Seed of everything random: equal seeds give equal results."""
    shape: str | None = None
    """Shape of one input, such as 28,28, for files that hold it flat."""
    size: str | None = None
    """Height and width, such as 32,32, to which the images of a folder are resized."""
    color: Color = "auto"
    """How the images of a folder are read."""
    label: str | None = None
    """Name of the label column of a .csv; by default label, class, target or y."""

    picture: Path | None = None
    """File for a picture of the orbits, such as orbits.svg."""

    def run(self) -> None:
        """Discover, and print the verdict and everything that was tested."""
        import numpy as np

        from invariantnet import data as datasets
        from invariantnet._system.files import writable_file, write_text
        from invariantnet.discovery import discover
        from invariantnet.report.orbits import orbits_svg

        if self.picture is not None:
            writable_file(self.picture)
        if self.examples is not None and self.examples < 1:
            raise ValueError(f"{self.examples} examples are too few: ask for more.")
        loaded = datasets.load(
            self.data,
            seed=self.seed,
            shape=None if self.shape is None else parse_shape(self.shape),
            size=parse_size(self.size),
            color=self.color,
            label=self.label,
        )
        chosen = np.random.default_rng(self.seed).permutation(len(loaded.x_train))[: self.examples]
        found = discover(
            np.asarray(loaded.x_train[chosen]),
            np.asarray(loaded.y_train[chosen]),
            alpha=self.alpha,
            random_state=self.seed,
            verbose=1,
        )
        table = make_table("proposal", "from", "moved inputs", "log e-value", "accepted")
        for tested in sorted(found.tested, key=lambda t: -t.log_e_value):
            moved = int((tested.generators != np.arange(found.group.dim)).any(axis=0).sum())
            accepted = "yes" if tested.accepted else "no"
            table.add_row(tested.kind, tested.source, f"{moved:,}", f"{tested.log_e_value:.1f}", accepted)
        show(table)
        print(found.verdict)
        if self.picture is not None:
            write_text(self.picture, orbits_svg(found.group, loaded.shape, found.set_aside))
