"""Ranges in a race: what counts as more symmetry, moved inputs, and what auto proposes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import BRIEF

import invariantnet as inv
from invariantnet.inference.climbing import left_out
from invariantnet.inference.hypotheses import Hypothesis, candidates
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.prices import predict_moved
from invariantnet.inference.standings import Contest
from invariantnet.likelihoods import Categorical

SHAPE = (8, 8)


def test_a_smaller_rung_has_less_symmetry_also_with_equally_many_copies():
    found = candidates(["rotation"], SHAPE, joins=True)
    contest = Contest(found, [Hypothesis(s, BRIEF) for s in found], np.zeros(len(found)))
    assert contest.orders == sorted(contest.orders)
    assert len(set(contest.orders)) == len(found)
    assert found[1].copies == found[2].copies, "copies alone would not order them"


def test_groups_keep_the_order_of_their_elements():
    found = candidates(["hflip", "vflip", "rot90"], SHAPE, joins=True)
    orders = Contest(found, [], np.zeros(len(found))).orders
    for a, first in zip(orders, found, strict=True):
        for b, second in zip(orders, found, strict=True):
            assert (a <= b) == (first.order <= second.order)


def test_inputs_are_moved_within_the_range_and_by_its_group():
    """A network that tells how far the centre of mass has moved."""
    image = torch.zeros(8, 8)
    image[3:5, 3:5] = 1.0
    x = image.flatten().expand(200, 64)
    columns = torch.arange(8.0).repeat(8)

    class Centre(torch.nn.Module):
        def forward(self, x):
            at = (x * columns).sum(1, keepdim=True) / x.sum(1, keepdim=True)
            return torch.cat([at, torch.zeros_like(at)], dim=1)

    def moved(name):
        out = predict_moved(Centre(), inv.symmetry(name, shape=SHAPE), x, Categorical())
        return out[:, 0] - out[:, 1] - 3.5

    shifts = moved("translation:2")
    assert float(shifts.abs().max()) <= 2 + 1e-4
    assert float(shifts.std()) > 0.5
    assert abs(float(shifts.mean())) < 0.5
    assert torch.equal(moved("translation:2"), shifts), "the draw is always the same"
    assert float(moved("trivial").abs().max()) < 1e-5
    assert float(moved("hflip+translation:1").abs().max()) <= 1 + 1e-4


def test_auto_compares_groups_and_names_the_ranges_that_it_left_out():
    found = candidates("auto", (28, 28), joins=True)
    assert not [s for s in found if isinstance(s, inv.Range)]
    assert {"rotation", "translation"} <= set(left_out("auto", found, (28, 28)))
    assert left_out(["hflip"], found, (28, 28)) == ()


@pytest.mark.parametrize(
    ("best", "asked"),
    [("trivial", ["rotation"]), ("rot90", ["rot90", "rotation"]), ("shifts", ["rotation"])],
)
def test_what_was_left_out_says_how_to_ask_for_it(best, asked):
    names, orders = ("trivial", "rot90", "shifts"), (1, 4, 784)
    probabilities = tuple(float(name == best) for name in names)
    posterior = SymmetryPosterior(names, orders, probabilities, (0.0,) * 3, (0.0,) * 3, 100)
    assert "Not compared" not in str(posterior)
    found = str(replace(posterior, left_out=("rotation", "shear")))
    assert (
        f"Not compared: ranges of rotation, shear. To ask how far rotation reaches, pass symmetries={asked}, or"
        in found
    )
    assert candidates(asked, (28, 28), joins=True), "what it says to pass can be compared"
