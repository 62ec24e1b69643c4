"""What is saved comes back, and nothing else gets in."""

import json
from functools import cache

import numpy as np
import onnxruntime
import pytest
import safetensors.torch
import torch
from bad_inputs import damaged
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet.estimator import persistence
from invariantnet.estimator.onnx import axes_in_words
from invariantnet.estimator.persistence import MODEL, RUN
from invariantnet.nn.folding import folded

DIGITS = inv.datasets.load("digits:rotated", seed=0)
X, Y = DIGITS.x_train[:100], np.array([f"digit {d}" for d in DIGITS.y_train[:100]])
ODD = DIGITS.y_train[:100] % 2 == 1
pytestmark = pytest.mark.usefixtures("module_unchecked", "module_quickly_compared")
SMALL = {"input_shape": (8, 8), "hidden": 16, "n_networks": 1, "epochs": 5, "random_state": 0}


def own_backbone(shape, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 12), nn.Tanh(), nn.Linear(12, outputs))


MINE = inv.Group.from_permutations(inv.symmetry("vflip", shape=(8, 8)).generators, name="mine")
CASES = {
    "usual": {"symmetries": ["rot90", "flips"]},
    "group of one's own": {"symmetries": [MINE, "hflip"]},
    "cnn": {"symmetries": ["hflip"], "backbone": "cnn", "epochs": 1},
    "own backbone": {"symmetries": ["hflip"], "backbone": own_backbone},
    "outputs": {"symmetries": ["hflip"], "placement": "outputs"},
    "weights": {"symmetries": ["rot90"], "placement": "weights"},
    "heldout": {"symmetries": ["rot90"], "method": "heldout"},
    "paper": {"symmetries": ["rot90"], "method": "paper"},
    "sign": {"symmetries": ["sign"]},
    "ensemble": {"symmetries": ["hflip"], "uncertainty": "ensemble"},
}
NETWORKS_LIKE_USUAL = ("group of one's own", "heldout")


@pytest.fixture(scope="module")
def fitted_case(module_unchecked, module_quickly_compared):
    """The classifier of a case, fitted once."""
    return cache(lambda case: InvariantClassifier(**{**SMALL, **CASES[case]}).fit(X, Y))


@pytest.fixture(scope="module")
def saved(tmp_path_factory, fitted_case):
    folder = tmp_path_factory.mktemp("saved")
    fitted_case("usual").save(folder)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_what_is_saved_comes_back(tmp_path, fitted_case, case):
    clf = fitted_case(case)
    clf.save(tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {MODEL, RUN}
    again = InvariantClassifier.load(tmp_path / "run", backbone=own_backbone if case == "own backbone" else None)
    np.testing.assert_array_equal(again.predict_proba(DIGITS.x_test), clf.predict_proba(DIGITS.x_test))
    np.testing.assert_array_equal(again.predict(DIGITS.x_test), clf.predict(DIGITS.x_test))
    assert again.posterior_.verdict == clf.posterior_.verdict
    assert again.posterior_.prices == clf.posterior_.prices
    assert again.symmetry_ == clf.symmetry_
    assert again.history_.epochs == clf.history_.epochs
    assert again.fit(X, Y).posterior_.probabilities == clf.posterior_.probabilities


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((5,), "features"),
        ((28, 28), "height, width"),
        ((7, 2), "points or steps, features"),
        ((3, 8, 8), "channels, height, width"),
    ],
)
def test_an_exported_file_says_what_the_axes_of_an_input_are(shape, axes):
    assert axes_in_words(shape) == axes


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.parametrize("case", [case for case in CASES if case not in NETWORKS_LIKE_USUAL])
def test_exported_network_predicts_the_same_in_batches_of_any_size(tmp_path, fitted_case, case):
    clf = fitted_case(case)
    clf.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for n in (1, 7, 100):
        (ours,) = session.run(None, {"x": DIGITS.x_test[:n].reshape(n, 8, 8)})
        np.testing.assert_allclose(ours, clf.predict_proba(DIGITS.x_test[:n]), atol=1e-4)
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["invariantnet.classes"]) == clf.classes_.tolist()
    assert json.loads(told["invariantnet.input_shape"]) == [8, 8]
    assert told["invariantnet.input_layout"] == "batch, height, width"
    assert told["invariantnet.input_scaling"].startswith("units of the data that was fitted")
    assert told["invariantnet.symmetry"] == clf.symmetry_.name
    assert told["invariantnet.version"] == inv.__version__
    with torch.no_grad():
        x = torch.from_numpy(X[:4])
        torch.testing.assert_close(folded(clf.network_)(x), clf.network_(x))


def test_regressor_saves_and_exports(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    reg = InvariantRegressor(["sign"], hidden=8, n_networks=1, epochs=20, random_state=0).fit(
        x, 100 + 7 * (x**2).sum(1)
    )
    reg.save(tmp_path)
    np.testing.assert_array_equal(InvariantRegressor.load(tmp_path).predict(x), reg.predict(x))
    reg.export(tmp_path / "model.onnx")
    (ours,) = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"x": x})
    np.testing.assert_allclose(ours, reg.predict(x), rtol=1e-4)
    told = onnxruntime.InferenceSession(tmp_path / "model.onnx").get_modelmeta().custom_metadata_map
    assert told["invariantnet.output"].startswith("predicted number")
    with pytest.raises(ValueError, match="holds an InvariantRegressor"):
        InvariantClassifier.load(tmp_path)


