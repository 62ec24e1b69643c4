"""Evidence against "nothing is gained": valid under the null hypothesis, and against slow references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invariantnet.discovery.evalues import BETS, LARGEST_GAIN, e_bh, log_e_value, log_e_value_of_copies

SETS = 4000


def fair_gains(rng, shape):
    """Skewed gains with mean 0 after clipping."""
    return np.where(rng.random(shape) < 0.2, 1.6, -0.4)


def looking_ahead(gains):
    """The mistake to be caught: choose the best bet after all gains are known."""
    shares = np.clip(gains, -LARGEST_GAIN, LARGEST_GAIN) / LARGEST_GAIN
    return np.log1p(np.outer(BETS, shares)).sum(axis=1).max()


@pytest.mark.parametrize("n", [1, 5, 40])
def test_e_values_average_at_most_one_if_nothing_is_gained(n):
    gains = fair_gains(np.random.default_rng(n), (SETS, n))
    values = np.exp([log_e_value(row) for row in gains])
    assert values.mean() <= 1 + 4 * values.std() / SETS**0.5
    assert (values >= 20).mean() <= 0.05


def test_the_bound_fails_for_bets_that_look_ahead():
    gains = fair_gains(np.random.default_rng(0), (SETS, 40))
    values = np.exp([looking_ahead(row) for row in gains])
    assert values.mean() > 1 + 4 * values.std() / SETS**0.5


def test_wealth_is_that_of_bets_made_one_after_another():
    gains = np.random.default_rng(1).normal(0.1, 1.5, size=30)
    money = np.full(len(BETS), 1 / len(BETS))
    for gain in gains:
        money *= 1 + np.array(BETS) * min(max(gain, -LARGEST_GAIN), LARGEST_GAIN) / LARGEST_GAIN
    assert log_e_value(gains) == pytest.approx(np.log(money.sum()))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-5, 12), min_size=0, max_size=12),
    st.floats(0.01, 0.5),
    st.lists(st.floats(0.1, 3), min_size=12, max_size=12),
)
def test_e_bh_agrees_with_its_definition(values, alpha, weights):
    own = weights[: len(values)]
    found = e_bh(values, alpha, own)
    scaled = [np.exp(v) * w / np.mean(own) for v, w in zip(values, own, strict=True)]
    sizes = [k for k in range(1, len(values) + 1) if sum(e >= len(values) / (alpha * k) for e in scaled) >= k]
    expected = len(values) / (alpha * max(sizes)) if sizes else np.inf
    assert found.tolist() == [e >= expected for e in scaled]


def test_originals_cannot_be_told_from_copies_if_all_are_equally_probable():
    rng = np.random.default_rng(2)
    values = []
    for _ in range(SETS):
        density = rng.normal(size=(10, 4))
        original = rng.integers(4, size=10)
        density[np.arange(10), [0] * 10], density[np.arange(10), original] = (
            density[np.arange(10), original],
            density[np.arange(10), 0].copy(),
        )
        values.append(np.exp(log_e_value_of_copies(density)))
    assert np.mean(values) == pytest.approx(1, abs=4 * np.std(values) / SETS**0.5)


def test_originals_can_be_told_from_copies_if_they_are_more_probable():
    density = np.tile([1.0, 0.0, 0.0], (60, 1))
    assert log_e_value_of_copies(density) > 3
