"""A network of e2cnn that is told the turns, trained on images that were written to a file.

It needs an older numpy than ours, so it has an environment of its own, and this file imports nothing of ours:

    python3 -m venv E2CNN && E2CNN/bin/pip install torch==2.13.0 "numpy<2" e2cnn
    E2CNN/bin/python -W ignore studies/others/e2cnn_turns.py images.npz
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

EPOCHS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 24, 64, 1e-2, 1e-2
"""What our CNN is trained with, too, but for twice the epochs, so that it takes as long as our comparison and
network together: with 12 it takes half of that, and has 2.1 % of errors in the first draw."""

FIELDS = ((8, True), (16, True), (24, False))
"""Fields of each convolution, and whether its output is halved."""


@dataclass(frozen=True)
class Told:
    """How good a network is that was told the symmetry, and what its training cost."""

    accuracy: float
    """Test accuracy in percent."""
    seconds: float
    """CPU seconds."""


def lacks_e2cnn() -> str:
    """Say what is missing to train a network of e2cnn."""
    return "" if os.environ.get("E2CNN_PYTHON") else "set E2CNN_PYTHON to a Python that has e2cnn"


def train_elsewhere(
    examples: tuple[np.ndarray, np.ndarray], tests: tuple[np.ndarray, np.ndarray], turns: int, seed: int
) -> Told:
    """Train a network of e2cnn in its own environment.

    Args:
        examples: Flat images to learn from, and their classes.
        tests: Flat images to test on, and their classes.
        turns: Turns that it is told, a full circle together.
        seed: Decides weights and batches.

    Returns:
        Its accuracy and its cost.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npz"
        (x, y), (x_test, y_test) = examples, tests
        np.savez(path, x=x, y=y, x_test=x_test, y_test=y_test, turns=turns, seed=seed)
        command = [os.environ["E2CNN_PYTHON"], "-W", "ignore", __file__, str(path)]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Told(**json.loads(said.splitlines()[-1]))


def make_network(classes: int, turns: int) -> torch.nn.Module:
    """Make three convolutions between fields of the regular representation of the turns, then a linear layer."""
    from e2cnn import gspaces
    from e2cnn import nn as enn

    space = gspaces.Rot2dOnR2(N=turns)
    image = enn.FieldType(space, [space.trivial_repr])
    layers, before = [], image
    for fields, pool in FIELDS:
        after = enn.FieldType(space, fields * [space.regular_repr])
        layers += [enn.R2Conv(before, after, 5, padding=2), enn.InnerBatchNorm(after), enn.ReLU(after)]
        layers += [enn.PointwiseMaxPool(after, 2)] if pool else []
        before = after
    body = enn.SequentialModule(*layers, enn.GroupPooling(before))
    head = torch.nn.Linear(FIELDS[-1][0], classes)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = body, head

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features = self.body(enn.GeometricTensor(x.reshape(-1, 1, 28, 28), image)).tensor
            logits: torch.Tensor = self.head(features.mean((2, 3)))
            return logits

    return Network()


def main(path: str) -> None:
    """Train on one thread; print the test accuracy in percent and the CPU seconds of the training."""
    torch.set_num_threads(1)
    data = np.load(path)
    x, y, x_test, y_test = (torch.from_numpy(data[name]) for name in ("x", "y", "x_test", "y_test"))
    torch.manual_seed(int(data["seed"]))
    start = time.process_time()
    model = make_network(10, int(data["turns"]))
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=WEIGHT_DECAY)
    steps = EPOCHS * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
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
    print(json.dumps({"accuracy": round(accuracy, 2), "seconds": round(seconds, 1)}))


if __name__ == "__main__":
    main(sys.argv[1])
