"""Networks that users bring: normalised, without bias, with shared or unused layers, with their own forward."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor, check_invariance, uncertainty
from invariantnet._system.torch_state import seeded
from invariantnet.data.examples import Examples
from invariantnet.inference._kronecker import BATCH
from invariantnet.inference.laplace import draw_last_layer, log_marginal_likelihood, posterior
from invariantnet.likelihoods import Categorical
from invariantnet.nn import Symmetrized
from invariantnet.symmetries.group import transform
from invariantnet.training.config import Training
from invariantnet.training.loop import train

TURNS = inv.symmetry("rot90", shape=(4, 4))
NONE = inv.symmetry("trivial", shape=(4, 4))


class Skipping(nn.Sequential):
    """A sequence with a forward pass of its own."""

    def forward(self, x):
        return self[1](x + self[0](x))


class WithSpares(nn.Module):
    """The head is made first; one layer is never called, and one is called in vain."""

    def __init__(self, outputs):
        super().__init__()
        self.head, self.body, self.spare = nn.Linear(8, outputs), nn.Linear(16, 8), nn.Linear(3, 3)
        self.aside = nn.Linear(8, 2)

    def forward(self, x):
        hidden = self.body(x).relu()
        self.aside(hidden)
        return self.head(hidden)


def twice(outputs):
    layer = nn.Linear(16, 16)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(16, outputs))


OWN = {
    "batch norm": lambda o: nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, o)),
    "no bias": lambda o: nn.Sequential(nn.Linear(16, 8, bias=False), nn.ReLU(), nn.Linear(8, o, bias=False)),
    "softmax": lambda o: nn.Sequential(nn.Linear(16, 8), nn.Softmax(dim=1), nn.Linear(8, o)),
    "layer norm": lambda o: nn.Sequential(nn.Linear(16, 8), nn.LayerNorm(8), nn.Linear(8, o)),
    "slopes": lambda o: nn.Sequential(nn.Linear(16, 8), nn.PReLU(8), nn.Linear(8, o)),
    "reshaped": lambda o: nn.Sequential(
        nn.Linear(16, 8), nn.Unflatten(1, (1, 2, 4)), nn.Conv2d(1, 2, 2), nn.Flatten(), nn.Linear(6, o)
    ),
    "spectral": lambda o: nn.Sequential(
        parametrizations.spectral_norm(nn.Linear(16, 8)), nn.ReLU(), nn.Linear(8, o)
    ),
    "twice": twice,
}


def examples(n=40):
    with seeded(3):
        return torch.randn(n, 16), torch.arange(n) % 3


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("group", [NONE, TURNS], ids=["trivial", "rot90"])
def test_features_are_those_of_the_moved_inputs(name, group):
    """Against the definition: the body on every moved input, the mean, then the head."""
    x, _ = examples()
    with seeded(0):
        module = OWN[name](3).eval()
        network = Symmetrized(module, [group]).eval()
    *body, head = module
    each = nn.Sequential(*body)
    mean = torch.stack([each(transform(x, g)) for g in group.elements]).mean(0)
    torch.testing.assert_close(network(x), head(mean), atol=1e-5, rtol=1e-4)
    assert network.train()(x).isfinite().all()


@pytest.mark.parametrize("placement", ["weights", "features"])
@pytest.mark.parametrize("name", OWN)
def test_folding_gives_the_same_outputs_or_is_refused(name, placement):
    x, _ = examples()
    with seeded(0):
        network = Symmetrized(OWN[name](3), [TURNS], placement).eval()
    if placement == "features" and name not in ("no bias", "spectral"):
        with pytest.raises(ValueError, match="fold into plain layers"):
            network.fold()
        return
    folded = network.fold()
    torch.testing.assert_close(folded(x), network(x), atol=1e-5, rtol=1e-4)
    assert check_invariance(folded, TURNS, x) < 1e-5


def test_a_forward_pass_of_ones_own_is_not_left_out():
    module, (x, _) = Skipping(nn.Linear(16, 16), nn.Linear(16, 3)), examples()
    network, copies = Symmetrized(module, [TURNS]), TURNS.act(x)
    assert network.averages == "features"
    torch.testing.assert_close(network(x), module[1]((copies + module[0](copies)).mean(1)))


def test_layers_that_are_not_ready_yet_are_called():
    network = Symmetrized(nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(3)), [TURNS])
    x, _ = examples()
    assert check_invariance(network, TURNS, x) < 1e-5


@pytest.mark.parametrize("kind", ["none", "ensemble", "bbb", "laplace"])
def test_shared_layers_are_trained_saved_and_loaded(kind, tmp_path, brief_comparison):
    x, y = (t.numpy() for t in examples(60))

    def own(shape, outputs):
        return nn.Sequential(nn.Flatten(), *twice(outputs))

    clf = InvariantClassifier(
        ["rot90"], (4, 4), backbone=own, n_networks=1, epochs=1, uncertainty=kind, random_state=0
    ).fit(x, y)
    clf.save(tmp_path / "model")
    again = InvariantClassifier.load(tmp_path / "model", backbone=own)
    np.testing.assert_allclose(again.predict_proba(x), clf.predict_proba(x), atol=1e-6)


def test_laplace_knows_which_layers_take_part():
    x, y = examples()
    with seeded(1):
        network = WithSpares(3)
    assert list(posterior(network, x, Categorical())) == ["body", "aside", "head"]
    assert set(draw_last_layer(network, x, Categorical(), 2, 0)) == {"head.weight", "head.bias"}
    network.body.requires_grad_(False)
    assert list(posterior(network, x, Categorical())) == ["aside", "head"]
    assert math.isfinite(log_marginal_likelihood(network, Examples(x, y), Categorical()))


def test_a_layer_that_is_used_twice_has_the_curvature_of_both_uses():
    x, _ = examples()
    with seeded(1):
        shared = twice(3)
        first, second = nn.Linear(16, 16), nn.Linear(16, 16)
    apart = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), shared[4])
    for layer in (first, second):
        layer.load_state_dict(shared[0].state_dict())
    one, two = (posterior(network, x, Categorical()) for network in (shared, apart))
    together = sum(float(two[name].output_values.sum()) for name in ("0", "2"))
    assert float(one["0"].output_values.sum()) == pytest.approx(together, rel=1e-4)


def test_examples_count_by_their_weight_for_laplace():
    x, y = examples(60)
    with seeded(2):
        network = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
    weight = torch.tensor([1.0] * 40 + [0.0] * 20)
    expected = log_marginal_likelihood(network, Examples(x[:40], y[:40]), Categorical())
    assert log_marginal_likelihood(network, Examples(x, y, weight), Categorical()) == pytest.approx(
        expected, rel=1e-5
    )
    twice_each = log_marginal_likelihood(network, Examples(torch.cat([x, x]), torch.cat([y, y])), Categorical())
    doubled = log_marginal_likelihood(network, Examples(x, y, torch.full((60,), 2.0)), Categorical())
    assert doubled == pytest.approx(twice_each, rel=1e-5)


def test_weights_stay_with_their_examples_over_many_blocks():
    x, y = examples(3 * BATCH)
    with seeded(2):
        network = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
    weight = (torch.arange(len(x)) % 7 == 0).float()
    kept = weight > 0
    expected = log_marginal_likelihood(network, Examples(x[kept], y[kept]), Categorical())
    assert log_marginal_likelihood(network, Examples(x, y, weight), Categorical()) == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.parametrize(("count", "batches"), [(129, 1), (128, 1), (130, 2), (257, 2), (1, 1), (2, 1)])
def test_no_batch_has_a_single_example_that_could_not_be_normalised(count, batches):
    config = Training(epochs=2, batch_size=128, validation=0.0)
    assert config.batches(count) == batches
    x, y = examples(count)
    sizes = []

    def make():
        network = OWN["batch norm"](3)
        network.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
        return network

    train(make, Examples(x, y), config, 0)
    assert sum(sizes) == 2 * count
    assert len(sizes) == config.steps(count) == 2 * batches
    assert count == 1 or min(sizes) > 1


def test_export_is_measured_in_the_units_of_the_targets(tmp_path, brief_comparison):
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 8))
    y = 1e6 * (3 + np.abs(x[:, 0] - x[:, 7]))
    model = InvariantRegressor(["reversal"], n_networks=1, epochs=1, random_state=0).fit(x, y)
    model.export(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").exists()


def for_pictures(shape, outputs):
    """Takes inputs in their shape, channels first."""
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * height * width, 8),
        nn.ReLU(),
        nn.Linear(8, outputs),
    )


def flattening(shape, outputs):
    """Takes inputs in any shape."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 8), nn.ReLU(), nn.Linear(8, outputs))


