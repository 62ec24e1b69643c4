"""A whole verdict on 5,000 rotated images, against training all of its networks one after another.

Usage: .venv/bin/python benchmarks/verdict.py [--out results]     (about four minutes, one thread)

{none, rot90, flips, d4}, three networks each. The plain loop trains every network on every block; racing drops
hypotheses that are hopeless. CPU seconds, both in one run.
"""

import argparse
import os
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

import invariantnet as inv
from invariantnet.estimator import compared_units
from invariantnet.inference import Evidence, gather_evidence
from invariantnet.measures import hypotheses
from invariantnet.nn import Symmetrized, mlp
from invariantnet.storage import write_json

SHAPE = (28, 28)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    out = parser.parse_args().out
    torch.set_num_threads(1)
    data = inv.datasets.load("mnist:rotated", seed=0)
    x, y = torch.from_numpy(data.x_train[:5000]), torch.from_numpy(data.y_train[:5000])
    groups = hypotheses([inv.group(name, shape=SHAPE) for name in ("rot90", "flips")])

    def make(group: inv.Group) -> torch.nn.Module:
        return Symmetrized(mlp(SHAPE, 10, 50, units=compared_units(group, groups)), [group])

    rows = []
    for name, margin in (("racing", Evidence.margin), ("plain loop", np.inf)):
        start = time.process_time()
        found = gather_evidence(make, groups, x, y, config=Evidence(seeds=3, margin=margin))
        seconds = time.process_time() - start
        rows.append(
            {
                "method": name,
                "cpu_seconds": round(seconds, 1),
                "names": list(found.names),
                "probabilities": [round(p, 4) for p in found.probabilities],
            }
        )
        print(rows[-1], flush=True)
    print(f"ratio {rows[0]['cpu_seconds'] / rows[1]['cpu_seconds']:.2f}")
    write_json(out / "verdict.json", rows)


if __name__ == "__main__":
    main()
