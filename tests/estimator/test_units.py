"""Inputs in any units: the verdict and the predictions are the same, and invariance stays exact."""

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet.estimator.units import InputUnits
from invariantnet.inference.hypotheses import all_hypotheses
from invariantnet.symmetries.group import transform

pytestmark = pytest.mark.usefixtures("module_unchecked")
DIGITS = inv.datasets.load("digits:rotated", seed=0)
SPREAD = float(DIGITS.x_train.std())
SETTINGS = {
    "symmetries": ("rot90",),
    "input_shape": (8, 8),
    "backbone": "plain mlp",
    "hidden": 16,
    "n_networks": 1,
    "epochs": 20,
    "random_state": 0,
}


def fitted(x, y=DIGITS.y_train[:250]):
    return InvariantClassifier(**SETTINGS).fit(x, y)


def moved(x, unit, offset):
    """Inputs in another unit, with an offset of that many of their spreads, as a file would hold them."""
    return (unit * (x.astype(float) + offset * SPREAD)).astype(np.float32)


@pytest.fixture(scope="module")
def usual(module_unchecked):
    return fitted(DIGITS.x_train[:250])


@pytest.mark.parametrize(("unit", "offset"), [(1e-6, 0.0), (1e6, 0.0), (1e-6, 1e4), (1e6, 1e4), (1.0, -1e4)])
def test_another_unit_or_offset_changes_neither_verdict_nor_predictions(usual, unit, offset):
    x = moved(DIGITS.x_train[:250], unit, offset)
    other, x_test = fitted(x), moved(DIGITS.x_test, unit, offset)
    # An offset of 10,000 spreads leaves three digits of each number.
    noise = 0.02 if offset else 1e-4
    assert other.posterior_.favourite == usual.posterior_.favourite == "rot90"
    np.testing.assert_allclose(other.posterior_.probabilities, usual.posterior_.probabilities, atol=noise)
    expected = usual.score(DIGITS.x_test, DIGITS.y_test)
    assert other.score(x_test, DIGITS.y_test) == pytest.approx(expected, abs=noise)
    assert inv.check_invariance(other.network_, other.symmetry_, torch.from_numpy(x_test[:50])) < 1e-4


def test_a_folded_network_takes_inputs_in_their_own_units(usual):
    x_test = moved(DIGITS.x_test[:50], 1e6, 0.0)
    other = fitted(moved(DIGITS.x_train[:250], 1e6, 0.0))
    x = torch.from_numpy(x_test)
    with torch.no_grad():
        torch.testing.assert_close(other.network_.fold()(x), other.network_(x), atol=1e-3, rtol=1e-3)


def test_columns_of_a_table_may_have_units_of_their_own():
    """No candidate exchanges the columns, so each has its own mean and scale."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(250, 3)).astype(np.float32)
    y = x[:, 0] + np.abs(x[:, 1]) > 0.5
    units, offsets = np.array([1e-6, 1.0, 1e6]), np.array([0.0, 1e3, 1e9])
    swap = inv.Group.from_matrices([np.diag([-1.0, 1, 1])], name="mirrored")

    def make():
        return InvariantClassifier([swap], backbone="plain mlp", hidden=8, n_networks=1, epochs=20, random_state=0)

    usual, other = make().fit(x, y), make().fit(x * units + offsets * [0, 1, 1], y)
    assert usual.posterior_.favourite == other.posterior_.favourite == "trivial"
    assert other.score(x * units + offsets * [0, 1, 1], y) == pytest.approx(usual.score(x, y), abs=0.02)


def test_columns_in_units_of_their_own_are_learned_though_candidates_exchange_them():
    """Exchanging grams and millimetres is no symmetry, and asking about it must not spoil what has none."""
    rng = np.random.default_rng(1000)
    x = rng.normal(size=(400, 6)) * 10.0 ** np.arange(-3, 3) + 10.0 ** np.arange(6)
    z = (x - x.mean(0)) / x.std(0)
    y = (z[:, 0] + z[:, 1] * z[:, 2] + np.abs(z[:, 3]) > 0.8).astype(int)
    clf = InvariantClassifier(["reversal", "cyclic"], backbone="plain mlp", n_networks=1, random_state=1000)
    clf.fit(x[:250], y[:250])
    assert clf.posterior_.favourite == "trivial"
    assert clf.score(x[250:], y[250:]) > 0.8, "nothing is learned with one unit for all columns"


@pytest.fixture(scope="module")
def lucky(module_unchecked):
    """Only the column with the largest numbers matters, so that one unit for all columns hides what does not."""
    rng = np.random.default_rng(3000)
    x = rng.normal(size=(240, 5)) * [1, 10, 100, 1000, 0.1] + [0, 5, 100, -3000, 7]
    y = np.sin(2 * (x[:, 3] + 3000) / 1000) + 0.3 * rng.normal(size=240) > 0
    clf = InvariantClassifier(["cyclic"], backbone="deep mlp", n_networks=1, epochs=20, random_state=0)
    return clf.fit(x, y), x


def test_units_that_happen_to_help_are_no_reason_for_a_symmetry(lucky):
    posterior = lucky[0].posterior_
    assert posterior.favourite == "trivial", "cyclic was decisive, because its units hid what does not matter"
    assert posterior.models[0].name == "deep mlp in shared units"


def test_the_baseline_of_a_network_is_the_same_model(lucky):
    clf, _ = lucky
    assert clf.without_symmetry().model.name == clf.hypothesis_of(clf.symmetry_).model.name


def test_a_network_in_shared_units_is_loaded_as_it_was(lucky, tmp_path):
    clf, x = lucky
    clf.save(tmp_path)
    np.testing.assert_allclose(
        InvariantClassifier.load(tmp_path).predict_proba(x), clf.predict_proba(x), atol=1e-6
    )


def test_every_standardisation_of_a_comparison_commutes_with_its_symmetry():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 6)) * np.arange(1, 7) + np.arange(6)).float()
    candidates = [inv.symmetry(name, shape=(6,)) for name in ("trivial", "reversal", "sign", "cyclic")]
    units = InputUnits.of(x, candidates, (6,))
    for hypothesis in all_hypotheses(candidates, "mlp", (6,)) + all_hypotheses(candidates, "cnn", (6,)):
        standardize = units.standardize(hypothesis)
        for generator in torch.from_numpy(hypothesis.symmetry.generators):
            moved = transform(standardize(x), generator)
            torch.testing.assert_close(standardize(transform(x, generator)), moved, atol=1e-5, rtol=1e-5)
    assert len(units.standardize(all_hypotheses(candidates, "mlp", (6,))[0]).mean.unique()) == 6
    assert len(units.standardize(all_hypotheses(candidates, "cnn", (6,))[0]).mean.unique()) == 1


@pytest.mark.usefixtures("quick_comparison")
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_numbers_are_predicted_in_any_units_of_the_inputs(unit):
    x = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)

    def make():
        return InvariantRegressor(["sign"], hidden=8, n_networks=1, epochs=10, random_state=0)

    usual, other = make().fit(x, x[:, 0]), make().fit(x * unit, x[:, 0])
    np.testing.assert_allclose(other.predict(x * unit), usual.predict(x), atol=1e-3)


@pytest.mark.usefixtures("quick_comparison")
def test_extreme_values_of_one_input_do_not_hide_the_others():
    x = DIGITS.x_train[:250].copy()
    usual = fitted(x).score(DIGITS.x_test, DIGITS.y_test)
    x[7, 3] = 1e8
    assert fitted(x).score(DIGITS.x_test, DIGITS.y_test) > usual - 0.1
