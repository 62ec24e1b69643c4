"""The whole posterior over π on the four data sets, under three priors: a fitted Dirichlet, and NUTS beside it."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import stats

from invariantnet.data import VARIANTS
from studies.fits import FitRecipe, fitted, learned
from studies.plots import COLORS, STYLE, save
from studies.results import Flat
from studies.run import Record
from studies.tables import markdown
from invariantnet.inference import HeldOut, fit_heldout
from invariantnet.choices import MixtureMethod
from invariantnet.inference.mixture_posterior import MixturePosterior
from invariantnet.nn import mlp

PRIORS = {"Jeffreys": 0.5, "uniform": 1.0, "Dir(2, …, 2)": 2.0}
REFERENCE = "uniform"
EXAMPLES = 5000


class SchemesRecipe(FitRecipe):
    """A fit of which another record is kept than its posterior, so in a file of another name."""

    @property
    def key(self) -> str:
        """File name."""
        return f"schemes-{super().key}"


def schemes(seed: int) -> list[FitRecipe]:
    """The paper's four data sets; the final network is not needed."""
    return [SchemesRecipe(f"mnist:{v}", EXAMPLES, seed, truth, epochs=1) for v, truth in VARIANTS.items()]


def run_schemes(recipe: FitRecipe) -> Record:
    """Mean, interval and quality of the samples, under every prior; and of every feature's own scheme."""
    clf, data = fitted(recipe)
    found: list[dict[str, Any]] = []
    for prior, alpha in PRIORS.items():
        methods: tuple[MixtureMethod, ...] = ("variational", "nuts") if prior == REFERENCE else ("variational",)
        found += [_described(prior, clf.posterior_.over_schemes(m, alpha, recipe.seed)) for m in methods]
        x, y = map(torch.from_numpy, learned(recipe, data))
        of_features = fit_heldout(
            lambda: mlp(data.shape, len(data.class_names), recipe.hidden),
            clf.hypotheses_,
            x,
            y,
            config=HeldOut(posterior="neurons"),
            alpha=alpha,
            seed=recipe.seed,
        )
        found.append(_described(prior, of_features.over_schemes(recipe.seed)))
    return {"posteriors": found, "labels": clf.posterior_.pointwise.shape[1]}  # type: ignore[union-attr]


def _described(prior: str, of_pi: MixturePosterior) -> dict[str, Any]:
    return {
        "prior": prior,
        "method": of_pi.method,
        "names": list(of_pi.names),
        "mean": of_pi.mean.round(4).tolist(),
        "interval": of_pi.interval().round(4).tolist(),
        "r_hat": round(float(of_pi.r_hat.max()), 4),
        "effective_sample_size": round(float(of_pi.effective_sample_size.min())),
        "concentration": of_pi.concentration and [round(b, 3) for b in of_pi.concentration],
    }


def flatten(recipes: list[FitRecipe], records: list[Record]) -> Flat:
    """The committed fields: one record per prior and method."""
    return [
        {
            "data": r.data.partition(":")[2],
            "seed": r.seed,
            "truth": r.truth,
            "labels": record["labels"],
            **posterior,
        }
        for r, record in zip(recipes, records, strict=True)
        for posterior in record["posteriors"]
    ]


def of_truth(record: dict[str, Any]) -> tuple[float, float, float]:
    """Mean and interval of the true scheme's probability."""
    k = record["names"].index(record["truth"])
    return (record["mean"][k], *record["interval"][k])


def table(records: Flat) -> str:
    """The true scheme's probability: by data, prior and method."""
    rows = []
    for kind in dict.fromkeys((r["data"], r["truth"], r["prior"], r["method"]) for r in records):
        found = [r for r in records if (r["data"], r["truth"], r["prior"], r["method"]) == kind]
        for r in found:
            mean, low, high = of_truth(r)
            rows.append(
                [
                    *kind[:2],
                    kind[2],
                    kind[3],
                    str(r["seed"]),
                    str(r["labels"]),
                    f"{mean:.3f}",
                    f"{low:.3f} – {high:.3f}",
                    f"{r['r_hat']:.3f}",
                    str(r["effective_sample_size"]),
                ]
            )
    header = [
        "data",
        "truth",
        "prior",
        "method",
        "seed",
        "labels",
        "mean",
        "95 % interval",
        "R̂",
        "effective samples",
    ]
    return markdown(header, rows)


def draw(records: Flat, folder: Path) -> list[Path]:
    """Densities of every scheme's probability, of the first seed, uniform prior."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 2.6))
        grid = np.linspace(0.001, 0.999, 800)
        for axis, data in zip(figure.subplots(1, len(VARIANTS)), VARIANTS, strict=True):
            found = [r for r in records if r["data"] == data and r["prior"] == REFERENCE]
            found = [r for r in found if r["method"] == "variational"][:1]
            for r in found:
                beta = np.array(r["concentration"])
                for name, b in zip(r["names"], beta, strict=True):
                    density = stats.beta(b, beta.sum() - b).pdf(grid)
                    axis.fill_between(grid, density, color=COLORS.get(name, "#9b89b3"), alpha=0.4, label=name)
            axis.set(title=f"{data}: {VARIANTS[data]}", xlabel="π", yticks=[], xlim=(0, 1), ylim=(0, 25))
            if found:
                axis.legend(frameon=False, fontsize=7)
        figure.axes[0].set_ylabel("posterior density")
        figure.tight_layout()
        return save(figure, folder, "schemes")
