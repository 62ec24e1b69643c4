"""With what probability does an observation follow each scheme? The whole posterior over π, under three priors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import stats

from invariantnet.choices import MixtureMethod
from invariantnet.data import VARIANTS
from invariantnet.data.examples import Examples
from invariantnet.inference import HeldOut, fit_heldout
from invariantnet.inference.mixture_posterior import MixturePosterior
from invariantnet.nn import Symmetrized, mlp
from invariantnet.nn.standardize import InputStatistics
from studies.datasets import draw_examples
from studies.framework import Claim, Part, Study
from studies.framework.drawing import COLORS, OTHER
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.framework.records import select
from studies.inference import fits
from studies.inference.fits import FitRecipe

PRIORS = {"Jeffreys": 0.5, "uniform": 1.0, "Dir(2, …, 2)": 2.0}
"""α of each prior."""

REFERENCE = "uniform"
"""The prior under which NUTS is run, too."""

EXAMPLES, SEEDS = 5000, 2
"""Examples per data set; NUTS takes minutes, so two seeds."""
METHODS = ("variational", "nuts", "neurons")
"""A fitted Dirichlet, samples of the posterior, and one scheme per feature."""
DENSEST = 25
"""Top of the figure's axis; narrow posteriors reach further."""


@dataclass(frozen=True)
class MixtureRecipe(FitRecipe):
    """A fit whose posterior over π is wanted; the final network is not."""


@dataclass(frozen=True)
class Record:
    """One posterior over π."""

    data: str
    seed: int
    truth: str
    labels: int
    """Labels that every hypothesis predicted."""
    prior: str
    method: str
    names: tuple[str, ...]
    mean: tuple[float, ...]
    interval: tuple[tuple[float, float], ...]
    """95 % interval of each scheme's probability."""
    r_hat: float
    effective_sample_size: int
    concentration: tuple[float, ...] | None
    """Of the fitted Dirichlet; None for samples."""

    @property
    def of_truth(self) -> tuple[float, float, float]:
        """Mean and interval of the true scheme's probability."""
        k = self.names.index(self.truth)
        return (self.mean[k], *self.interval[k])


def recipes(seed: int) -> list[MixtureRecipe]:
    """The paper's four data sets."""
    return [MixtureRecipe(f"mnist:{v}", EXAMPLES, seed, truth, epochs=1) for v, truth in VARIANTS.items()]


def quick(recipe: MixtureRecipe) -> MixtureRecipe:
    """Make a recipe small."""
    return replace(recipe, n=fits.QUICK_EXAMPLES)


def run(recipe: MixtureRecipe) -> list[Record]:
    """Infer π by each method under each prior; *neurons* gives every feature a scheme of its own."""
    clf, data = fits.fit(recipe)
    x, y = map(torch.from_numpy, draw_examples(data, recipe.n, recipe.seed))
    standardize = InputStatistics.of(x, clf.candidates_, data.shape).for_symmetry(clf.candidates_[-1])
    predicted = clf.posterior_.pointwise
    assert predicted is not None

    def make_mixture(alpha: float) -> Symmetrized:
        module = mlp(data.shape, len(data.class_names), recipe.hidden)
        return Symmetrized(module, clf.candidates_, standardize=standardize, prior=alpha)

    found = []
    for prior, alpha in PRIORS.items():
        methods: tuple[MixtureMethod, ...] = ("variational", "nuts") if prior == REFERENCE else ("variational",)
        found += [(prior, clf.posterior_.over_schemes(m, alpha, recipe.seed)) for m in methods]
        of_features = fit_heldout(
            partial(make_mixture, alpha), Examples(x, y), config=HeldOut(posterior="neurons"), seed=recipe.seed
        )
        found.append((prior, of_features.over_schemes(recipe.seed)))
    return [_record(recipe, predicted.shape[1], prior, posterior) for prior, posterior in found]


def _record(recipe: MixtureRecipe, labels: int, prior: str, of_pi: MixturePosterior) -> Record:
    concentration = of_pi.concentration and tuple(round(b, 3) for b in of_pi.concentration)
    return Record(
        data=recipe.variant,
        seed=recipe.seed,
        truth=recipe.truth,
        labels=labels,
        prior=prior,
        method=of_pi.method,
        names=of_pi.names,
        mean=tuple(of_pi.mean.round(4).tolist()),
        interval=tuple((low, high) for low, high in of_pi.interval().round(4).tolist()),
        r_hat=round(float(of_pi.r_hat.max()), 4),
        effective_sample_size=round(float(of_pi.effective_sample_size.min())),
        concentration=concentration,
    )


def table(records: Sequence[Record]) -> str:
    """The true scheme's probability, by data, prior and method."""
    rows = []
    for data, prior, method in dict.fromkeys((r.data, r.prior, r.method) for r in records):
        for r in select(records, data=data, prior=prior, method=method):
            mean, low, high = r.of_truth
            numbers = [f"{mean:.3f}", f"{low:.3f} – {high:.3f}", f"{r.r_hat:.3f}", str(r.effective_sample_size)]
            rows.append([data, r.truth, prior, method, str(r.seed), str(r.labels), *numbers])
    header = ["data", "truth", "prior", "method", "seed", "labels", "mean", "95 % interval", "R̂"]
    return markdown([*header, "effective samples"], rows)


def draw(records: Sequence[Record]) -> Figure:
    """Draw the density of every scheme's probability: first seed, uniform prior."""
    figure = Figure(figsize=(10, 2.6))
    grid = np.linspace(0.001, 0.999, 800)
    for axis, data in zip(figure.subplots(1, len(VARIANTS)), VARIANTS, strict=True):
        found = select(records, data=data, prior=REFERENCE, method="variational")[:1]
        for r in found:
            beta = np.array(r.concentration)
            for name, b in zip(r.names, beta, strict=True):
                density = stats.beta(b, beta.sum() - b).pdf(grid)
                axis.fill_between(grid, density, color=COLORS.get(name, OTHER), alpha=0.4, label=name)
        axis.set(title=f"{data}: {VARIANTS[data]}", xlabel="π", yticks=[], xlim=(0, 1), ylim=(0, DENSEST))
        if found:
            axis.legend(frameon=False, fontsize=7)
    figure.axes[0].set_ylabel("posterior density")
    figure.tight_layout()
    return figure


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    reference = {m: select(records, prior=REFERENCE, method=m) for m in METHODS}
    above = {m: sum(r.of_truth[1] > 0.5 for r in found) for m, found in reference.items()}
    apart = max(
        abs(np.array(a.mean) - np.array(b.mean)).max()
        for a, b in zip(reference["variational"], reference["nuts"], strict=True)
    )
    moved = max(
        abs(a.of_truth[0] - b.of_truth[0])
        for a in records
        for b in select(records, data=a.data, seed=a.seed, method=a.method)
    )
    return {
        "above one half": Claim(
            "Under the uniform prior, the 95 % interval of the true scheme lies above 0.5 in "
            f"{above['variational']} of {len(reference['variational'])} runs; where every feature has a scheme "
            f"of its own (*neurons*), in {above['neurons']} of {len(reference['neurons'])}."
        ),
        "methods agree": Claim(
            f"The fitted Dirichlet and NUTS differ by at most {apart:.3f} in any mean. The prior moves the true "
            f"scheme's mean by at most {moved:.3f}."
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"mixture": Part(recipes, SEEDS)},
    run=run,
    quick=quick,
    table=table,
    draw=draw,
    claims=claims,
    depends_on=FITS,
)