@pytest.mark.parametrize("case", ["usual", "weights", "outputs", "ensemble"])
def test_probabilities_stay_calibrated_in_files_and_in_plain_layers(tmp_path, fitted_case, case):
    clf = fitted_case(case)
    clf.save(tmp_path)
    again = InvariantClassifier.load(tmp_path)
    expected = clf.predict_proba(DIGITS.x_test)
    np.testing.assert_array_equal(again.predict_proba(DIGITS.x_test), expected)
    x = torch.from_numpy(DIGITS.x_test)
    with torch.no_grad():
        np.testing.assert_allclose(folded(again.network_)(x).softmax(-1), expected, atol=1e-5)
    # Without its temperature, the network would say something else.
    stored = safetensors.torch.load_file(tmp_path / MODEL)
    scales = [value for name, value in stored.items() if name.endswith("calibrate.scale")]
    assert len(scales) == 1
    assert (scales[0] != 1).all()


def test_folded_network_is_plain_layers(saved):
    clf = InvariantClassifier.load(saved)
    plain = folded(clf.network_)
    assert {type(m) for m in plain} <= {nn.Linear, nn.ReLU, nn.MaxPool1d}
    x = torch.from_numpy(X[:20])
    torch.testing.assert_close(plain(x), clf.network_(x), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(torch.export.export(plain, (x,)).module()(x), plain(x))


def without_a_tensor(record, model):
    tensors = safetensors.torch.load(model)
    del tensors["network.module.0.weight"]
    return record, safetensors.torch.save(tensors)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda r, m: (None, m), "cannot be read"),
        (lambda r, m: (r, None), "cannot be read"),
        (lambda r, m: ("{", m), "is damaged: fit again"),
        (lambda r, m: ("[]", m), "was not written by InvariantNet"),
        (lambda r, m: ({**r, "format": 99}, m), "has format 99, this version reads 3"),
        (lambda r, m: (r, m[:1000]), "is damaged"),
        (lambda r, m: (r, b"\x80\x04cos\nsystem\n."), "is damaged"),
        (without_a_tensor, "do not fit together"),
        (lambda r, m: ({**r, "chosen": "nonsense"}, m), "do not fit together"),
        (lambda r, m: ({**r, "parameters": {**r["parameters"], "hidden": 7}}, m), "do not fit together"),
        (lambda r, m: ({**r, "parameters": {"malice": 1}}, m), "is damaged .parameters.malice is unknown."),
    ],
)
def test_damaged_foreign_or_newer_files_are_refused(saved, tmp_path, change, fault):
    with pytest.raises(ValueError, match=fault) as error:
        InvariantClassifier.load(damaged(saved, tmp_path / "run", change))
    assert len(str(error.value).splitlines()) == 1


def test_own_backbone_has_to_be_given_again(tmp_path, fitted_case):
    fitted_case("own backbone").save(tmp_path)
    with pytest.raises(ValueError, match="pass it to load"):
        InvariantClassifier.load(tmp_path)

    def broken(shape, outputs):
        raise KeyError("layers")

    def another(shape, outputs):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 11), nn.Linear(11, outputs))

    with pytest.raises(ValueError, match=r"^your backbone failed .*8 outputs \(KeyError: 'layers'\): mend it"):
        InvariantClassifier.load(tmp_path, backbone=broken)
    with pytest.raises(ValueError, match=r"^the stored weights are not those of your backbone .*: pass the"):
        InvariantClassifier.load(tmp_path, backbone=another)


def test_files_of_two_fits_are_not_taken_for_one_model(tmp_path, monkeypatch):
    make = lambda: InvariantClassifier(["rot90"], (8, 8), hidden=4, n_networks=1, epochs=1, random_state=0)  # noqa: E731
    first, second = (make().fit(X[:60], y) for y in (ODD[:60], ~ODD[:60]))
    first.save(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(persistence, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            second.save(tmp_path)
    with pytest.raises(ValueError, match="they are of different fits"):
        InvariantClassifier.load(tmp_path)
    second.save(tmp_path)
    np.testing.assert_array_equal(InvariantClassifier.load(tmp_path).predict(X), second.predict(X))


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    days = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")[ODD[:60].astype(int)]
    clf = InvariantClassifier(["rot90"], (8, 8), hidden=4, n_networks=1, epochs=1, random_state=0).fit(
        X[:60], days
    )
    with pytest.raises(ValueError, match=r"cannot be stored .*: fit with labels that are y.astype\(str\)"):
        clf.save(tmp_path / "model")
    assert not list((tmp_path / "model").iterdir())


def test_parameters_that_are_written_with_another_type_come_back(tmp_path):
    clf = InvariantClassifier(["hflip"], **{**SMALL, "hidden": np.int64(4)}, verbose=True, joins=0)
    clf.fit(X, Y).save(tmp_path)
    again = InvariantClassifier.load(tmp_path)
    assert (again.verbose, again.joins, again.hidden) == (1, False, 4)
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))


def test_parameters_survive_so_that_a_second_fit_is_the_same(tmp_path):
    swap = np.arange(64)
    swap[[0, 1]] = [1, 0]
    own = [inv.Group.from_permutations([swap], "hflip"), inv.Group.from_permutations([swap], "again"), "rot90"]
    clf = InvariantClassifier(own, (8, 8), hidden=4, n_networks=1, epochs=1, joins=False, random_state=np.int64(3))
    clf.fit(X[:60], Y[:60]).save(tmp_path)
    loaded = InvariantClassifier.load(tmp_path)
    assert loaded.random_state == 3
    assert [getattr(g, "name", g) for g in loaded.symmetries] == ["hflip", "again", "rot90"]
    assert loaded.fit(X[:60], Y[:60]).posterior_.names == clf.posterior_.names
    assert repr(loaded.posterior_) == repr(clf.posterior_)