COLOURED = (2, 4, 4)


@pytest.mark.parametrize("make", [for_pictures, flattening])
@pytest.mark.parametrize("placement", ["features", "outputs"])
def test_a_network_gets_inputs_in_their_shape(make, placement):
    turns = inv.symmetry("rot90", shape=COLOURED)
    with seeded(0):
        module, x = make(COLOURED, 3).eval(), torch.randn(5, 32)
    network = Symmetrized(module, [turns], placement, input_shape=COLOURED).eval()
    copies = [copy.reshape(-1, *COLOURED) for copy in turns.act(x).unbind(1)]
    if placement == "features":
        expected = module[-1](torch.stack([module[:-1](copy) for copy in copies]).mean(0))
    else:
        expected = torch.stack([module(copy).softmax(-1) for copy in copies]).mean(0).log()
    torch.testing.assert_close(network(x), expected)
    assert check_invariance(network, turns, x) < 1e-5


def test_weights_average_a_network_that_flattens_its_inputs():
    turns = inv.symmetry("rot90", shape=COLOURED)
    with seeded(0):
        module, x = flattening(COLOURED, 3), torch.randn(5, 32)
    network = Symmetrized(module, [turns], "weights", input_shape=COLOURED)
    torch.testing.assert_close(network(x), module(turns.act(x).mean(1)))
    torch.testing.assert_close(network.fold()(x.reshape(-1, *COLOURED)), network(x))


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (for_pictures, {"uncertainty": "ensemble"}),
        (for_pictures, {"placement": "outputs", "uncertainty": "laplace"}),
        (for_pictures, {"method": "heldout"}),
        (flattening, {"placement": "weights", "uncertainty": "bbb"}),
        (flattening, {"placement": "weights", "method": "heldout"}),
    ],
    ids=["features", "outputs", "heldout", "weights", "weights, heldout"],
)
def test_backbones_of_ones_own_are_fitted_stored_and_exported(
    make, options, tmp_path, brief_comparison, monkeypatch
):
    for name in ("DRAWS", "NETWORKS"):  # each is a part of the exported graph
        monkeypatch.setattr(uncertainty, name, 2)
    onnxruntime = pytest.importorskip("onnxruntime")
    with seeded(0):
        x = torch.rand(60, *COLOURED).numpy()
    y = (x[:, 0].max((1, 2)) > x[:, 1].max((1, 2))).astype(int)
    clf = InvariantClassifier(["rot90"], backbone=make, n_networks=1, epochs=1, random_state=0, **options)
    p = clf.fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(clf.predict_proba(x.reshape(60, -1)), p)
    clf.save(tmp_path / "model")
    again = InvariantClassifier.load(tmp_path / "model", backbone=make)
    np.testing.assert_allclose(again.predict_proba(x), p, atol=1e-6)
    clf.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    np.testing.assert_allclose(session.run(None, {"x": x})[0], p, atol=1e-4)


