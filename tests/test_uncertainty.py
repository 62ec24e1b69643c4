"""Networks that know what they do not know."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet import uncertainty as module
from invariantnet._system.torch_state import seeded
from invariantnet.data.examples import Examples
from invariantnet.likelihoods import Categorical, StudentT
from invariantnet.nn import BayesianConv2d, BayesianLinear, Ensemble, Symmetrized, bayesian, convnet, mlp
from invariantnet.nn.bayesian import draw_weights
from invariantnet.training.config import Training
from invariantnet.training.loop import train
from invariantnet.uncertainty import DRAWS, NETWORKS, train_uncertain, training_steps

KINDS = ("ensemble", "bbb", "laplace")
BRIEF = Training(epochs=3, batch_size=32, learning_rate=1e-2, validation=0.0, schedule="one-cycle")
ROT = inv.symmetry("rot90", shape=(4, 4))


def problem(n=120, seed=0):
    with seeded(seed):
        x = torch.rand(n, 16)
    return x, (x[:, [0, 3, 12, 15]].sum(1) > 2).long()


def trained(uncertainty, placement="features", make=mlp, likelihood=Categorical(), y=None):  # noqa: B008
    x, labels = problem()
    return train_uncertain(
        lambda: Symmetrized(make((4, 4), 2, 8), [ROT], placement),
        Examples(x, labels if y is None else y),
        BRIEF,
        0,
        uncertainty=uncertainty,
        likelihood=likelihood,
    )[0]


@pytest.mark.parametrize("uncertainty", KINDS)
@pytest.mark.parametrize("placement", ["weights", "features", "outputs"])
def test_the_predictive_distribution_is_invariant_not_only_its_mean(uncertainty, placement):
    network = trained(uncertainty, placement).requires_grad_(False)
    x, _ = problem(20, seed=1)
    draws = network.predict_each(x)
    assert len(draws) == (NETWORKS if uncertainty == "ensemble" else DRAWS)
    assert float(draws.std(0).max()) > 1e-4  # they do differ
    for element in ROT.elements:
        torch.testing.assert_close(network.predict_each(x[:, element]), draws, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(network(x).exp(), draws.exp().mean(0))


@pytest.mark.parametrize("uncertainty", KINDS)
def test_convolutions(uncertainty):
    network = trained(uncertainty, make=convnet).requires_grad_(False)
    x, _ = problem(10, seed=1)
    assert inv.check_invariance(network, ROT, x) < 1e-4


def test_draws_of_an_ensemble_are_its_members():
    with seeded(0):
        members = [convnet((4, 4), 2, 8).eval() for _ in range(3)]
        x = torch.rand(6, 16)
    with torch.no_grad():
        each = Ensemble.from_networks(members, Categorical()).eval().predict_each(x)
        for member, output in zip(members, each, strict=True):
            torch.testing.assert_close(output, member(x).log_softmax(-1))


def test_the_prior_of_stochastic_weights_takes_the_place_of_their_decay():
    x, labels = problem()
    plain, _ = train(
        lambda: bayesian(Symmetrized(mlp((4, 4), 2, 8), [ROT])),
        Examples(x, labels),
        replace(BRIEF, weight_decay=0.0),
        0,
    )
    means = {name: value for name, value in plain.state_dict().items() if not name.endswith("_rho")}
    found = dict(trained("bbb").network.state_dict())
    # Its calibration is not a weight.
    means |= {name: found[name] for name in found if name.startswith("calibrate.")}
    torch.testing.assert_close(found, means)


@pytest.mark.parametrize("uncertainty", KINDS)
def test_every_kind_of_network_is_calibrated(uncertainty):
    assert not torch.equal(trained(uncertainty).network.calibrate.scale, torch.ones(2))


class Sharpened(nn.Linear):
    """A layer with a parameter whose name ends as those of the Bayesian layers do."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.sharpness_rho = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.sharpness_rho * super().forward(x)


