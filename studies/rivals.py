"""A network with the symmetry given: e2cnn with C4, on the 5,000 rotated images of `by_hand.py`.

Usage: python3 -m venv RIVALS && RIVALS/bin/pip install torch==2.13.0 "numpy<2" e2cnn
       .venv/bin/python benchmarks/rivals.py RIVALS/bin/python [--seeds 3] [--out results]

e2cnn needs a numpy older than ours, so it runs in an environment of its own: this script writes the images, and
calls itself there. One thread; CPU seconds of the training are counted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

EXAMPLES, EPOCHS, BATCH = 5000, 12, 64


def network(classes: int) -> torch.nn.Module:
    """Three convolutions between fields of the regular representation of C4, then a linear layer."""
    from e2cnn import gspaces
    from e2cnn import nn as enn

    space = gspaces.Rot2dOnR2(N=4)
    image = enn.FieldType(space, [space.trivial_repr])
    layers, before = [], image
    for fields, pool in ((8, True), (16, True), (24, False)):
        after = enn.FieldType(space, fields * [space.regular_repr])
        layers += [enn.R2Conv(before, after, 5, padding=2), enn.InnerBatchNorm(after), enn.ReLU(after)]
        layers += [enn.PointwiseMaxPool(after, 2)] if pool else []
        before = after
    body = enn.SequentialModule(*layers, enn.GroupPooling(before))
    head = torch.nn.Linear(24, classes)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = body, head

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features = self.body(enn.GeometricTensor(x.reshape(-1, 1, 28, 28), image)).tensor
            return self.head(features.mean((2, 3)))

    return Network()


def given_c4(path: Path) -> dict[str, float]:
    """Train on what the file holds."""
    torch.set_num_threads(1)
    data = np.load(path)
    x, y, x_test, y_test = (torch.from_numpy(data[name]) for name in ("x", "y", "x_test", "y_test"))
    torch.manual_seed(int(data["seed"]))
    start = time.process_time()
    model = network(10)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1e-2)
    steps = EPOCHS * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
            schedule.step()
    seconds = time.process_time() - start
    model.eval()
    with torch.no_grad():
        chosen = torch.cat([model(part).argmax(1) for part in x_test.split(500)])
    accuracy = 100 * float((chosen == y_test).double().mean())
    return {"accuracy": round(accuracy, 2), "cpu_seconds": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="of the environment with e2cnn")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    import invariantnet as inv
    from invariantnet._system.files import write_json

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npz"
        for seed in range(options.seeds):
            data = inv.datasets.load("mnist:rotated", seed=seed)
            keep = np.random.default_rng(seed).permutation(len(data.x_train))[:EXAMPLES]
            x, y = data.x_train[keep], data.y_train[keep]
            np.savez(path, x=x, y=y, x_test=data.x_test, y_test=data.y_test, seed=seed)
            command = [options.python, "-W", "ignore", __file__, "--images", str(path)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            rows.append({"method": "e2cnn, C4 given", "seed": seed, **json.loads(said.splitlines()[-1])})
            print(rows[-1], flush=True)
    write_json(options.out / "rivals.json", rows)


if __name__ == "__main__":
    if "--images" in sys.argv:
        print(json.dumps(given_c4(Path(sys.argv[-1]))))
    else:
        main()
