"""The verdict alone, and data that teaches nothing."""

import numpy as np
import pytest

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor

pytestmark = pytest.mark.usefixtures("module_unchecked")
DIGITS = inv.datasets.load("digits:rotated", seed=0)
SETTINGS = {
    "symmetries": ("rot90", "flips"),
    "input_shape": (8, 8),
    "hidden": 8,
    "n_networks": 1,
    "epochs": 2,
    "random_state": 0,
}


@pytest.mark.usefixtures("quick_comparison")
def test_a_comparison_gives_the_verdict_of_a_fit_without_a_network():
    x, y = DIGITS.x_train[:100], DIGITS.y_train[:100]
    clf = InvariantClassifier(**SETTINGS)
    verdict = clf.compare(x, y)
    assert verdict == clf.posterior_
    assert not hasattr(clf, "network_")
    assert not hasattr(clf, "symmetry_")
    with pytest.raises(ValueError, match="not fitted"):
        clf.predict(x)
    with pytest.raises(ValueError, match="not fitted"):
        clf.save("nowhere")
    assert InvariantClassifier(**SETTINGS).fit(x, y).posterior_ == verdict


@pytest.mark.usefixtures("quick_comparison")
def test_a_comparison_after_a_fit_leaves_no_network_of_the_earlier_data():
    x, y = DIGITS.x_train[:100], DIGITS.y_train[:100]
    clf = InvariantClassifier(**SETTINGS).fit(x, y)
    clf.set_params(symmetries=("rot90",)).compare(x, y)
    assert not hasattr(clf, "network_")


@pytest.mark.usefixtures("quick_comparison")
def test_weights_count_in_a_comparison():
    x, y = DIGITS.x_train[:100], DIGITS.y_train[:100]
    weights = np.arange(100) % 3
    clf = InvariantClassifier(**SETTINGS)
    assert clf.compare(x, y, weights) == clf.compare(x.repeat(weights, 0), y.repeat(weights))


@pytest.mark.parametrize("method", ["heldout", "paper"])
def test_other_methods_have_no_verdict_without_a_fit(method):
    with pytest.raises(ValueError, match=f"method '{method}' has no verdict without a fit: use method 'evidence'"):
        InvariantClassifier(**SETTINGS, method=method).compare(DIGITS.x_train, DIGITS.y_train)


def noisy(seed):
    """Labels that have nothing to do with the inputs; with other seeds than the data, which is drawn as well."""
    return np.random.default_rng([17, seed])


@pytest.mark.parametrize(("seed", "prior"), [(0, 1.0), (1, [4.0, 2.0, 1.0, 1.0])])
def test_labels_that_are_noise_leave_the_prior_as_it_was(seed, prior):
    """Of ten classes, few labels tell the frequencies badly: a network that gives all the same must not win."""
    y = noisy(seed).integers(10, size=200)
    clf = InvariantClassifier(**SETTINGS, backbone="plain mlp", prior=prior).fit(DIGITS.x_train[:200], y)
    expected = [1 / 2, 1 / 6, 1 / 6, 1 / 6] if prior == 1.0 else np.array(prior) / 8
    np.testing.assert_allclose(clf.posterior_.probabilities, expected, atol=1e-6)
    assert not clf.posterior_.learned
    assert clf.posterior_.strength == "nothing learned"
    steps = " ".join(clf.posterior_.next_steps)
    for remedy in ("check that every label", "more examples", "a network of your own"):
        assert remedy in steps
    assert clf.posterior_.favourite == clf.symmetry_.name == "trivial"


def test_numbers_that_are_noise_leave_the_prior_as_it_was():
    x, y = noisy(0).normal(size=(200, 4)), noisy(1).normal(size=200)
    make = {"symmetries": ["sign", "reversal"], "backbone": "plain mlp", "hidden": 8, "n_networks": 1}
    posterior = InvariantRegressor(**make, random_state=0).compare(x, y)
    np.testing.assert_allclose(posterior.probabilities, [1 / 2, 1 / 6, 1 / 6, 1 / 6], atol=1e-6)
    assert posterior.verdict.startswith("nothing learned: after 168 predictions")
