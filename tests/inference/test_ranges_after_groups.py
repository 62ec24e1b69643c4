"""Ranges beside a favourite group: when `auto` asks about them, and how two comparisons become one verdict."""

import numpy as np
import pytest

import invariantnet as inv
from invariantnet.inference.findings import Price, Stage
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.range_posterior import range_posteriors
from invariantnet.inference.ranges_after_groups import MOST_STRAIN, probes_for, rungs_beside, with_ranges
from invariantnet.symmetries.lookup import groups_suited_to

SHAPE = (14, 14)
GROUPS = groups_suited_to(SHAPE)
INSENSITIVE = {"rotation:20": 0.05, "translation:1": 1.0}


def group(name):
    return next(g for g in GROUPS if g.name == name)


def test_images_are_probed_by_small_moves():
    assert [p.name for p in probes_for((28, 28))] == ["rotation:20", "translation:2"]
    assert [p.name for p in probes_for((3, 14, 42))] == ["rotation:20", "translation:1"]
    assert [probes_for(shape) for shape in ((8, 8), (64,), (100, 3))] == [[], [], []]


@pytest.mark.parametrize(
    ("favourite", "first", "count"),
    [
        ("trivial", "rotation:15", 7),
        ("rot90", "rotation:15", 7),
        ("hflip", "hflip+rotation:15", 7),
        ("shifts", "", 0),
    ],
)
def test_a_ladder_is_joined_with_the_part_of_the_favourite_that_it_lacks(favourite, first, count):
    rungs = rungs_beside(group(favourite), GROUPS, INSENSITIVE, SHAPE)
    assert len(rungs) == count
    assert not rungs or rungs[0].name == first


def test_all_turns_and_mirror_images_contain_the_symmetries_of_the_square():
    rungs = rungs_beside(group("d4"), GROUPS, INSENSITIVE, SHAPE)
    assert rungs[-1] >= group("d4")
    assert rungs[-1].group.order == 2


def test_only_families_that_hardly_change_predictions_are_asked_about():
    assert rungs_beside(group("trivial"), GROUPS, {}, SHAPE) == []
    both = {"rotation:20": MOST_STRAIN + 0.01, "translation:1": MOST_STRAIN}
    assert {r.family for r in rungs_beside(group("trivial"), GROUPS, both, SHAPE)} == {"translation"}


def posterior(names, probabilities, evidence, **more):
    symmetries = [inv.symmetry(name, shape=SHAPE) for name in names]
    orders = tuple(s.copies for s in symmetries)
    best = max(evidence)
    prices = tuple(Price(n, o, (best - e) / 100, {}) for n, o, e in zip(names, orders, evidence, strict=True))
    stages = (Stage(50, dict(zip(names, evidence, strict=True)), {}),)
    more |= {"prices": prices, "race": stages, "best_models": ("plain cnn",) * len(names)}
    return SymmetryPosterior(names, orders, probabilities, evidence, (0.0,) * len(names), 100, **more)


def both_comparisons(shares=(0.0, 0.1, 0.6, 0.3)):
    groups, second = ("trivial", "hflip", "rot90"), ("trivial", "hflip", "hflip+rotation:30", "hflip+rotation:60")
    ranges = range_posteriors([inv.symmetry(n, shape=SHAPE) for n in second], shares, (-90.0, -80.0, -60.0, -70.0))
    first = posterior(groups, (0.15, 0.8, 0.05), (-60.0, -50.0, -65.0))
    late = posterior(second, shares, (-90.0, -80.0, -60.0, -70.0), ranges=ranges)
    symmetries = [inv.symmetry(n, shape=SHAPE) for n in (*groups, *second[2:])]
    return first, with_ranges(first, late, "hflip", symmetries)


def test_ranges_share_the_probability_of_the_favourite():
    first, found = both_comparisons()
    assert found.names == ("trivial", "hflip", "rot90", "hflip+rotation:30", "hflip+rotation:60")
    assert found.probabilities == pytest.approx((0.15, 0.08, 0.05, 0.48, 0.24))
    assert found.log_evidence == pytest.approx((-60.0, -50.0, -65.0, -30.0, -40.0))
    assert found.favourite == "hflip+rotation:30"
    assert found.ranges["rotation"].probabilities == pytest.approx((0.28, 0.48, 0.24))
    assert found.ranges["rotation"].interval == (0.0, 60.0)
    assert first.ranges == {}


def test_prices_and_the_race_are_told_against_the_best_of_both():
    _, found = both_comparisons()
    prices = {p.name: p.nats_per_example for p in found.prices}
    assert prices == pytest.approx(
        {"trivial": 0.3, "hflip": 0.2, "rot90": 0.35, "hflip+rotation:30": 0.0, "hflip+rotation:60": 0.1}
    )
    assert found.race[0].log_evidence["hflip+rotation:60"] == pytest.approx(-40.0)


def test_ranges_that_lose_change_nothing_about_groups():
    first, found = both_comparisons((0.0, 1.0, 0.0, 0.0))
    assert found.probabilities[:3] == pytest.approx(first.probabilities)
    assert found.favourite == first.favourite
    assert np.isclose(sum(found.probabilities), 1)
