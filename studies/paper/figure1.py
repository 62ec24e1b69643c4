"""Figure 1: where does π converge on permuted, rotated, flipped and plain images, and where does our posterior?"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from invariantnet.data import VARIANTS
from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS, OTHER
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.framework.records import select
from studies.inference import fits, posterior
from studies.inference.fits import FitRecipe, FitResult
from studies.paper import networks, published
from studies.paper.networks import NetworkRecipe, NetworkResult, invariant_net_recipe

HELD_OUT_EXAMPLES, HELD_OUT_SEEDS = 5000, 10
"""Learning π on held-out data is slow, so it gets a twelfth of MNIST."""

PANELS = {"permuted": "Permuted", "rotated": "Rotated", "flipped": "Flipped", "plain": "Normal"}
"""Titles of the panels, in the paper's words."""

ROWS = {"paper": "π of the printed layer", "heldout": "π by held-out data", "evidence": "posterior by evidence"}
"""Labels of the rows of panels, from top to bottom."""

AnyRecipe = NetworkRecipe | FitRecipe


@dataclass(frozen=True)
class Record:
    """The path of π, or of the posterior, in one run."""

    method: str
    data: str
    seed: int
    names: tuple[str, ...]
    trajectory: tuple[tuple[float, ...], ...]
    predicted: tuple[int, ...] = ()
    """Labels predicted after every step of the path; empty if it has one step per epoch."""


def printed(seed: int) -> list[NetworkRecipe]:
    """One candidate on the transformed sets; both, with Dir(2, 2, 2), on plain images."""
    return [
        invariant_net_recipe("rot", "mnist:permuted", seed),
        invariant_net_recipe("flip", "mnist:permuted", seed),
        invariant_net_recipe("rot", "mnist:rotated", seed),
        invariant_net_recipe("flip", "mnist:flipped", seed),
        invariant_net_recipe("both", "mnist:plain", seed),
    ]


def held_out(seed: int) -> list[FitRecipe]:
    """π learned on held-out data."""
    return [FitRecipe(f"mnist:{v}", HELD_OUT_EXAMPLES, seed, truth, "heldout") for v, truth in VARIANTS.items()]


def run(recipe: AnyRecipe) -> NetworkResult | FitResult:
    """Train the network, or fit the classifier, of a recipe."""
    return networks.run_network(recipe) if isinstance(recipe, NetworkRecipe) else fits.run_fit(recipe)


def quick(recipe: AnyRecipe) -> AnyRecipe:
    """Make a recipe small."""
    return networks.quick(recipe) if isinstance(recipe, NetworkRecipe) else fits.quick(recipe)


def keep(recipe: AnyRecipe, result: NetworkResult | FitResult) -> list[Record]:
    """Keep the path."""
    predicted = result.predicted if isinstance(result, FitResult) else ()
    return [Record(recipe.method, recipe.variant, recipe.seed, result.names, result.trajectory, predicted)]


def table(records: Sequence[Record]) -> str:
    """Where π ends: the mean over seeds, and the range."""
    rows = []
    for method, data, names in dict.fromkeys((r.method, r.data, r.names) for r in records):
        found = select(records, method=method, data=data, names=names)
        ends = np.array([r.trajectory[-1] for r in found])
        for k, name in enumerate(names):
            low, high = ends[:, k].min(), ends[:, k].max()
            rows.append([method, data, name, f"{ends[:, k].mean():.3f}", f"{low:.3f} – {high:.3f}"])
    return markdown(["method", "data", "scheme", "π at the end", "range over seeds"], rows)


def draw(records: Sequence[Record]) -> Figure:
    """Draw the mean and range over seeds: a row of panels per method, a panel per data set."""
    methods = [m for m in ROWS if select(records, method=m)]
    figure = Figure(figsize=(11, 0.3 + 2.5 * len(methods)))
    grid = figure.subplots(len(methods), len(PANELS), sharey=True, squeeze=False)
    for row, (axes, method) in enumerate(zip(grid, methods, strict=True)):
        for axis, (data, title) in zip(axes, PANELS.items(), strict=True):
            found = select(records, method=method, data=data)
            if method == "evidence":
                _draw_posterior(axis, found)
            else:
                _draw_pi(axis, found)
            axis.set(ylim=(-0.02, 1.02), xlabel="labels predicted" if method == "evidence" else "epoch")
            if row == 0:
                axis.set_title(f"{title} data set")
        axes[0].set_ylabel(ROWS[method])
    figure.tight_layout()
    return figure


def _draw_posterior(axis: Axes, records: Sequence[Record]) -> None:
    if not records:
        return
    predicted = max((r.predicted for r in records), key=len)
    steps = len(predicted) + 1
    for name, paths in zip(records[0].names, _stacked(records, steps), strict=True):
        color = COLORS.get(name, OTHER)
        axis.plot(paths.mean(0), "o-", markersize=2, color=color, label=name)
        axis.fill_between(range(steps), paths.min(0), paths.max(0), color=color, alpha=0.2, linewidth=0)
    axis.set_xticks(range(steps), ["0", *(f"{n / 1000:.1f}k" for n in predicted)], fontsize=6)
    axis.legend(frameon=False, fontsize=7, loc="center right")


def _draw_pi(axis: Axes, records: Sequence[Record]) -> None:
    versions = {names: list(found) for names, found in groupby(_by_names(records), lambda r: r.names)}
    for style, (names, found) in zip(("-", "--"), versions.items(), strict=False):
        steps = max(len(r.trajectory) for r in found)
        for name, paths in zip(names, _stacked(found, steps), strict=True):
            color = COLORS.get(name, OTHER)
            label = name if len(versions) == 1 or name != "trivial" else f"trivial (beside {names[0]})"
            axis.plot(paths.mean(0), style, color=color, label=label)
            axis.fill_between(np.arange(steps), paths.min(0), paths.max(0), color=color, alpha=0.2, linewidth=0)
    if records:
        axis.legend(frameon=False, fontsize=7, loc="center right")


def _by_names(records: Sequence[Record]) -> list[Record]:
    return sorted(records, key=lambda r: r.names, reverse=True)


def _stacked(records: Sequence[Record], steps: int) -> np.ndarray:
    """Paths by scheme, seed and step; a run that stopped early stays where it stopped."""
    paths = [(*r.trajectory, *[r.trajectory[-1]] * (steps - len(r.trajectory))) for r in records]
    return np.array(paths).transpose(2, 0, 1)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    one_candidate = [r for r in records if r.method == "paper" and len(r.names) == 2]
    seeds = {m: len({r.seed for r in select(records, method=m)}) for m in ("evidence", "heldout")}
    return {
        "symmetry wins": Claim(
            "The symmetry wins on every data set, the permuted one included.",
            all(r.trajectory[-1][0] > 0.5 for r in one_candidate),
        ),
        "seeds": Claim(
            f"By evidence with all 60,000 images, {seeds['evidence']} seeds; by held-out data with "
            f"{HELD_OUT_EXAMPLES:,}, {seeds['heldout']} seeds."
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={
        "paper": Part(printed, published.SEEDS),
        "heldout": Part(held_out, HELD_OUT_SEEDS),
        "evidence": Part(posterior.all_of_mnist, posterior.ALL_SEEDS),
    },
    run=run,
    keep=keep,
    quick=quick,
    table=table,
    draw=draw,
    claims=claims,
    depends_on=(*FITS, "studies.paper.networks", "studies.inference.posterior"),
)
