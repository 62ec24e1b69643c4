"""How width, rate and weight decay of the compared networks change what they say, on seeds that are not reported.

Usage: .venv/bin/python benchmarks/regularisation.py [--n-jobs 2] [--out results]     (10 minutes of one core)

Trained on 1,250 images, judged on 3,750 others: what the truth gains over its rival, in nats, by one network of
each, and how much that differs between starts. On permuted images the truth is no symmetry, and the rival ties
random pairs of pixels; on images moved by all of D4 the rival knows the rotations only. What helps the one may
hurt the other: little decay hides what a wrong constraint costs, much what a right one gains.
"""

import argparse
import itertools
import os
from dataclasses import replace
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import joblib
import numpy as np
import torch

import invariantnet as inv
from invariantnet.inference.hypotheses import compared_units
from studies import fits
from invariantnet.inference.models import DECAYED
from invariantnet.inference.scoring import pointwise
from invariantnet.likelihoods import Categorical
from invariantnet.inference.hypotheses import hypotheses
from invariantnet.nn import Symmetrized, mlp
from invariantnet._system.files import write_json
from invariantnet.training.loop import predict, train

SHAPE, LEARNED, IMAGES, NETWORKS = (28, 28), 1250, 5000, 6
SEEDS = (140, 154)
KINDS = {"permuted": ("trivial", "hflip"), "d4": ("d4", "rot90")}
SETTINGS = [
    (50, 24, 3e-3, 0.01),
    (50, 24, 1e-2, 1.0),
    (50, 24, 2e-2, 0.7),
    (100, 12, 1e-2, 1.0),
    (100, 24, 1e-2, 1.0),
    (200, 12, 1e-2, 1.0),
]
"""Features, epochs, rate and decay."""


def said(kind: str, seed: int, features: int, epochs: int, rate: float, decay: float) -> dict:
    torch.set_num_threads(1)
    recipe = fits.FitRecipe(f"mnist:{kind}", IMAGES, seed, KINDS[kind][0])
    images, labels = fits.learned(recipe, fits.load(recipe.data, seed))
    digits, labels = np.unique(labels, return_inverse=True)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    groups = hypotheses([inv.symmetry(name, shape=SHAPE) for name in ("rot90", "flips", "hflip")])
    config = replace(DECAYED.training, epochs=epochs, learning_rate=rate, weight_decay=decay)

    def log_evidence(name: str, start: int) -> float:
        group = next(g for g in groups if g.name == name)
        units = compared_units(group, groups)
        network, _ = train(
            lambda: Symmetrized(mlp(SHAPE, len(digits), features, units=units), [group]),
            x[:LEARNED],
            y[:LEARNED],
            config,
            start,
        )
        output = predict(network, x[LEARNED:], Categorical())
        return float(pointwise(output, y[LEARNED:], Categorical(), doubt=0.01).sum())

    truth, rival = (np.array([log_evidence(name, start) for start in range(NETWORKS)]) for name in KINDS[kind])
    return {
        "data": kind,
        "seed": seed,
        "features": features,
        "epochs": epochs,
        "learning_rate": rate,
        "weight_decay": decay,
        "networks": NETWORKS,
        "log_evidence": round(truth.mean(), 1),
        "gain": round((truth - rival).mean(), 1),
        "spread": round((truth - rival).std(ddof=1), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    rows = joblib.Parallel(options.jobs, verbose=1)(
        joblib.delayed(said)(kind, seed, *setting)
        for setting, kind, seed in itertools.product(SETTINGS, KINDS, SEEDS)
    )
    write_json(options.out / "regularisation.json", rows)


if __name__ == "__main__":
    main()