def test_bayes_by_backprop_keeps_every_parameter_of_a_network_of_ones_own():
    def make(shape, outputs, hidden):
        return nn.Sequential(Sharpened(16, hidden), nn.ReLU(), nn.Linear(hidden, outputs))

    draws = trained("bbb", make=make)
    assert "module.0.sharpness_rho" in draws.network.state_dict()
    assert draws.network.module[0].sharpness_rho.item() != 1


@pytest.mark.parametrize("uncertainty", ["none", *KINDS])
def test_the_bar_knows_how_many_steps_are_taken(uncertainty):
    x, labels = problem()
    steps = []
    train_uncertain(
        lambda: Symmetrized(mlp((4, 4), 2, 8), [ROT]),
        Examples(x, labels),
        BRIEF,
        0,
        uncertainty=uncertainty,
        likelihood=Categorical(),
        on_step=steps.append,
    )
    assert len(steps) == training_steps(BRIEF, len(x), uncertainty)


def test_a_network_that_overfits_is_calibrated():
    """Labels are half noise: a network that knows them by heart must not be sure of new ones."""
    with seeded(0):
        x, noise = torch.randn(400, 16), torch.rand(400) < 0.25
    y = (x[:, 0] > 0).logical_xor(noise).long()
    long = replace(BRIEF, epochs=60)
    network, _ = train_uncertain(
        lambda: Symmetrized(mlp((4, 4), 2, 50), [inv.symmetry("trivial", shape=(4, 4))]),
        Examples(x[:200], y[:200]),
        long,
        0,
        uncertainty="none",
        likelihood=Categorical(),
    )
    raw = copy.deepcopy(network)
    raw.calibrate.scale.fill_(1.0)
    with torch.no_grad():
        judged, unjudged = (Categorical().log_prob(n(x[200:]), y[200:]).mean() for n in (network, raw))
    assert float(judged) > float(unjudged) + 0.1
    assert float(judged) > -0.8


def test_drawn_weights_have_the_moments_of_q():
    with seeded(0):
        network = bayesian(mlp((2, 2), 3, 5))
        for name, value in network.named_parameters():
            if name.endswith("rho"):
                nn.init.uniform_(value, -2, 0)
    drawn = draw_weights(network, 4000, 0)
    assert set(drawn) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    sigma = nn.functional.softplus(network[0].weight_rho.detach())
    torch.testing.assert_close(drawn["0.weight"].std(0), sigma, rtol=0.1, atol=0)
    mean = network[0].weight.detach()
    assert float(((drawn["0.weight"].mean(0) - mean).abs() / sigma).max()) < 5 / 4000**0.5


def test_making_a_network_bayesian():
    network = bayesian(convnet((8, 8), 3, 4))
    kinds = {type(m) for m in network.modules()}
    assert {BayesianConv2d, BayesianLinear} <= kinds
    assert not kinds & {nn.Linear, nn.Conv2d}
    assert network(torch.rand(2, 64)).shape == (2, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"groups": 2, "bias": False},
        {"padding": 1, "padding_mode": "circular"},
        {"padding": "same", "dilation": 2},
        {"stride": (2, 1)},
    ],
    ids=str,
)
def test_gaussian_weights_surround_those_of_the_layer_whatever_its_options(options):
    with seeded(0):
        layer, x = nn.Conv2d(2, 4, (3, 2), **options), torch.rand(3, 2, 6, 6)
        plain = layer(x)
        network = bayesian(nn.Sequential(layer))
        for name, value in network.named_parameters():
            if name.endswith("rho"):
                nn.init.constant_(value, -20)
        torch.testing.assert_close(network(x), plain, atol=1e-4, rtol=1e-4)
    assert set(draw_weights(network, 2, 0)) == {"0.weight"} | ({"0.bias"} if layer.bias is not None else set())


def test_a_layer_that_is_used_twice_stays_one_layer():
    layer = nn.Linear(3, 3)
    network = bayesian(nn.Sequential(layer, nn.ReLU(), nn.Sequential(layer)))
    assert network[0] is network[2][0]
    assert isinstance(network[0], BayesianLinear)
    assert type(bayesian(nn.MultiheadAttention(4, 2)).out_proj) is type(nn.MultiheadAttention(4, 2).out_proj)


