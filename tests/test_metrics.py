import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

from invariantnet import metrics

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4), size=300)
Y = np.array([RNG.choice(4, p=p) for p in P])


def test_scores_against_scikit_learn():
    found = metrics.scores(P, Y)
    assert found["accuracy"] == pytest.approx((P.argmax(1) == Y).mean())
    assert found["log_likelihood"] == pytest.approx(-log_loss(Y, P))
    two = np.stack([1 - P[:, 0], P[:, 0]], axis=1)
    assert metrics.brier(two, (Y == 0).astype(int)) == pytest.approx(2 * brier_score_loss(Y == 0, P[:, 0]))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 99))
def test_auroc_is_the_share_of_pairs_in_the_right_order(n, m, seed):
    rng = np.random.default_rng(seed)
    inside, outside = rng.integers(0, 6, n).astype(float), rng.integers(2, 9, m).astype(float)
    pairs = outside[:, None] - inside
    assert metrics.auroc(inside, outside) == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())


def test_calibration_error_is_small_for_honest_and_large_for_boastful_probabilities():
    p = RNG.dirichlet(np.ones(3), size=20_000)
    y = (p.cumsum(1) < RNG.random((len(p), 1))).sum(1)
    sharp = p**4 / (p**4).sum(1, keepdims=True)
    assert metrics.calibration_error(p, y) < 0.02
    assert metrics.calibration_error(sharp, y) > 0.1
    bins = metrics.calibration_bins(p, y, 10)
    assert [b.count for b in bins] == [2000] * 10
    assert all(a.stated <= b.stated for a, b in itertools.pairwise(bins))


@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 99))
def test_uncertainty_adds_up_and_is_never_negative(draws, classes, seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(classes), size=(draws, 7))
    split = metrics.split_uncertainty(p)
    np.testing.assert_allclose(split["total"], split["aleatoric"] + split["epistemic"], atol=1e-9)
    assert (split["epistemic"] >= 0).all()
    if draws == 1:
        np.testing.assert_allclose(split["epistemic"], 0, atol=1e-12)
