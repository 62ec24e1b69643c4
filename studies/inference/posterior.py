"""Does the posterior name the symmetry that is there? Data whose symmetry is known, many seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from invariantnet.data import VARIANTS
from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS, OTHER
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.inference import fits
from studies.inference.fits import FitRecipe, FitResult

IMAGE_SYMMETRIES = ("rot90", "rot180", "hflip", "vflip", "flips", "transpose", "d4", "shifts")
"""Every group of the catalogue that moves the pixels of square images."""

ALL, ALL_EPOCHS, ALL_SEEDS = 60_000, 20, 3
"""All of MNIST takes a CPU hour per seed."""

SEEDS, OPINION_SEEDS = 10, 5
"""A second opinion takes longer than the fit, so half of the seeds ask for one."""

TABLE_ROWS = {"breast_cancer": 426, "wine": 133}
"""Tables of scikit-learn, and the rows that are not kept for testing."""

FEW = 3
"""A table lists at most this many candidates by name."""

MANY_HYPOTHESES = 4
"""The figure says how many hypotheses there are if there are more than the usual four."""


@dataclass(frozen=True)
class Record:
    """The posterior of one fit."""

    method: str
    data: str
    n: int
    seed: int
    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    log_evidence: tuple[float, ...]
    truth: str
    symmetries: tuple[str, ...]
    backbone: str
    accuracy: float
    """Test accuracy in percent."""
    laplace: str | None = None
    """What Laplace's approximation favours, if it was asked."""
    seconds: tuple[float, ...] | None = None
    """CPU seconds of the comparison and of Laplace's approximation, if it was asked."""

    @property
    def favourite(self) -> str:
        """The most probable hypothesis."""
        return self.names[int(np.argmax(self.probabilities))]

    @property
    def of_truth(self) -> float:
        """Probability of the truth."""
        return self.probabilities[self.names.index(self.truth)]

    @property
    def candidates(self) -> str:
        """The candidates, by name or by number."""
        few = len(self.symmetries) <= FEW
        return ", ".join(self.symmetries) if few else f"all {len(self.symmetries)} of images"

    @property
    def kind(self) -> tuple[object, ...]:
        """What records of different seeds have in common."""
        return self.method, self.data, self.n, self.symmetries, self.truth, self.backbone


def few_examples(seed: int) -> list[FitRecipe]:
    """The paper's four data sets and two more, with 1,000 and 5,000 examples; and two tables."""
    recipes = [
        FitRecipe(f"mnist:{variant}", n, seed, truth, second_opinion=seed < OPINION_SEEDS)
        for n in (5000, 1000)
        for variant, truth in VARIANTS.items()
    ]
    recipes.append(FitRecipe("mnist:d4", 5000, seed, "d4"))
    recipes.append(FitRecipe("mnist:rotated", 5000, seed, "rot90", symmetries=("rot180", "rot90")))
    recipes += [FitRecipe(f"table:{name}", n, seed, "trivial") for name, n in TABLE_ROWS.items()]
    recipes += [FitRecipe(f"mnist:{v}", 5000, seed, truth, "heldout") for v, truth in VARIANTS.items()]
    return recipes + [
        FitRecipe(f"mnist:{v}", 5000, seed, truth, symmetries=IMAGE_SYMMETRIES) for v, truth in VARIANTS.items()
    ]


def all_of_mnist(seed: int) -> list[FitRecipe]:
    """All of MNIST, in its four variants; by MLPs, as convolutions would take a CPU day."""
    return [
        FitRecipe(f"mnist:{v}", ALL, seed, truth, backbone="mlp", epochs=ALL_EPOCHS)
        for v, truth in VARIANTS.items()
    ]


def by_cnn(seed: int) -> list[FitRecipe]:
    """The same comparison by convolutional networks alone."""
    return [FitRecipe("mnist:rotated", 5000, seed, "rot90", backbone="cnn", epochs=12)]


def keep(recipe: FitRecipe, result: FitResult) -> list[Record]:
    """Keep the posterior and the accuracy."""
    return [
        Record(
            recipe.method,
            recipe.variant,
            recipe.n,
            recipe.seed,
            result.names,
            result.probabilities,
            result.log_evidence,
            recipe.truth,
            recipe.symmetries,
            recipe.backbone,
            result.accuracy["own"],
            result.laplace,
            result.seconds,
        )
    ]


