"""The studies of ranges: their data is what they say, and a quick run gives records."""

import numpy as np
import pytest
import torch
from torch import nn

from invariantnet.nn.standardize import Standardize
from invariantnet.training.config import Training
from studies.ranges import half_turns, reach, rotated_mnist, shifted_waves
from studies.ranges.augerino import Augerino, fit_augerino
from studies.ranges.tasks import TASKS, split

pytestmark = pytest.mark.usefixtures("annotations_unchecked")


def record(task, **values):
    usual = {
        "values": (0.0, 45.0, 90.0),
        "probabilities": (0.0, 0.05, 0.95),
        "median": 90.0,
        "interval": (50.0, 90.0),
    }
    numbers = {"accuracy": 90.0, "plain_accuracy": 80.0, "augerino_accuracy": 85.0, "augerino_widths": (0.1,)}
    costs = {"seconds": 10.0, "augerino_seconds": 4.0, "deviation": 0.1}
    return reach.Record(task, 312, 0, **(usual | numbers | costs | values))


def test_every_seed_covers_every_task_and_size_before_the_next_seed():
    plan = reach.STUDY.plan()
    cells = len(TASKS) * len(reach.SIZES)
    assert len(plan) == len(set(plan)) == cells * reach.SEEDS
    assert {recipe.seed for recipe in plan[:cells]} == {0}


def test_intervals_and_wide_ranges_are_judged_by_the_truth():
    assert record("turned by up to 90°").covers
    assert not record("turned by up to 180°").covers
    assert record("plain, rotation").too_wide
    assert not record("turned by up to 90°").too_wide
    assert not record("plain, rotation", probabilities=(0.0, 0.95, 0.05)).too_wide
    found = reach.claims([record("turned by up to 90°"), record("plain, rotation")])
    assert "1 of 1 runs on moved images" in found["intervals"].sentence
    assert "in 1 of 1 runs; none was asked for" in found["plain"].sentence
    assert "90.0 %" in reach.table([record("plain, rotation")])


def test_an_augerino_without_width_predicts_as_its_backbone():
    module = nn.Linear(64, 3)
    network = Augerino(module, Standardize.identity(64), side=8).eval()
    nn.init.constant_(network.raw, -50.0)
    x = torch.rand(5, 64)
    torch.testing.assert_close(network(x), module(x).log_softmax(-1), atol=1e-5, rtol=1e-5)


def test_the_regulariser_of_an_augerino_widens_its_ranges():
    x, y = torch.rand(64, 64), torch.arange(64) % 2
    config = Training(epochs=10, batch_size=32, learning_rate=0.1, schedule="one-cycle")
    network = fit_augerino(lambda: nn.Linear(64, 2), Standardize.identity(64), x, 0 * y, config, seed=0)
    start = Augerino(nn.Identity(), Standardize.identity(64), 8).widths
    assert bool(network.widths.norm() > start.norm())


def test_waves_are_where_they_were_put():
    x, y = shifted_waves.waves(50, seed=0)
    again, _ = shifted_waves.waves(50, seed=0)
    np.testing.assert_array_equal(x, again)
    assert np.bincount(y).tolist() == [5] * 10
    at_the_ends = np.abs(x[:, [0, -1]]).mean()
    assert at_the_ends < np.abs(x[:, 26:38]).mean(), "no wave reaches the ends of the window"


def test_half_turns_are_right_only_if_both_classes_are_named():
    make = lambda accepted, named: half_turns.Record(  # noqa: E731
        100, 0, "rot180", 1.0, "partial", accepted, named, named
    )
    assert half_turns.is_right(make("trivial", ("9", "6")))
    assert not half_turns.is_right(make("trivial", ("6",)))
    assert not half_turns.is_right(make("rot180", ("6", "9")))


def test_tasks_hold_moved_images():
    plain, moved = (split(name, 10, seed=0) for name in ("mnist", "mnist:rotation:90"))
    np.testing.assert_array_equal(plain.y, moved.y)
    assert not np.array_equal(plain.x, moved.x)


def test_errors_of_turned_digits_are_set_beside_what_was_asked_for():
    make = lambda seed, error: rotated_mnist.Record(  # noqa: E731
        "ours", 100, seed, error, 12.0, "rotation:180", (150.0, 180.0)
    )
    records = [make(0, 2.0), make(1, 3.0)]
    said = rotated_mnist.claims(records)["error"].sentence
    assert "mean error is 2.50 % after 12.0 CPU minutes" in said
    assert said.endswith("e2cnn was not run.")
    told = rotated_mnist.Record("e2cnn, C8 given", 100, 0, 1.5, 9.0)
    said = rotated_mnist.claims([*records, told])["error"].sentence
    assert said.endswith("e2cnn, with C8 given, has 1.50 % after 9.0.")
    assert "150° to 180°" in rotated_mnist.table(records)


def test_the_part_with_e2cnn_says_what_it_lacks(monkeypatch):
    part = rotated_mnist.STUDY.parts["told"]
    monkeypatch.delenv("E2CNN_PYTHON", raising=False)
    assert part.lacks() == "set E2CNN_PYTHON to a Python that has e2cnn"
    monkeypatch.setenv("E2CNN_PYTHON", "E2CNN/bin/python")
    assert not part.lacks()
    assert [recipe.method for recipe in part.recipes(0)] == ["e2cnn, C8 given"]
