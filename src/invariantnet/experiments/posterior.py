"""Does the posterior name the symmetry that is there? Data whose symmetry is known, many seeds."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from invariantnet import datasets
from invariantnet.datasets import VARIANTS, Dataset
from invariantnet.estimator import InvariantClassifier
from invariantnet.experiments.recipes import BOTH, file_name
from invariantnet.experiments.results import Flat
from invariantnet.experiments.run import Record

FINAL_EPOCHS = 50
TABULAR = {"breast_cancer": (6, 426), "wine": (4, 133)}
"""Tables of scikit-learn: side of the square that their columns are padded to, and all rows to learn from."""


@dataclass(frozen=True)
class PosteriorRecipe:
    """One posterior, from n examples of a data set."""

    data: str
    n: int
    seed: int
    truth: str
    method: str = "evidence"
    groups: tuple[str, ...] = BOTH
    epochs: int = FINAL_EPOCHS

    @property
    def key(self) -> str:
        """File name: readable, and different for every difference."""
        return file_name(f"{self.method}-{self.data}-{self.n}-seed{self.seed}", asdict(self))


def posterior(seed: int) -> list[PosteriorRecipe]:
    """The paper's four data sets, and two more; at 5,000 and 1,000 examples."""
    recipes = [
        PosteriorRecipe(f"mnist:{variant}", n, seed, truth)
        for n in (5000, 1000)
        for variant, truth in VARIANTS.items()
    ]
    recipes.append(PosteriorRecipe("mnist:d4", 5000, seed, "d4"))
    recipes.append(PosteriorRecipe("mnist:rotated", 5000, seed, "rot90", groups=("rot180", "rot90")))
    recipes += [PosteriorRecipe(f"table:{name}", n, seed, "trivial") for name, (_, n) in TABULAR.items()]
    return recipes


def run_posterior(recipe: PosteriorRecipe) -> Record:
    """Fit, and keep the posterior and the test accuracy."""
    data = load(recipe.data, recipe.seed)
    keep = np.random.default_rng(recipe.seed).permutation(len(data.x_train))[: recipe.n]
    clf = InvariantClassifier(
        recipe.groups, data.shape, recipe.method, epochs=recipe.epochs, random_state=recipe.seed
    )
    clf.fit(data.x_train[keep], data.y_train[keep])
    found = clf.posterior_
    return {
        "names": list(found.names),
        "probabilities": [round(p, 6) for p in found.probabilities],
        "log_evidence": [round(v, 3) for v in found.log_evidence],
        "spread": [round(v, 3) for v in found.log_evidence_spread],
        "dropped": list(found.dropped),
        "accuracy": round(100 * float(clf.score(data.x_test, data.y_test)), 3),
    }


def flatten(recipes: list[PosteriorRecipe], records: list[Record]) -> Flat:
    """The committed fields."""
    fields = ("names", "probabilities", "log_evidence")
    return [
        {
            "method": r.method,
            "data": r.data if r.data.startswith("table") else r.data.partition(":")[2],
            "n": r.n,
            "seed": r.seed,
            **{field: record[field] for field in fields},
            "truth": r.truth,
            "groups": list(r.groups),
            "accuracy": record["accuracy"],
        }
        for r, record in zip(recipes, records, strict=True)
    ]


def load(name: str, seed: int) -> Dataset:
    """A data set by name; `table:NAME` is a table of scikit-learn, its columns laid out as if they were pixels."""
    kind, _, which = name.partition(":")
    return table_as_images(which, seed) if kind == "table" else datasets.load(name, seed=seed)


def table_as_images(name: str, seed: int) -> Dataset:
    """Standardised columns in a random order, padded with zeros to a square."""
    from sklearn import datasets as tables

    x, y = getattr(tables, f"load_{name}")(return_X_y=True)
    rng = np.random.default_rng(seed)
    x = (x - x.mean(0)) / x.std(0)
    side, _ = TABULAR[name]
    square = np.zeros((len(x), side * side), np.float32)
    square[:, : x.shape[1]] = x[:, rng.permutation(x.shape[1])]
    order = rng.permutation(len(x))
    train, test = order[: -len(x) // 4], order[-len(x) // 4 :]
    labels = y.astype(np.int64)
    return Dataset(
        square[train],
        labels[train],
        square[test],
        labels[test],
        (side, side),
        tuple(str(c) for c in np.unique(labels)),
        f"{name} of scikit-learn, columns in random order as a {side}×{side} image, seed {seed}",
    )


def scores(records: Flat) -> list[dict[str, Any]]:
    """Per data set and size: how often the truth was the favourite, and how small its posterior got."""
    rows = []
    for key in dict.fromkeys((r["method"], r["data"], r["n"], tuple(r["groups"]), r["truth"]) for r in records):
        method, data, n, groups, truth = key
        found = [r for r in records if (r["method"], r["data"], r["n"], tuple(r["groups"]), r["truth"]) == key]
        of_truth = [r["probabilities"][r["names"].index(truth)] for r in found]
        right = sum(r["names"][int(np.argmax(r["probabilities"]))] == truth for r in found)
        rows.append(
            {
                "method": method,
                "data": data,
                "n": n,
                "candidates": ", ".join(groups),
                "truth": truth,
                "favourite": f"{right} of {len(found)}",
                "lowest": min(of_truth),
                "accuracy": float(np.mean([r["accuracy"] for r in found])),
            }
        )
    return rows
