"""A verdict and a network, against the same choice by hand: scikit-learn's MLP and four augmentations.

Usage: .venv/bin/python benchmarks/by_hand.py [--seeds 3] [--out results]

Both get the same 5,000 rotated MNIST images, a hidden layer of 100, one thread; CPU seconds are counted. By hand:
train on every pose of the training part under each of {none, flips, rot90, d4}, with early stopping; take the
augmentation that does best on a fifth kept aside; train with it on everything.
"""

import argparse
import os
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from sklearn.neural_network import MLPClassifier

import invariantnet as inv
from invariantnet._system.files import write_json

GROUPS = ("trivial", "flips", "rot90", "d4")
EXAMPLES = 5000


def augmented(x: np.ndarray, y: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    copies = inv.symmetry(name, shape=(28, 28)).act(torch.from_numpy(x)).numpy()
    return copies.reshape(-1, x.shape[1]), np.repeat(y, copies.shape[1])


def mlp(seed: int) -> MLPClassifier:
    return MLPClassifier((100,), early_stopping=True, n_iter_no_change=5, max_iter=100, random_state=seed)


def by_hand(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[str, MLPClassifier]:
    aside = len(x) // 5
    scores = {}
    for name in GROUPS:
        network = mlp(seed).fit(*augmented(x[aside:], y[aside:], name))
        scores[name] = network.score(x[:aside], y[:aside])
    best = max(scores, key=scores.get)
    return best, mlp(seed).fit(*augmented(x, y, best))


def measured(function, x: np.ndarray, y: np.ndarray, seed: int, data: inv.datasets.Dataset) -> dict:
    start = time.process_time()
    chosen, model = function(x, y, seed)
    seconds = time.process_time() - start
    accuracy = 100 * model.score(data.x_test, data.y_test)
    return {"chosen": chosen, "accuracy": round(accuracy, 2), "cpu_seconds": round(seconds, 1)}


def ours(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[str, inv.InvariantClassifier]:
    clf = inv.InvariantClassifier(("rot90", "flips"), (28, 28), random_state=seed).fit(x, y)
    return clf.symmetry_.name, clf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for seed in range(options.seeds):
        data = inv.datasets.load("mnist:rotated", seed=seed)
        keep = np.random.default_rng(seed).permutation(len(data.x_train))[:EXAMPLES]
        x, y = data.x_train[keep], data.y_train[keep]
        for name, function in (("ours", ours), ("by hand", by_hand)):
            rows.append({"method": name, "seed": seed, **measured(function, x, y, seed, data)})
            print(rows[-1], flush=True)
    write_json(options.out / "by_hand.json", rows)


if __name__ == "__main__":
    main()
