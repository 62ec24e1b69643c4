"""Are the stated probabilities honest? Hundreds of small data sets whose symmetry is known by construction.

Inputs are Gaussian. Labels are drawn from a random teacher network, averaged over the true group; an easy teacher
is nearly deterministic, a hard one leaves much to chance.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import nn

from invariantnet.symmetries import lookup as catalogue
from invariantnet.estimator import InvariantClassifier
from studies.fits import second_opinion
from studies.recipes import file_name
from studies.results import Flat
from studies.run import Record
from invariantnet.inference.hypotheses import hypotheses
from invariantnet.nn import Symmetrized
from invariantnet._system.torch_state import seeded

FAMILIES: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "images": ((4, 4), ("rot90", "flips")),
    "sequences": ((6, 2), ("reversal", "cyclic")),
    "sets": ((4, 2), ("permutations",)),
    "signs": ((8,), ("sign",)),
    "channels": ((3, 2, 2), ("channels",)),
}
"""Shape of the inputs and the candidates of each kind of data."""

SIZES = (100, 300, 1000)
SHARPNESS = {"easy": 12.0, "hard": 3.0}
CLASSES = 2
TEACHER_WIDTH = 8


@dataclass(frozen=True)
class CalibrationRecipe:
    """One synthetic data set."""

    family: str
    truth: str
    n: int
    difficulty: str
    seed: int

    @property
    def key(self) -> str:
        """File name: readable, and different for every difference."""
        words = f"calibration-{self.family}-{self.truth}-{self.n}-{self.difficulty}-seed{self.seed}"
        return file_name(words, self)


def calibration(seed: int) -> list[CalibrationRecipe]:
    """Every family, every truth, every size and difficulty, once."""
    return [
        CalibrationRecipe(family, truth, n, difficulty, seed)
        for family, (shape, names) in FAMILIES.items()
        for truth, n, difficulty in product(_truths(shape, names), SIZES, SHARPNESS)
    ]


def synthetic(recipe: CalibrationRecipe) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels; the labels' distribution is exactly invariant to the true group, and to no larger one."""
    shape, names = FAMILIES[recipe.family]
    groups = hypotheses([catalogue.symmetry(name, shape) for name in names])
    group = next(g for g in groups if g.name == recipe.truth)
    words = f"{recipe.family} {recipe.truth} {recipe.difficulty}"
    seed = int(np.random.SeedSequence([recipe.seed, recipe.n, *words.encode()]).generate_state(1)[0])
    with seeded(seed), torch.no_grad():
        hidden, output = nn.Linear(group.dim, TEACHER_WIDTH), nn.Linear(TEACHER_WIDTH, 1)
        nn.init.normal_(hidden.weight, std=1.5 / group.dim**0.5)
        nn.init.normal_(output.weight)
        teacher = Symmetrized(nn.Sequential(hidden, nn.Tanh(), output), [group], "features")
        x = torch.randn(recipe.n, group.dim)
        score = teacher(x)[:, 0]
        # Balanced classes and one scale, so that a larger group does not mean weaker labels.
        score = (score - score.median()) / score.std()
        y = (torch.rand(recipe.n) < torch.sigmoid(SHARPNESS[recipe.difficulty] * score)).long()
    return x.numpy(), y.numpy()


def run_calibration(recipe: CalibrationRecipe) -> Record:
    """The posterior for one data set."""
    shape, names = FAMILIES[recipe.family]
    x, y = synthetic(recipe)
    clf = InvariantClassifier(
        names, shape, hidden=32, epochs=1, second_opinion=True, random_state=recipe.seed
    ).fit(x, y)
    return {
        "names": list(clf.posterior_.names),
        "probabilities": [round(p, 5) for p in clf.posterior_.probabilities],
        **second_opinion(clf),
    }


def flatten(recipes: list[CalibrationRecipe], records: list[Record]) -> Flat:
    """The committed fields."""
    rows = []
    for r, record in zip(recipes, records, strict=True):
        best = int(np.argmax(record["probabilities"]))
        rows.append(
            {
                "family": r.family,
                "n": r.n,
                "truth": r.truth,
                "favourite": record["names"][best],
                "probability": record["probabilities"][best],
                "difficulty": r.difficulty,
                "seed": r.seed,
                "laplace": record["laplace"],
                "seconds": record["seconds"],
            }
        )
    return rows


def summary(records: Flat, threshold: float = 0.9) -> dict[str, float]:
    """How often confident verdicts are right, and how often a symmetry is claimed where there is none."""
    confident = [r for r in records if r["probability"] >= threshold]
    without = [r for r in records if r["truth"] == "trivial"]
    claims = [r for r in without if r["probability"] >= threshold and r["favourite"] != "trivial"]
    return {
        "data sets": float(len(records)),
        "confident": float(len(confident)),
        "right among confident": float(np.mean([r["favourite"] == r["truth"] for r in confident]))
        if confident
        else 1.0,
        "right": float(np.mean([r["favourite"] == r["truth"] for r in records])),
        "false claims": len(claims) / max(1, len(without)),
    }


def _truths(shape: tuple[int, ...], names: tuple[str, ...]) -> list[str]:
    return [g.name for g in hypotheses([catalogue.symmetry(name, shape) for name in names])]
