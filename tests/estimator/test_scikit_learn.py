"""The estimators pass every check of scikit-learn, and work with its tools."""

import html

import numpy as np
import pandas as pd
import pytest
import torch
from problems import quickly_compared
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor

pytestmark = pytest.mark.usefixtures("module_unchecked")
SMALL = {"symmetries": ["sign"], "hidden": 32, "n_networks": 1, "epochs": 60}


@parametrize_with_checks([InvariantClassifier(**SMALL), InvariantRegressor(**SMALL)])
@pytest.mark.usefixtures("quick_comparison")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


DIGITS = inv.datasets.load("digits:flipped", seed=0)
X, Y = DIGITS.x_train[:400], np.array([f"digit {d}" for d in DIGITS.y_train[:400]])
FLIPS = InvariantClassifier(["flips"], (8, 8), hidden=32, n_networks=1, epochs=20, random_state=0)


@pytest.fixture(scope="module")
def fitted(module_unchecked):
    with quickly_compared():
        return clone(FLIPS).fit(X, Y)


@pytest.mark.usefixtures("quick_comparison")
def test_pipelines_searches_and_scores():
    piped = make_pipeline(StandardScaler(), clone(FLIPS)).fit(X, Y)
    assert piped.score(X, Y) > 0.9
    search = GridSearchCV(FLIPS, {"hidden": [8, 32]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"hidden": 32}
    assert cross_val_score(clone(FLIPS), X, Y, cv=2).min() > 0.6


@pytest.mark.usefixtures("quick_comparison")
def test_arrays_frames_tensors_and_images_give_the_same_fit(fitted):
    images = torch.from_numpy(X).reshape(-1, 8, 8)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    for inputs in (images, images.numpy(), images[:, None], X.tolist(), frame):
        same = clone(FLIPS).fit(inputs, pd.Series(Y))
        assert same.posterior_ == fitted.posterior_
        np.testing.assert_array_equal(same.predict(inputs), fitted.predict(X))
    assert list(same.feature_names_in_[:2]) == ["pixel 0", "pixel 1"]


@pytest.mark.usefixtures("quick_comparison")
def test_weights_count_like_copies():
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = clone(FLIPS).fit(X, Y, sample_weight=weights)
    copied = clone(FLIPS).fit(X.repeat(weights, 0), Y.repeat(weights))
    assert weighted.posterior_ == copied.posterior_
    np.testing.assert_array_equal(weighted.predict_proba(X), copied.predict_proba(X))
    with pytest.raises(ValueError, match="not negative"):
        clone(FLIPS).fit(X, Y, sample_weight=-weights)


def test_auto_takes_every_group_that_acts(annotations_unchecked):
    vectors = np.random.default_rng(0).normal(size=(100, 3))
    clf = InvariantClassifier(backbone="plain mlp", hidden=8, n_networks=1, epochs=1, random_state=0)
    found = clf.fit(vectors, vectors[:, 0] > 0)
    assert {"trivial", "sign", "reversal", "cyclic", "permutations"} <= set(found.posterior_.names)
    assert found.posterior_.favourite == "trivial"


def test_verdict_is_shown(fitted):
    assert fitted.posterior_.verdict in repr(fitted)
    assert html.escape(fitted.posterior_.verdict) in fitted._repr_html_()
    assert "symmetry" not in repr(FLIPS)


@pytest.mark.parametrize("placement", ["features", "outputs"])
def test_regression_finds_the_symmetry_and_estimates_its_error(placement, annotations_unchecked):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 4)).astype(np.float32)
    y = 1000 + 50 * (x**2).sum(1) + rng.normal(size=600) * 5
    reg = InvariantRegressor(
        ["sign"], placement=placement, backbone="plain mlp", n_networks=1, random_state=0
    ).fit(x[:400], y[:400])
    assert reg.symmetry_.name == "sign"
    assert reg.score(x[400:], y[400:]) > 0.95
    np.testing.assert_allclose(reg.predict(-x), reg.predict(x), rtol=1e-6)
    mean, error = reg.predict(x[400:], return_std=True)
    assert (abs(mean - y[400:]) < 2 * error).mean() > 0.6
    with pytest.raises(ValueError, match="method 'paper' is unknown"):
        InvariantRegressor(["sign"], method="paper").fit(x, y)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"placement": "nowhere"}, "placement 'nowhere' is unknown: choose among weights, features, outputs"),
        ({"pool": "median"}, "pool 'median' is unknown"),
        ({"hidden": 0}, "hidden is 0: pass a whole number"),
        ({"n_networks": 1.5}, "n_networks is 1.5"),
        ({"epochs": -1}, "epochs is -1"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"symmetries": [inv.symmetry("rot90", shape=(4, 4))]}, "rot90 acts on 16 numbers, an input has 64"),
    ],
)
def test_bad_parameters(change, fault):
    with pytest.raises(ValueError, match=fault):
        clone(FLIPS).set_params(**change).fit(X, Y)
