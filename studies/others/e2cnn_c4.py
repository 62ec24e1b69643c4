"""A network of e2cnn that is told the quarter turns, trained on images that were written to a file.

Usage: E2CNN/bin/python -W ignore studies/others/e2cnn_c4.py images.npz
"""

import json
import sys
import time

import numpy as np
import torch

EPOCHS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 12, 64, 1e-2, 1e-2
"""What our CNN is trained with, too."""

FIELDS = ((8, True), (16, True), (24, False))
"""Fields of each convolution, and whether its output is halved."""


def make_network(classes: int) -> torch.nn.Module:
    """Make three convolutions between fields of the regular representation of C4, then a linear layer."""
    from e2cnn import gspaces
    from e2cnn import nn as enn

    space = gspaces.Rot2dOnR2(N=4)
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
    model = make_network(10)
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
