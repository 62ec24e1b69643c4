"""The same bits of behaviour on a real GPU, where there is one; `test_devices` pretends one elsewhere."""

import numpy as np
import pytest
import torch
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor, check_invariance
from invariantnet._system.torch_state import seeded

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")

SHAPE = (1, 6, 6)
CLOSE = 1e-3
"""Probabilities of two devices differ by rounding; networks are compared after loading, not trained twice."""


def examples(n=120):
    with seeded(0):
        x = torch.rand(n, 36)
    return x.numpy(), (x[:, :18].mean(1) > x[:, 18:].mean(1)).numpy()


def own(shape, outputs):
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, outputs))


def body():
    with seeded(0):
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten())


@pytest.mark.parametrize(
    "options",
    [
        {"backbone": "mlp"},
        {"backbone": "cnn"},
        {"backbone": own},
        {"backbone": inv.nn.Pretrained(body())},
        {"backbone": inv.nn.Pretrained(body(), unfreeze=True)},
        {"backbone": "mlp", "uncertainty": "laplace"},
        {"backbone": "mlp", "uncertainty": "ensemble"},
        {"backbone": "mlp", "uncertainty": "bbb"},
        {"backbone": "mlp", "symmetries": ["rotation:30"]},
        {"backbone": "mlp", "placement": "weights"},
        {"backbone": "mlp", "placement": "outputs", "second_opinion": True},
        {"backbone": "mlp", "method": "heldout"},
        {"backbone": "cnn", "precision": "bf16-mixed"},
        {"backbone": inv.nn.Pretrained(body()), "precision": "bf16-mixed"},
    ],
    ids=lambda options: " ".join(str(getattr(v, "__name__", v)) for v in options.values()),
)
def test_a_fit_on_the_gpu_predicts_on_the_cpu(options, tmp_path, brief_comparison):
    x, y = examples()
    settings = {"symmetries": ["rot90"], "n_networks": 1, "epochs": 2, "hidden": 8, "random_state": 0} | options
    clf = InvariantClassifier(input_shape=SHAPE, device="cuda", **settings).fit(x, y)
    assert next(clf.network_.parameters()).is_cuda
    clf.save(tmp_path)
    given = options["backbone"] if callable(options["backbone"]) else None
    again = InvariantClassifier.load(tmp_path, backbone=given)
    np.testing.assert_allclose(again.predict_proba(x), clf.predict_proba(x), atol=CLOSE)
    if clf.deviation_ is None:
        assert check_invariance(clf.network_, clf.symmetry_, torch.from_numpy(x).cuda()) < CLOSE


def test_data_on_disk(tmp_path, brief_comparison):
    x, y = examples()
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    settings = {"backbone": "mlp", "n_networks": 1, "epochs": 2, "hidden": 8, "random_state": 0, "device": "cuda"}
    clf = InvariantClassifier(["rot90"], SHAPE, **settings).fit(mapped, y)
    np.testing.assert_allclose(clf.predict_proba(mapped), clf.predict_proba(x), atol=CLOSE)


def test_numbers(brief_comparison):
    x, _ = examples()
    reg = InvariantRegressor(["hflip"], SHAPE, backbone="mlp", n_networks=1, epochs=2, hidden=8, device="cuda")
    assert np.isfinite(reg.fit(x, x[:, 0] + x[:, 5]).predict(x)).all()


def test_less_symmetry_and_an_exported_file(tmp_path, brief_comparison):
    onnxruntime = pytest.importorskip("onnxruntime")
    x, y = examples()
    settings = {"backbone": "mlp", "n_networks": 1, "epochs": 2, "hidden": 8, "random_state": 0, "device": "cuda"}
    clf = InvariantClassifier(["rot90"], SHAPE, tolerance=9.0, **settings).fit(x, y)
    assert next(clf.restricted_to("trivial", x).network_.parameters()).is_cuda
    clf.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    found = session.run(None, {"x": x.reshape(-1, *SHAPE)})[0]
    np.testing.assert_allclose(found, clf.predict_proba(x), atol=CLOSE)
