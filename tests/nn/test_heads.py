"""Networks with a forward pass of their own: where their head is, and what happens if there is none."""

import numpy as np
import pytest
import torch
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, check_invariance
from invariantnet._system.torch_state import seeded
from invariantnet.nn import Symmetrized

SHAPE = (2, 4, 4)
TURNS = inv.symmetry("rot90", shape=SHAPE)


class Residual(nn.Module):
    """A block with a skip connection, then a classifier of two layers; a spare layer is called last."""

    def __init__(self, outputs):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.classifier = nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, outputs))
        self.spare = nn.Linear(8, 1)

    def features(self, x):
        return (x + self.norm(self.conv(x)).relu()).flatten(1)

    def forward(self, x):
        hidden = self.classifier[0](self.features(x)).relu()
        outputs = self.classifier[2](hidden)
        self.spare(hidden)
        return outputs


class PassedBy(nn.Module):
    """Every linear layer has a path around it."""

    def __init__(self, outputs):
        super().__init__()
        self.first, self.second = nn.Linear(32, outputs), nn.Linear(32, outputs)

    def forward(self, x):
        x = x.flatten(1)
        return self.first(x) + self.second(x)


def residual(shape, outputs):
    return Residual(outputs)


def passed_by(shape, outputs):
    return PassedBy(outputs)


def inputs(n=5):
    with seeded(0):
        return torch.randn(n, 32)


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize(("head", "expected"), [(None, "classifier.2"), ("classifier.0", "classifier.0")])
def test_copies_are_pooled_before_the_head(pool, head, expected):
    with seeded(0):
        module = Residual(3).eval()
    network = Symmetrized(module, [TURNS], pool=pool, input_shape=SHAPE, head=head).eval()
    assert network.placement.head == expected
    copies = TURNS.act(inputs()).reshape(-1, *SHAPE)
    features = module.features(copies)
    rest = module.classifier
    if head is None:
        features, rest = rest[:2](features), rest[2]
    each = features.unflatten(0, (5, 4))
    torch.testing.assert_close(network(inputs()), rest(each.amax(1) if pool == "max" else each.mean(1)))
    assert check_invariance(network, TURNS, inputs()) < 1e-5


def test_looking_for_the_head_changes_nothing():
    with seeded(0):
        module = Residual(3).train()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        state = torch.random.get_rng_state()
        Symmetrized(module, [TURNS], input_shape=SHAPE)
        assert torch.equal(torch.random.get_rng_state(), state)
    assert module.training
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in module.modules())
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_lazy_and_half_precision_layers():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.LazyLinear(8), nn.LazyLinear(3)

        def forward(self, x):
            return self.head(self.body(x.flatten(1)).relu())

    network = Symmetrized(Lazy(), [TURNS], input_shape=SHAPE)
    assert network.averages == "features"
    assert check_invariance(network, TURNS, inputs()) < 1e-5
    half = Symmetrized(Residual(3).bfloat16(), [TURNS], input_shape=SHAPE)
    assert half.averages == "features"
    assert half(inputs().bfloat16()).isfinite().all()


def test_a_network_without_a_head_averages_its_outputs_and_says_so():
    with pytest.warns(UserWarning, match="outputs are averaged instead of features: name the layer"):
        network = Symmetrized(PassedBy(3), [TURNS], input_shape=SHAPE)
    assert network.averages == "outputs"
    assert check_invariance(network, TURNS, inputs()) < 1e-5


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (
            "classifier.7",
            "no layer 'classifier.7': name one of its layers, such as classifier.0, classifier.2, spare",
        ),
        ("spare", "cannot be pooled before layer 'spare'.*name another layer, or use placement 'outputs'"),
    ],
)
def test_a_head_that_is_none_is_refused(head, said):
    with pytest.raises(ValueError, match=said):
        Symmetrized(Residual(3), [TURNS], input_shape=SHAPE, head=head)


def test_a_head_needs_a_backbone_of_ones_own():
    with pytest.raises(ValueError, match=r"head names a layer of your own backbone.*pass a backbone"):
        InvariantClassifier(["rot90"], SHAPE, head="2").fit(inputs(20), np.arange(20) % 2)


@pytest.mark.parametrize(
    ("make", "options", "used"),
    [
        (residual, {}, "features"),
        (residual, {"head": "classifier.0", "uncertainty": "laplace"}, "features"),
        (residual, {"uncertainty": "bbb"}, "features"),
        (residual, {"method": "heldout"}, "features"),
        (passed_by, {}, "outputs"),
    ],
)
def test_such_networks_are_fitted_stored_and_exported(make, options, used, tmp_path, brief_comparison, recwarn):
    onnxruntime = pytest.importorskip("onnxruntime")
    x = inputs(60).reshape(60, *SHAPE).numpy()
    y = (x[:, 0].max((1, 2)) > x[:, 1].max((1, 2))).astype(int)
    clf = InvariantClassifier(["rot90"], backbone=make, n_networks=1, epochs=1, random_state=0, **options)
    recwarn.clear()
    p = clf.fit(x, y).predict_proba(x)
    told = [str(w.message) for w in recwarn if "instead of features" in str(w.message)]
    assert (clf.placement_, len(told)) == (used, int(used == "outputs"))
    clf.save(tmp_path / "model")
    again = InvariantClassifier.load(tmp_path / "model", backbone=make)
    assert again.placement_ == used
    np.testing.assert_allclose(again.predict_proba(x), p, atol=1e-6)
    clf.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    np.testing.assert_allclose(session.run(None, {"x": x})[0], p, atol=1e-4)