@pytest.mark.parametrize("uncertainty", KINDS)
def test_classifier_predicts_saves_loads_and_exports(uncertainty, tmp_path, brief_comparison, monkeypatch):
    monkeypatch.setattr(module, "DRAWS", 3)  # each is a part of the exported graph
    onnxruntime = pytest.importorskip("onnxruntime")
    x, y = problem()
    clf = InvariantClassifier(
        ["rot90"], (4, 4), hidden=8, n_networks=1, epochs=2, uncertainty=uncertainty, random_state=0
    ).fit(x, y)
    p = clf.predict_proba(x)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-5)
    found = clf.predict_uncertainty(x)
    np.testing.assert_allclose(found["total"], found["aleatoric"] + found["epistemic"], atol=1e-6)
    assert found["epistemic"].max() > 0
    clf.save(tmp_path / "model")
    again = InvariantClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(x), p)
    np.testing.assert_array_equal(again.predict_uncertainty(x)["epistemic"], found["epistemic"])
    clf.export(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (exported,) = session.run(None, {"x": x.reshape(-1, 4, 4).numpy()})
    np.testing.assert_allclose(exported, p, atol=1e-4)


def test_one_network_has_no_doubts_to_tell(brief_comparison):
    x, y = problem()
    clf = InvariantClassifier(["rot90"], (4, 4), hidden=4, n_networks=1, epochs=1, random_state=0).fit(x, y)
    with pytest.raises(ValueError, match="uncertainty='ensemble'"):
        clf.predict_uncertainty(x)
    with pytest.raises(ValueError, match="uncertainty 'some' is unknown"):
        InvariantClassifier(["rot90"], (4, 4), uncertainty="some").fit(x, y)


def test_second_opinion_is_in_the_verdict(annotations_unchecked):
    x, y = problem(300)
    clf = InvariantClassifier(
        ["rot90"], (4, 4), hidden=8, n_networks=1, epochs=1, second_opinion=True, random_state=0
    ).fit(x, y)
    assert clf.posterior_.second_opinion in clf.posterior_.names
    assert "Laplace's approximation" in clf.posterior_.verdict
    assert clf.posterior_.over_schemes().mean.sum() == pytest.approx(1)


@pytest.mark.parametrize("uncertainty", ["none", "ensemble", "laplace"])
def test_intervals_of_a_regressor_cover_as_often_as_they_say(uncertainty, brief_comparison):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 4)).astype(np.float32)
    y = abs(x).sum(1) + rng.normal(size=2000) * 0.5
    reg = InvariantRegressor(["sign"], n_networks=1, hidden=32, uncertainty=uncertainty, random_state=0).fit(
        x[:1000], y[:1000]
    )
    for coverage in (0.5, 0.9):
        low, high = reg.predict_interval(x[1000:], coverage)
        assert abs(((low <= y[1000:]) & (y[1000:] <= high)).mean() - coverage) < 0.07
    if uncertainty != "none":
        parts = reg.predict_uncertainty(x[1000:])
        np.testing.assert_allclose(
            parts["total"] ** 2, parts["aleatoric"] ** 2 + parts["epistemic"] ** 2, rtol=1e-5
        )
        np.testing.assert_allclose(reg.predict(x[1000:], return_std=True)[1], parts["total"], rtol=2e-2)
        far = reg.predict_uncertainty(6 + x[1000:])["epistemic"].mean()
        assert far > 2 * parts["epistemic"].mean()
    with pytest.raises(ValueError, match="no probability"):
        reg.predict_interval(x, 1.0)


def test_a_mixture_of_normals_has_the_moments_of_its_parts():
    with seeded(0):
        draws = torch.randn(4, 5, 2).double()
    combined = StudentT().combined(draws)
    mean, error = draws[..., :1], StudentT().error(draws)
    torch.testing.assert_close(combined[:, :1], mean.mean(0))
    variance = (error**2).mean(0) + mean.var(0, correction=0)
    torch.testing.assert_close(StudentT().error(combined) ** 2, variance)
    torch.testing.assert_close(StudentT().combined(draws[:1]), draws[0], atol=1e-6, rtol=1e-6)
