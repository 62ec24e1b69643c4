"""Pretrained bodies for tests: small, and trained by nobody."""

import torch
from torch import nn

from invariantnet._system.torch_state import seeded
from invariantnet.nn import Pretrained

SHAPE = (1, 6, 6)


class Classifier(nn.Module):
    """A network with a head of its own, which a user wants to replace."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.hidden, self.fc = nn.Linear(64, 12), nn.Linear(12, 7)

    def forward(self, x):
        return self.fc(self.hidden(self.norm(self.conv(x)).relu().flatten(1)).relu())


def classifier():
    with seeded(1):
        return Classifier().eval()


def body():
    """Gives features."""
    with seeded(1):
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten()).eval()


def brighter(x):
    return 2 * x - 1


def pretrained(**options):
    return Pretrained(classifier(), head="fc", preprocess=brighter, **options)


def labelled(n=60, *, symmetric=False):
    """Bright left or right halves; symmetric ones have both poses of a mirror."""
    with seeded(0):
        x = torch.rand(n, *SHAPE)
        y = torch.arange(n) % 2
        if symmetric:
            x[y == 1, :, :, 2:4] += 0.7
        else:
            x[y == 1, :, :, :3] += 0.7
    return x.numpy(), y.numpy()