@pytest.mark.parametrize("placement", ["features", "outputs"])
def test_a_network_that_forgets_to_flatten_is_told_so(placement):
    module = nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 3))
    turns = inv.symmetry("rot90", shape=COLOURED)
    with pytest.raises(ValueError, match=r"takes 32 inputs.*\(2, 4, 4\) have 4.*start with nn\.Flatten\(\)"):
        Symmetrized(module, [turns], placement, input_shape=COLOURED)
    with pytest.raises(ValueError, match=r"rot90 acts on 32 inputs: make both for the same shape"):
        Symmetrized(flattening((4, 4), 3), [turns], placement, input_shape=COLOURED)


def test_a_shape_that_is_not_that_of_the_symmetry_is_refused():
    with pytest.raises(ValueError, match=r"input_shape \(4, 4\) has 16 numbers, but rot90 acts on 32"):
        Symmetrized(flattening((4, 4), 3), [inv.symmetry("rot90", shape=COLOURED)], input_shape=(4, 4))


class Louder(nn.Linear):
    """A linear layer that computes something else."""

    def forward(self, x):
        return 3 * super().forward(x) + 1


def test_a_linear_layer_with_a_forward_pass_of_its_own_is_called():
    module = nn.Sequential(Louder(16, 6), nn.ReLU(), nn.Linear(6, 3))
    network, x = Symmetrized(module, [TURNS]), torch.randn(5, 16)
    expected = module[2](module[:2](transform(x, TURNS.elements)).mean(-2))
    torch.testing.assert_close(network(x), expected)
    with pytest.raises(ValueError, match="fold into plain layers"):
        network.fold()


@pytest.mark.parametrize("width", [12, 20])
@pytest.mark.parametrize("placement", ["weights", "features", "outputs"])
def test_a_network_of_another_width_than_the_group_is_refused(width, placement):
    module = nn.Sequential(nn.Linear(width, 2), nn.Tanh(), nn.Linear(2, 2))
    with pytest.raises(ValueError, match=f"takes {width} inputs, but sign acts on 16 inputs: make both"):
        Symmetrized(module, [inv.symmetry("sign", shape=(4, 4))], placement)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", ["rot90", "sign", "trivial"])
def test_transforms_of_torch_func(name):
    module = nn.Sequential(nn.Linear(16, 6), nn.ReLU(), nn.Linear(6, 3))
    network, x = Symmetrized(module, [inv.symmetry(name, shape=(4, 4))]), torch.randn(5, 16)
    weights = {key: value.detach() for key, value in network.named_parameters()}

    def loss(weights, x):
        return torch.func.functional_call(network, weights, (x,)).square().sum()

    torch.testing.assert_close(torch.func.vmap(network)(x), network(x))
    whole = torch.func.grad(loss)(weights, x)
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)
    for key, value in whole.items():
        torch.testing.assert_close(each[key].sum(0), value)
