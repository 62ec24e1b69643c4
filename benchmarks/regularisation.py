"""How the rate and the weight decay of the compared networks change the verdict, on seeds that are not reported.

Usage: .venv/bin/python benchmarks/regularisation.py [--jobs 2] [--out results]     (half an hour of one core)

5,000 permuted images, which have no symmetry, against groups of two elements; and images moved by all of D4. What
helps the one may hurt the other: little decay hides what a wrong constraint costs, much what a right one gains.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from unittest import mock

os.environ["OMP_NUM_THREADS"] = "1"

import joblib

from invariantnet import InvariantClassifier
from invariantnet.experiments import fits
from invariantnet.inference.evidence import PER_BLOCK
from invariantnet.storage import write_json

SEEDS = (100, 101)
DECAYS = {
    3e-3: (0.01, 0.2, 0.5, 0.8, 1.5),
    6e-3: (0.25, 0.4, 1.0, 1.5),
    1e-2: (0.7, 1.0, 1.2, 1.5),
    2e-2: (0.5, 0.7, 1.0),
    4e-2: (0.5, 0.7),
}
PAIRS = fits.FitRecipe("mnist:permuted", 5000, 0, "trivial", groups=("rot180", "hflip", "vflip", "transpose"))
SQUARE = fits.FitRecipe("mnist:d4", 5000, 0, "d4")


def verdict(recipe: fits.FitRecipe, rate: float, decay: float) -> dict:
    data = fits.load(recipe.data, recipe.seed)
    training = replace(PER_BLOCK, learning_rate=rate, weight_decay=decay)
    # Joins of groups of two elements are larger, and easily told.
    joins = recipe.groups == SQUARE.groups
    clf = InvariantClassifier(recipe.groups, data.shape, joins=joins, epochs=1, random_state=recipe.seed)
    with mock.patch.object(InvariantClassifier, "comparison", training):
        found = clf.fit(*fits.learned(recipe, data)).posterior_
    truth = found.names.index(recipe.truth)
    return {
        "data": recipe.data.partition(":")[2],
        "seed": recipe.seed,
        "learning_rate": rate,
        "weight_decay": decay,
        "favourite": found.favourite,
        "of_truth": round(found.probabilities[truth], 4),
        "log_evidence": round(found.log_evidence[truth], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    rows = joblib.Parallel(options.jobs)(
        joblib.delayed(verdict)(replace(recipe, seed=seed), rate, decay)
        for rate, decays in DECAYS.items()
        for decay in decays
        for recipe in (PAIRS, SQUARE)
        for seed in SEEDS
    )
    write_json(options.out / "regularisation.json", rows)


if __name__ == "__main__":
    main()
