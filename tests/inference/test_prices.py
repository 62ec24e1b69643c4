"""What invariance costs, on arrays whose prices are known."""

import numpy as np
import pytest

import invariantnet as inv
from invariantnet.inference.hypotheses import with_joins
from invariantnet.inference.prices import affordable, prices


@pytest.mark.parametrize(
    ("tolerance", "known"), [(0.45, True), (0.47, False), (0.53, False), (0.55, True), (2.0, True)]
)
def test_a_price_is_known_when_it_is_four_standard_errors_from_the_tolerance(tolerance, known):
    noise = np.tile([-0.1, 0.1], 50)  # a standard error of 0.01
    leader = np.linspace(-3, -1, 100)
    expected = [True, tolerance > 0.5] if known else None
    assert affordable(np.stack([leader, leader - 0.5 - noise]), tolerance) == expected


def test_a_price_at_the_tolerance_is_not_known():
    assert affordable(np.array([[0.0, 0.0], [-0.5, -0.5]]), 0.5) is None


def test_prices_are_those_of_the_last_block_that_a_hypothesis_took_part_in():
    groups = with_joins([inv.symmetry("rot90", shape=(4, 4)), inv.symmetry("flips", shape=(4, 4))])
    seen = -np.ones((4, 10))
    seen[0, :6] = -3  # worst at first, best at last
    seen[1, :6] = -2
    seen[2, 6:] = [-2, -3, -2, -3]
    seen[3, :6] = [-6, -5, -2, -2, -3, -2]
    accuracy = [{"trivial": 0.5 + k / 10} for k in range(4)]
    found = prices(groups, accuracy, seen, [0, 4, 6], {3: 6})
    assert [(p.name, p.order) for p in found] == [("trivial", 1), ("flips", 4), ("rot90", 4), ("d4", 8)]
    expected = [0, 0, 1.5, (-2 + 5) / 2]
    assert [p.nats_per_example for p in found] == pytest.approx(expected)
    assert [p.accuracy["trivial"] for p in found] == pytest.approx([0.5, 0.6, 0.7, 0.8])
