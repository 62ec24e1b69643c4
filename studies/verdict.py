"""A whole verdict on 5,000 rotated images, against training all of its networks one after another.

Usage: .venv/bin/python benchmarks/verdict.py [--out results]     (about two minutes, one thread)

{none, rot90, flips, d4}, three networks each. First the twelve networks are trained on all examples, without a
verdict. The plain loop trains every network on every block, and the CPU seconds of each are counted. Racing drops
hypotheses that are hopeless: it is given the loop's networks, which are the same to the last bit, and takes the
seconds of those that it asks for, and its own.
"""

import argparse
import os
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

import invariantnet as inv
from invariantnet.inference.hypotheses import compared_units
from invariantnet.inference import Evidence, gather_evidence
from invariantnet.inference.models import DECAYED
from invariantnet.inference.scoring import BlockScore
from invariantnet.inference.hypotheses import hypotheses
from invariantnet.nn import Symmetrized, mlp
from invariantnet._system.files import write_json
from invariantnet.training.loop import train

SHAPE = (28, 28)


class Timed(dict):
    """Scores of networks, the CPU seconds that each took, and which were asked for."""

    def __init__(self) -> None:
        self.seconds, self.used, self.last = {}, set(), time.process_time()

    def __setitem__(self, key: str, score: BlockScore) -> None:
        super().__setitem__(key, score)
        before, self.last = self.last, time.process_time()
        self.seconds[key] = self.last - before

    def __getitem__(self, key: str) -> BlockScore:
        self.used.add(key)
        return super().__getitem__(key)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    out = parser.parse_args().out
    torch.set_num_threads(1)
    data = inv.datasets.load("mnist:rotated", seed=0)
    x, y = torch.from_numpy(data.x_train[:5000]), torch.from_numpy(data.y_train[:5000])
    groups = hypotheses([inv.symmetry(name, shape=SHAPE) for name in ("rot90", "flips")])

    def make(group: inv.Group) -> torch.nn.Module:
        features = round(100 * DECAYED.width)
        return Symmetrized(mlp(SHAPE, 10, features, units=compared_units(group, groups)), [group])

    start = time.process_time()
    for group in groups:
        for seed in range(3):
            train(lambda group=group: make(group), x, y, DECAYED.training, seed)
    rows = [{"method": "all examples", "cpu_seconds": round(time.process_time() - start, 1), "networks": 12}]
    print(rows[-1], flush=True)
    store = Timed()
    for name, margin in (("plain loop", np.inf), ("racing", Evidence.margin)):
        store.used.clear()
        start = time.process_time()
        found = gather_evidence(make, groups, x, y, config=Evidence(n_networks=3, margin=margin), store=store)
        seconds = time.process_time() - start
        if name == "racing":
            seconds += sum(store.seconds[key] for key in store.used)
        rows.append(
            {
                "method": name,
                "cpu_seconds": round(seconds, 1),
                "networks": len(store.used),
                "names": list(found.names),
                "probabilities": [round(p, 4) for p in found.probabilities],
            }
        )
        print(rows[-1], flush=True)
    rows.reverse()
    print("ratios", *(round(rows[0]["cpu_seconds"] / row["cpu_seconds"], 2) for row in rows[1:]))
    write_json(out / "verdict.json", rows)


if __name__ == "__main__":
    main()
