"""How does the cost grow: with examples, hypotheses, elements of the group, and numbers per input?

Examples and hypotheses: CPU seconds of a whole comparison, with nothing dropped. Elements and inputs: seconds of a
training step, batch 64.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from invariantnet._system.torch_state import seeded
from invariantnet.data.examples import Examples
from invariantnet.inference import Evidence, gather_evidence
from invariantnet.inference.hypotheses import MOST_COPIES, Hypothesis, with_joins
from invariantnet.inference.models import MLPS
from invariantnet.inference.rules import GROWTH
from invariantnet.nn import Symmetrized, mlp
from invariantnet.symmetries import lookup as catalogue
from studies.cost.timing import best_times, peak_megabytes, training_step
from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown

CANDIDATES = ("trivial", "hflip", "vflip", "rot180", "transpose", "flips", "rot90", "d4")
"""Hypotheses whose networks cost the same, as all have the same number of units."""
BY_ORDER = {1: "trivial", 2: "hflip", 4: "rot90", 8: "d4", 28: "cyclic"}
"""Groups on 28×28 by their number of elements."""
SHAPES = {784: (28, 28), 3136: (56, 56), 12544: (112, 112), 37632: (3, 112, 112), 150528: (3, 224, 224)}
"""Shapes of images by their number of inputs."""
BATCH, HIDDEN = 64, 100
"""Of the steps; under rot90, 100 features are 400 units."""
MODEL = MLPS[0]
"""The model of every hypothesis: several would multiply the cost, until all but one are dropped."""
MANY_POINTS = 5
"""A panel with this many points shows every second number below its axis."""


@dataclass(frozen=True)
class GrowthRecipe:
    """One curve."""

    what: str
    seed: int = 0


@dataclass(frozen=True)
class Record:
    """Seconds by size, and slopes on logarithmic axes: 1 is linear."""

    what: str
    measured: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    slope: float
    last_slope: float
    """Between the two largest sizes, where fixed costs no longer count."""
    peak_megabytes: int
    """Resident memory above the start."""


def comparison(n: int, names: Sequence[str], shape: tuple[int, ...] = (8, 8)) -> float:
    """CPU seconds of a comparison of the named groups, one model and one network each."""
    x, y = torch.rand(n, int(np.prod(shape))), torch.randint(2, (n,))
    symmetries = with_joins([catalogue.symmetry(name, shape) for name in names], closed=False)
    hypotheses = [Hypothesis(symmetry, MODEL) for symmetry in symmetries]

    def make(hypothesis: Hypothesis) -> nn.Module:
        return Symmetrized(mlp(shape, 2, 32, units=8 // hypothesis.copies), [hypothesis.symmetry], pool="max")

    start = time.process_time()
    config = Evidence(n_networks=1, sure=0.0, margin=np.inf)
    gather_evidence(make, hypotheses, Examples(x, y), config=config)
    return time.process_time() - start


def step(shape: tuple[int, ...], name: str) -> float:
    """Seconds of a training step."""
    x, y = torch.rand(BATCH, int(np.prod(shape))), torch.randint(10, (BATCH,))
    network = Symmetrized(mlp(shape, 10, HIDDEN), [catalogue.symmetry(name, shape)])
    return best_times({"step": training_step(network, x, y)}, repeats=5, calls=3)["step"]


@dataclass(frozen=True)
class Curve:
    """What is measured, at which sizes, and how."""

    measured: str
    sizes: tuple[int, ...]
    seconds: Callable[[int], float]


CURVES = {
    "examples": Curve(
        "whole comparison, {trivial, rot90}",
        (2000, 8000, 32000),  # as training sets grow: in between, one more block would add a step
        lambda n: comparison(n, ["rot90"]),
    ),
    "hypotheses": Curve("whole comparison, 1,000 examples", (2, 4, 8), lambda k: comparison(1000, CANDIDATES[:k])),
    "elements": Curve("step on 28×28", tuple(BY_ORDER), lambda order: step((28, 28), BY_ORDER[order])),
    "inputs": Curve("step with rot90", tuple(SHAPES), lambda dim: step(SHAPES[dim], "rot90")),
}
"""The curves, by what the cost grows with."""


def run(recipe: GrowthRecipe) -> list[Record]:
    """Measure one curve."""
    curve = CURVES[recipe.what]
    sizes = curve.sizes
    before = peak_megabytes()
    with seeded(recipe.seed):
        seconds = [curve.seconds(size) for size in sizes]
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    last = float(np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2]))
    rounded = tuple(round(s, 5) for s in seconds)
    peak = peak_megabytes() - before
    return [Record(recipe.what, curve.measured, sizes, rounded, round(slope, 2), round(last, 2), peak)]


def table(records: Sequence[Record]) -> str:
    """Slopes."""
    rows = [
        [
            r.what,
            r.measured,
            f"{r.sizes[0]:,} – {r.sizes[-1]:,}",
            f"{r.slope:.2f}",
            f"{r.last_slope:.2f}",
        ]
        for r in records
    ]
    return markdown(["growth with", "measured", "from – to", "slope", "slope at the end"], rows)


def draw(records: Sequence[Record]) -> Figure:
    """Draw seconds against size, a panel per curve."""
    figure = Figure(figsize=(11, 2.8))
    for axis, r in zip(figure.subplots(1, len(records)), records, strict=True):
        axis.loglog(r.sizes, r.seconds, "o-", color=COLORS["rot90"])
        linear = np.array(r.sizes) * r.seconds[-1] / r.sizes[-1]
        axis.loglog(r.sizes, linear, "--", color=COLORS["trivial"], linewidth=1)
        shown = r.sizes if len(r.sizes) < MANY_POINTS else r.sizes[::2]
        axis.set_xticks(shown, [f"{size:,}" for size in shown])
        axis.minorticks_off()
        axis.set(xlabel=r.what, title=f"slope {r.slope:.2f}, at the end {r.last_slope:.2f}")
    figure.axes[0].set_ylabel("seconds; dashed: linear")
    figure.tight_layout()
    return figure


@dataclass(frozen=True)
class LargeProblem:
    """A comparison larger than any that was run, with nothing dropped; cost is a product of its sizes."""

    examples: int = 1_000_000
    inputs: int = 3 * 224 * 224
    hypotheses: int = 10
    networks: int = 2
    epochs: int = MODEL.training.epochs
    units: int = MOST_COPIES * HIDDEN

    @property
    def passes(self) -> float:
        """Passes over the data by all networks together; training sets grow in a geometric series."""
        return self.hypotheses * self.networks * self.epochs / (GROWTH - 1)

    @property
    def operations(self) -> float:
        """Multiplications and additions; a step is two products, each 2·n·D·m."""
        return 4.0 * self.passes * self.examples * self.inputs * self.units

    @property
    def bytes_read(self) -> float:
        """Bytes read from disk, if memory does not hold the data."""
        return self.passes * self.examples * self.inputs

    def core_seconds(self, step_seconds: float) -> float:
        """Seconds of one core, from a measured step on inputs of the same size."""
        return step_seconds * self.units / (4 * HIDDEN) * self.passes * self.examples / BATCH


GPU, DISK = 20e12, 2e9
"""Operations per second of one current GPU and bytes per second of one current disk, by order of magnitude."""


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    slopes = {r.what: r.last_slope for r in records}
    inputs = next(r for r in records if r.what == "inputs")
    problem = LargeProblem()
    machines = problem.hypotheses * problem.networks
    gpu, disk = problem.operations / GPU, problem.bytes_read / DISK
    days = problem.core_seconds(inputs.seconds[-1]) / 86400
    return {
        "memory": Claim(
            "On inputs of 3×224×224 nothing is ever D×D: the resident memory of that curve peaks "
            f"{inputs.peak_megabytes} MB above its start, most of it the weights, their four moved copies and "
            "their gradients."
        ),
        "linear": Claim(
            "Blocks grow fourfold, so the training sets of one network together are a third of the data; the "
            "slopes in examples and hypotheses end close to 1, so the cost is a product:",
            GROWTH == 4 and all(abs(slopes[what] - 1) < 0.2 for what in ("examples", "hypotheses")),
        ),
        "problem": Claim(
            "A million images of 3×224×224, ten hypotheses, two networks each, nothing dropped, "
            f"{problem.epochs} epochs, {problem.units} units."
        ),
        "arithmetic": Claim(
            f"{problem.operations:.1e} operations. From the step measured here on inputs of that size, "
            f"{days:.0f} days of one core. At 20 TFLOP/s, the order of magnitude of one current GPU, about "
            f"{gpu / 3600:.1f} hours; with `--cluster` and one GPU for each of the {machines} networks, about "
            f"{gpu / 60 / machines:.0f} minutes."
        ),
        "reading": Claim(
            f"The file has {problem.examples * problem.inputs / 1e9:.0f} GB. If it does not fit into memory, "
            f"reading it at 2 GB/s takes about {disk / 3600:.0f} hours on one machine, and "
            f"{disk / 60 / machines:.0f} minutes on {machines} machines with a copy each. So on one machine "
            "with a GPU the disk decides, unless memory holds the file.",
            disk > gpu,
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"curves": Part(lambda _: [GrowthRecipe(what) for what in CURVES])},
    run=run,
    table=table,
    draw=draw,
    claims=claims,
    alone=True,
    depends_on=(*FITS, "studies.cost.timing"),
)
