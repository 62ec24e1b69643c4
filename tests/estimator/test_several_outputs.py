"""Targets with several numbers: each is predicted in its own units, by one network with one symmetry."""

import json

import numpy as np
import onnxruntime
import pytest

from invariantnet import InvariantRegressor
from invariantnet.estimator.persistence import RUN

pytestmark = pytest.mark.usefixtures("module_unchecked", "module_quickly_compared")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)).astype(np.float32)
Y = np.stack([1e3 + 50 * (X**2).sum(1), 1e-3 * X[:, 0] ** 2], 1)
Y += RNG.normal(size=Y.shape) * [5, 1e-4]
TRAIN, TEST = slice(0, 240), slice(240, None)


def make(**more):
    return InvariantRegressor(["sign"], hidden=32, n_networks=1, epochs=150, random_state=0, **more)


@pytest.fixture(scope="module")
def fitted(module_unchecked, module_quickly_compared):
    return make().fit(X[TRAIN], Y[TRAIN])


def test_every_number_is_predicted_in_its_own_units(fitted):
    predicted = fitted.predict(X[TEST])
    assert predicted.shape == Y[TEST].shape
    explained = 1 - ((predicted - Y[TEST]) ** 2).mean(0) / Y[TEST].var(0)
    assert (explained > 0.8).all()
    assert fitted.score(X[TEST], Y[TEST]) > 0.8
    assert fitted.symmetry_.name == "sign"
    np.testing.assert_allclose(fitted.predict(-X[TEST]), predicted, rtol=1e-6)


def test_errors_and_intervals_have_one_column_per_number(fitted):
    mean, error = fitted.predict(X[TEST], return_std=True)
    low, high = fitted.predict_interval(X[TEST], coverage=0.9)
    assert mean.shape == error.shape == low.shape == high.shape == (60, 2)
    inside = ((low < Y[TEST]) & (Y[TEST] < high)).mean(0)
    assert ((inside > 0.6) & (inside < 1.01)).all()
    narrow_low, narrow_high = fitted.predict_interval(X[TEST], coverage=0.5)
    assert (low < narrow_low).all()
    assert (narrow_high < high).all()


def test_a_column_of_numbers_is_one_number_per_example():
    one = make().set_params(epochs=2)
    with pytest.warns(UserWarning, match="column-vector"):
        column = one.fit(X[:60], Y[:60, :1]).predict(X[:60])
    assert column.shape == (60,)
    np.testing.assert_array_equal(one.fit(X[:60], Y[:60, 0]).predict(X[:60]), column)


def test_several_numbers_are_saved_and_exported(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = InvariantRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    for ours, theirs in zip(again.predict_interval(X), fitted.predict_interval(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    fitted.export(tmp_path / "model.onnx")
    (exported,) = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"x": X})
    np.testing.assert_allclose(exported, fitted.predict(X), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("change", [{"y_mean": [1.0]}, {"y_scale": [1.0, 2.0, 3.0]}, {"single": "no"}])
def test_a_record_with_another_number_of_targets_is_refused(fitted, tmp_path, change):
    fitted.save(tmp_path)
    record = json.loads((tmp_path / RUN).read_text())
    record["learned"] |= change
    (tmp_path / RUN).write_text(json.dumps(record))
    with pytest.raises(ValueError, match="fit again"):
        InvariantRegressor.load(tmp_path)


def test_doubts_have_one_column_per_number():
    parts = make(uncertainty="ensemble").set_params(epochs=5).fit(X[:60], Y[:60]).predict_uncertainty(X[:10])
    assert {name: part.shape for name, part in parts.items()} == dict.fromkeys(
        ("total", "aleatoric", "epistemic"), (10, 2)
    )
    np.testing.assert_allclose(parts["aleatoric"] ** 2 + parts["epistemic"] ** 2, parts["total"] ** 2)


@pytest.mark.parametrize(
    ("y", "fault"),
    [(Y[:59], "one row of targets per input"), (np.where(Y[:60] > 1e3, np.nan, 1.0), "contains NaN")],
)
def test_targets_that_cannot_be_used(y, fault):
    with pytest.raises(ValueError, match=fault):
        make().fit(X[:60], y)


def test_a_number_that_never_changes_does_no_harm():
    y = np.stack([Y[:60, 0], np.full(60, 3.0)], 1)
    reg = make().set_params(epochs=20).fit(X[:60], y)
    np.testing.assert_allclose(reg.predict(X[:60])[:, 1], 3.0, atol=0.5)