def by_kind(records: Sequence[Record]) -> list[list[Record]]:
    """Group records that differ only in their seed; those of the default backbone come first."""
    groups = [[r for r in records if r.kind == kind] for kind in dict.fromkeys(r.kind for r in records)]
    return sorted(groups, key=lambda found: found[0].backbone != "auto")


def table(records: Sequence[Record]) -> str:
    """How often the truth was named, and how small its probability got."""
    rows = []
    for found in by_kind(records):
        first = found[0]
        right = sum(r.favourite == r.truth for r in found)
        rows.append(
            [
                first.data,
                str(first.n),
                first.candidates,
                first.truth,
                f"{first.method}, {'auto' if first.backbone == 'auto' else first.backbone.upper()}",
                f"{right} of {len(found)}",
                f"{min(r.of_truth for r in found):.3f}",
                f"{np.mean([r.accuracy for r in found]):.1f}",
            ]
        )
    header = ["data", "n", "candidates", "truth", "method", "truth is favourite"]
    return markdown([*header, "its lowest posterior", "accuracy"], rows)


def draw(records: Sequence[Record]) -> Figure:
    """Draw the posterior of every seed, one column each, in a panel per data set."""
    shown = [r for r in records if r.method == "evidence" and r.backbone != "cnn"]
    kinds = by_kind(shown)
    columns, seeds = 4, max(r.seed for r in shown) + 1
    rows = -(-len(kinds) // columns)
    figure = Figure(figsize=(10, 0.5 + 1.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axis in axes.flat[len(kinds) :]:
        axis.set_visible(False)
    for axis, found in zip(axes.flat, kinds, strict=False):
        first, bottom = found[0], np.zeros(len(found))
        for k, name in enumerate(first.names):
            heights = np.array([r.probabilities[k] for r in found])
            axis.bar(range(len(found)), heights, bottom=bottom, color=COLORS.get(name, OTHER))
            bottom += heights
        among = f", among {len(first.names)}" if len(first.names) > MANY_HYPOTHESES else ""
        data = first.data.removeprefix("table:") + ("" if first.backbone == "auto" else " (MLP)")
        axis.set_title(f"{data}, n = {first.n:,}{among}: {first.truth}", fontsize=8)
        axis.set(xticks=[], xlim=(-0.7, seeds - 0.3), yticks=[0, 1])
    labels = {"no symmetry": "trivial", "flips": "flips", "rot90": "rot90", "d4": "d4", "another": ""}
    handles = [Patch(color=COLORS.get(name, OTHER), label=label) for label, name in labels.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    figure.supylabel("posterior, one column per seed", fontsize=8)
    return figure


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    counts = []
    for method in ("evidence", "heldout"):
        found = [r for r in records if r.method == method]
        right = sum(r.favourite == r.truth for r in found)
        counts.append(f"`{method}` named the symmetry that is there in {right} of {len(found)} runs")
    low = min((r for r in records if r.method == "evidence"), key=lambda r: r.of_truth)
    wrong = "; ".join(
        f"{r.data}, n = {r.n:,}, {len(r.names)} hypotheses, seed {r.seed}: {r.favourite} with "
        f"{max(r.probabilities):.2f}, {r.truth} with {r.of_truth:.2f}"
        for r in records
        if r.favourite != r.truth
    )
    tables = [r for r in records if r.data.startswith("table:")]
    return {
        "named": Claim(
            f"{'; '.join(counts)}. The lowest posterior that `evidence` gave a truth was {low.of_truth:.3f} "
            f"({low.data}, n = {low.n:,}, {low.candidates})."
            + (f" Where another was named: {wrong}." if wrong else "")
        ),
        "tables": Claim(
            "Tables of scikit-learn whose columns are laid out as an image have no symmetry, and the posterior "
            "says so.",
            all(r.favourite == "trivial" for r in tables),
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={
        "few examples": Part(few_examples, SEEDS),
        "all of MNIST": Part(all_of_mnist, ALL_SEEDS),
        "CNN": Part(by_cnn, SEEDS),
    },
    run=fits.run_fit,
    keep=keep,
    quick=fits.quick,
    table=table,
    draw=draw,
    claims=claims,
    depends_on=FITS,
)
