"""The posterior over how far a range reaches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import invariantnet as inv
from invariantnet.inference.bootstrap import bootstrap_probabilities
from invariantnet.inference.kinds import kind_of, log_prior_of_kinds, probabilities_of_kinds
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.range_posterior import quantile, range_posteriors

RUNGS = np.array([0.0, 15.0, 30.0, 60.0])
weights = st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda p: sum(p) > 0.1)


def turns(*probabilities):
    symmetries = [inv.symmetry(n, shape=(8, 8)) for n in ("trivial", "rotation:15", "rotation:30", "rotation:60")]
    return range_posteriors(symmetries, tuple(map(float, probabilities)), (-3.0, -2.0, -1.0, -2.0))["rotation"]


@given(weights)
def test_quantiles_ascend_and_stay_on_the_ladder(p):
    p = np.array(p) / sum(p)
    found = [quantile(RUNGS, p, share) for share in (0.025, 0.5, 0.975)]
    assert 0 <= found[0] <= found[1] <= found[2] <= 60


@pytest.mark.parametrize(
    ("probabilities", "median", "low", "high", "words"),
    [
        ((1, 0, 0, 0), 0, 0, 15, "up to 15° at most"),
        ((0, 1, 0, 0), 15, 0, 30, "up to about 15°, at most 30°"),
        ((0, 0, 1, 0), 30, 15, 60, "up to about 30°, between 15° and 60°"),
        ((0, 0, 0, 1), 60, 30, 60, "up to about 60°, between 30° and 60°"),
        ((0, 0, 0.99, 0.01), 30.3, 15, 60, "up to about 30°, between 15° and 60°"),
    ],
)
def test_a_rung_that_has_all_the_probability_stands_for_values_up_to_its_neighbours(
    probabilities, median, low, high, words
):
    found = turns(*probabilities)
    assert found.median == pytest.approx(median, abs=1e-3)
    assert found.interval == (low, high)
    assert found.words == words
    assert found.costs_beyond == (high < 60)


def test_factors_are_interpolated_in_their_logarithm():
    symmetries = [inv.symmetry(n, shape=(8, 8)) for n in ("trivial", "scaling:2", "scaling:4")]
    found = range_posteriors(symmetries, (0.0, 0.5, 0.5), (0.0, 0.0, 0.0))["scaling"]
    assert found.values == (1.0, 2.0, 4.0)
    assert found.median == pytest.approx(2 * 2**0.5)
    assert "×2.8" in found.words


def test_joins_count_for_each_of_their_families():
    names = ("trivial", "hflip", "rotation:30", "hflip+rotation:30", "rotation:30+translation:1")
    symmetries = [inv.symmetry(n, shape=(8, 8)) for n in names]
    found = range_posteriors(symmetries, (0.1, 0.2, 0.3, 0.15, 0.25), (-5.0, -4.0, -3.0, -2.0, -6.0))
    assert found["rotation"].probabilities == pytest.approx((0.3, 0.7))
    assert found["rotation"].log_evidence == (-4.0, -2.0)
    assert found["translation"].probabilities == pytest.approx((0.75, 0.25))
    assert range_posteriors(symmetries[:2], (0.5, 0.5), (0.0, 0.0)) == {}


def test_rungs_of_a_ladder_are_one_kind():
    names = ("trivial", "hflip", "rotation:15", "rotation:30", "hflip+rotation:30")
    assert [kind_of(n) for n in names] == ["trivial", "hflip", "rotation", "rotation", "hflip+rotation"]
    assert np.exp(log_prior_of_kinds(names)) == pytest.approx([1 / 2, 1 / 6, 1 / 12, 1 / 12, 1 / 6])
    assert np.exp(log_prior_of_kinds(["trivial"])) == pytest.approx([1.0])
    summed = probabilities_of_kinds(names, (0.1, 0.1, 0.3, 0.2, 0.3))
    assert summed == pytest.approx({"trivial": 0.1, "hflip": 0.1, "rotation": 0.5, "hflip+rotation": 0.3})


def test_neighbouring_rungs_do_not_leave_a_verdict_open():
    names, p = ("trivial", "rotation:15", "rotation:30", "rotation:60"), (0.3, 0.2, 0.25, 0.25)
    posterior = SymmetryPosterior(
        names, (1, 3, 3, 5), p, (0.0,) * 4, (0.0,) * 4, 100, ranges={"rotation": turns(*p)}
    )
    assert posterior.favourite == "rotation:30"
    assert posterior.certainty == pytest.approx(0.7)
    sure = SymmetryPosterior(
        names,
        (1, 3, 3, 5),
        (0.0, 0.0, 0.5, 0.5),
        (0.0,) * 4,
        (0.0,) * 4,
        100,
        ranges={"rotation": turns(0, 0, 0.5, 0.5)},
    )
    assert sure.strength == "decisive"
    assert "rotations (rotation), up to about 45°" in sure.verdict


def test_errors_of_networks_spread_over_rungs_and_not_between_kinds():
    names = ("trivial", "rotation:15", "rotation:30", "rotation:60")
    symmetries = [inv.symmetry(n, shape=(8, 8)) for n in names]
    asked = []

    def among(some):
        asked.append(list(some))
        return [0.2, 0.3, 0.5]

    found = range_posteriors(symmetries, (0.4, 0.6, 0.0, 0.0), (0.0,) * 4, among)["rotation"]
    assert asked == [[1, 2, 3]]
    assert found.probabilities == pytest.approx((0.4, 0.12, 0.18, 0.3))


def test_rungs_of_a_kind_share_the_luck_of_networks_against_other_kinds():
    """Else the kind with the most rungs would have the most chances."""
    pointwise, log_prior = np.zeros((4, 1, 50)), np.log([3 / 6, 1 / 6, 1 / 6, 1 / 6])
    shared = bootstrap_probabilities(pointwise, log_prior, 0, spread=30.0, kinds=[0, 1, 1, 1])
    own = bootstrap_probabilities(pointwise, log_prior, 0, spread=30.0)
    assert shared == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6], abs=0.03)
    assert own[0] < 0.35


def test_an_error_of_the_evidence_makes_neighbours_probable():
    pointwise = np.zeros((2, 1, 50))
    pointwise[1] = -0.1
    log_prior = np.log([0.5, 0.5])
    sure = bootstrap_probabilities(pointwise, log_prior, 0)
    open_ = bootstrap_probabilities(pointwise, log_prior, 0, spread=5.0)
    assert sure[1] == pytest.approx(1 / (1 + np.exp(5)))
    assert open_[1] == pytest.approx(0.25, abs=0.04), "P(N(0, 50) > 5), softened"
