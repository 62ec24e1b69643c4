"""Every public path on a GPU, pretended where there is none: no operation mixes devices."""

import numpy as np
import pytest
import torch
from devices import CPU, GPU, MixedDevicesError, PretendedGPU, device_of
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet._system.torch_state import seeded
from invariantnet.app import runs
from invariantnet.data.arrays import DiskArray
from invariantnet.data.examples import Examples
from invariantnet.estimator import base
from invariantnet.inference import HeldOut, fit_heldout
from invariantnet.likelihoods import Categorical
from invariantnet.nn import Symmetrized, invariant_net, mlp
from invariantnet.training.config import Training
from invariantnet.training.loop import predict, train

SHAPE = (4, 4)
GROUPS = [inv.symmetry(name, shape=SHAPE) for name in ("trivial", "rot90", "sign")]
BRIEF = Training(epochs=1, batch_size=16)
with seeded(0):
    X = torch.rand(48, 16)
Y = (X[:, [0, 3, 12, 15]].amax(1) > 0.8).long()
SMALL = {
    "symmetries": ["rot90"],
    "input_shape": SHAPE,
    "hidden": 4,
    "n_networks": 1,
    "epochs": 1,
    "device": "cuda",
    "random_state": 0,
}


@pytest.fixture(autouse=True)
def gpu(brief_comparison):
    """Trainings are brief, because every call of torch costs more here."""
    with PretendedGPU():
        yield


def there():
    return Examples(X.to("cuda"), Y.to("cuda"), torch.ones(len(X), device="cuda"))


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, g: x + g,
        lambda x, g: torch.cat([x, g]),
        lambda x, g: nn.Linear(16, 2).to("cuda")(x),
        lambda x, g: nn.Linear(16, 2)(g),
        lambda x, g: x[g[:, 0] > 0.5],
        lambda x, g: g.masked_fill(x > 0.5, 0.0),
        lambda x, g: torch.arange(16, device="cuda") * x,
        lambda x, g: x * g.sum(),
    ],
)
def test_the_guard_refuses_mixed_devices(mix):
    with pytest.raises(MixedDevicesError):
        mix(X, X.to("cuda"))


def test_the_guard_allows_what_torch_allows():
    g = X.to("cuda")
    with pytest.raises(TypeError, match="numpy"):
        g.numpy()
    assert g.device == (g * torch.tensor(2.0)).device == g[X[:, 0] > 0.5].device == X.to(g).device == GPU
    assert X.device == g.cpu().device == torch.zeros_like(g, device="cpu").device == CPU
    layer = nn.Linear(16, 2).to(g.device)
    layer(g).sum().backward()
    assert layer.weight.grad.device == nn.Parameter(g).device == GPU
    assert layer.cpu().weight.device == CPU


@pytest.mark.parametrize("placement", ["weights", "features", "outputs"])
def test_networks_are_trained_where_the_data_is_and_predict_from_anywhere(placement):
    network, _ = train(lambda: Symmetrized(mlp(SHAPE, 2, 4), GROUPS, placement), there(), BRIEF, seed=0)
    outputs = predict(network, X, Categorical())
    assert outputs.device == device_of(next(network.parameters())) == GPU
    torch.testing.assert_close(predict(network, X.to("cuda"), Categorical()), outputs)


def test_the_papers_layer():
    network, _ = train(lambda: invariant_net(GROUPS[1:], 2, 4), there(), BRIEF, seed=0)
    assert predict(network, X, Categorical()).device == network[0].fold().weight.device == GPU


def test_data_on_disk(tmp_path):
    np.save(tmp_path / "x.npy", X.numpy())
    x = DiskArray.of(np.load(tmp_path / "x.npy", mmap_mode="r")).to(GPU)
    network, _ = train(lambda: Symmetrized(mlp(SHAPE, 2, 4), GROUPS[:1]), Examples(x, Y.to("cuda")), BRIEF, seed=0)
    assert predict(network, x, Categorical()).device == GPU


def test_batches_from_disk_reach_the_gpu_from_pinned_memory(tmp_path, monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pinned.append(len(self)) or self)
    np.save(tmp_path / "x.npy", X.numpy())
    x = DiskArray.of(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert x[:3].read().device == CPU
    assert not pinned
    assert x.to(GPU)[:3].read().device == GPU
    assert pinned == [3]


@pytest.mark.parametrize("posterior", ["point", "dirichlet", "neurons"])
def test_learning_pi(posterior):
    brief = HeldOut(posterior=posterior, training=BRIEF)
    result = fit_heldout(lambda: Symmetrized(mlp(SHAPE, 2, 4), GROUPS), there(), config=brief)
    assert result.probabilities.device == GPU


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": 0.3},
        {"method": "paper"},
        {"method": "heldout"},
        {"backbone": "cnn", "second_opinion": True},
        {"placement": "weights", "uncertainty": "ensemble"},
        {"placement": "outputs", "uncertainty": "bbb"},
        {"uncertainty": "laplace"},
    ],
    ids=str,
)
def test_a_classifier(options, tmp_path):
    clf = InvariantClassifier(**SMALL | options).fit(X, Y)
    assert next(clf.network_.parameters()).device == GPU
    p = clf.predict_proba(X)
    if "uncertainty" in options:
        assert clf.predict_uncertainty(X)["total"].shape == (len(X),)
    clf.save(tmp_path)
    np.testing.assert_allclose(InvariantClassifier.load(tmp_path).predict_proba(X), p, atol=1e-5)


@pytest.mark.parametrize("uncertainty", ["none", "laplace"])
def test_a_regressor(uncertainty):
    reg = InvariantRegressor(**SMALL, uncertainty=uncertainty).fit(X, X[:, 0])
    low, high = reg.predict_interval(X)
    assert (low < reg.predict(X)).all()
    assert (reg.predict(X) < high).all()


def test_a_pretrained_body(tmp_path):
    with seeded(0):
        body = nn.Sequential(nn.Flatten(), nn.Linear(16, 6), nn.ReLU())
    backbone = inv.nn.Pretrained(body, preprocess=lambda x: 2 * x)
    clf = InvariantClassifier(**SMALL, backbone=backbone).fit(X, Y)
    assert device_of(next(clf.network_.parameters())) == GPU
    assert device_of(body[1].weight) == CPU
    clf.save(tmp_path)
    again = InvariantClassifier.load(tmp_path, backbone=backbone)
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), atol=1e-5)
    assert clf.restricted_to("trivial", X).predict_proba(X).shape == (48, 2)


def test_a_pretrained_body_that_is_trained_further():
    with seeded(0):
        body = nn.Sequential(nn.Flatten(), nn.Linear(16, 6), nn.ReLU())
    clf = InvariantClassifier(**SMALL, backbone=inv.nn.Pretrained(body, unfreeze=True)).fit(X, Y)
    assert device_of(next(clf.network_.parameters())) == GPU


def test_many_classes_have_a_curvature():
    output = torch.rand(5, 20, device="cuda")
    assert Categorical().curvature_roots(output).device == GPU


def test_a_run_with_its_report(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "usable_device", lambda name: GPU)
    settings = runs.Settings("digits:rotated", ("rot90",), examples=60, hidden=4, n_networks=1, epochs=1)
    runs.fit(settings, tmp_path)
    assert (tmp_path / "report.html").exists()
