"""Networks that the page cannot carry are left out of it, and the page says why."""

import pytest
import torch
from torch import nn

import invariantnet as inv
from invariantnet.nn import Symmetrized, mlp
from invariantnet.report import program as module
from invariantnet.report.program import LeftOutError, program

TURNS, FLIPS = (inv.symmetry(name, shape=(4, 4)) for name in ("rot90", "flips"))
SIXTHS = inv.Group.from_matrices([[[0.5, -(0.75**0.5)], [0.75**0.5, 0.5]]])


class Twice(nn.Module):
    """A layer that no script knows."""

    def forward(self, x):
        return 2 * x


class NoSequence(nn.Module):
    """A network whose head is found by running it."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(16, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x).relu())


def image(*layers):
    return nn.Sequential(nn.Unflatten(1, (1, 4, 4)), *layers)


def in_pairs(*layers):
    return nn.Sequential(nn.Unflatten(1, (2, 8)), *layers)


CASES = {
    "a mixture": (Symmetrized(mlp((16,), 3, 8), [TURNS, FLIPS], "outputs"), "mixture of symmetries"),
    "no sequence": (Symmetrized(NoSequence(), [TURNS]), "no sequence of layers"),
    "matrices": (Symmetrized(mlp((2,), 3, 8), [SIXTHS], "outputs"), "matrices would take too much room"),
    "a layer of its own": (nn.Sequential(Twice(), nn.Linear(16, 3)), "layers of its own"),
    "no head": (
        Symmetrized(nn.Sequential(nn.Linear(16, 3), Twice()), [TURNS]),
        "does not end with a linear layer",
    ),
    "groups of channels": (in_pairs(nn.Conv1d(2, 2, 3, groups=2), nn.Flatten()), "convolutions that"),
    "padding in words": (image(nn.Conv2d(1, 2, 3, padding="same"), nn.Flatten()), "convolutions that"),
}


@pytest.mark.parametrize(("network", "reason"), CASES.values(), ids=CASES)
def test_what_the_page_cannot_carry_is_left_out_with_the_reason(network, reason):
    dim = network.symmetries[0].dim if isinstance(network, Symmetrized) else 16
    with torch.no_grad(), pytest.raises(LeftOutError, match=reason):
        program(network.eval(), dim, half=False)


def test_a_prediction_that_takes_too_long_is_left_out(monkeypatch):
    network = mlp((16,), 3, 8)
    program(network, 16, half=False)
    monkeypatch.setattr(module, "MOST_OPERATIONS", 16)
    with pytest.raises(LeftOutError, match="too many for a page"):
        program(network, 16, half=False)
