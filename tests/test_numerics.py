"""Extremes: priors, temperatures, logits, evidence, units. Everything stays finite, or is refused."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet.data.examples import Examples
from invariantnet.inference.bootstrap import bootstrap_probabilities
from invariantnet.likelihoods import Categorical
from invariantnet.nn import InvariantLinear, Symmetrized, convnet, mlp
from invariantnet.priors import Dirichlet, log_prior_of
from invariantnet.training.config import Training
from invariantnet.training.loop import train

SHAPE = (4, 4)
GROUPS = [inv.symmetry(name, shape=SHAPE) for name in ("trivial", "rot90", "flips")]
X = torch.rand(32, 16, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0.5).long()
TINY = {"hidden": 4, "n_networks": 1, "epochs": 1, "random_state": 0}


@pytest.mark.parametrize("alpha", [[1e-300, 1e300], [1e308, 1e308], [5e-324, 1.0], 1e308, 1e-300])
def test_extreme_priors_of_hypotheses_stay_finite_and_sum_to_one(alpha):
    logs = log_prior_of(alpha, 2)
    assert np.isfinite(logs).all()
    assert np.exp(logs).sum() == pytest.approx(1)


@pytest.mark.parametrize("size", [1e-12, 1e3, 1e12, 1e300])
def test_extreme_evidence_gives_probabilities(size):
    rng = np.random.default_rng(0)
    p = bootstrap_probabilities(-size * rng.random((3, 2, 20)), log_prior_of([1e-300, 1.0, 1e300], 3), seed=0)
    assert p.sum() == pytest.approx(1)
    assert (p >= 0).all()


@pytest.mark.parametrize("alpha", [1e-30, 1e-3, 1e3, 1e30])
@pytest.mark.parametrize("parametrisation", ["simplex", "logits"])
def test_extreme_dirichlet_densities_are_numbers(alpha, parametrisation):
    prior = Dirichlet((alpha, alpha), parametrisation)
    for logits in ([0.0, 0.0], [80.0, -80.0]):
        value = prior.log_density(torch.tensor(logits, dtype=torch.float64).log_softmax(0))
        assert bool(value.isfinite())


@pytest.mark.parametrize("alpha", [1e31, 1e-31, float("inf"), float("nan"), 0.0, -1.0])
def test_dirichlet_parameters_beyond_single_precision_are_refused(alpha):
    with pytest.raises(ValueError, match="no Dirichlet parameter"):
        Dirichlet((alpha, 1.0))


@pytest.mark.parametrize("temperature", [1e-6, 1e-2, 1e6])
@pytest.mark.parametrize("logit", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("hard", [False, True])
def test_extreme_temperatures_and_logits(temperature, logit, hard):
    layer = InvariantLinear(GROUPS[1:], 5, temperature=temperature, hard=hard, prior=2.0)
    with torch.no_grad():
        layer.logits[0] = logit
    output = layer(X)
    output.square().mean().backward()
    assert bool(output.isfinite().all())
    for parameter in layer.parameters():
        assert bool(parameter.grad.isfinite().all())


@pytest.mark.parametrize("temperature", [0.0, -1.0, 1e-30, float("inf"), float("nan")])
def test_temperatures_that_cannot_be_are_refused(temperature):
    with pytest.raises(ValueError, match="the paper uses 1"):
        InvariantLinear(GROUPS[1:], 5, temperature=temperature)


@pytest.mark.parametrize("placement", ["weights", "features", "outputs"])
@pytest.mark.parametrize("logit", [1e4, -1e4])
def test_extreme_probabilities_of_a_mixture(placement, logit):
    network = Symmetrized(mlp(SHAPE, 3, 4), GROUPS, placement)
    with torch.no_grad():
        network.logits[1] = logit
    output = network(X)
    output.log_softmax(-1)[:, 0].mean().backward()
    assert bool(output.isfinite().all())
    assert network.probabilities.sum() == pytest.approx(1)
    for parameter in network.parameters():
        assert parameter.grad is None or bool(parameter.grad.isfinite().all())


@pytest.mark.parametrize("scale", [1e-12, 1e-30, 1e12, 1e18])
def test_units_of_inputs_and_targets(scale, brief_comparison):
    x = X.numpy() * np.float32(scale)
    reg = InvariantRegressor(["sign"], **TINY).fit(x, (X[:, 0] * scale).numpy())
    assert np.isfinite(reg.predict(x)).all()
    assert np.isfinite(reg.posterior_.log_evidence).all()


def test_one_number_that_is_far_from_the_others(brief_comparison):
    x = X.numpy().copy()
    x[3, 5] = 1e20
    clf = InvariantClassifier(["hflip"], SHAPE, **TINY).fit(x, Y.numpy())
    assert np.isfinite(clf.predict_proba(x)).all()
    assert np.isfinite(clf.posterior_.probabilities).all()


SHORT = [torch.float16, torch.bfloat16]
NETWORKS = {
    "weights": lambda: Symmetrized(mlp(SHAPE, 3, 8), [GROUPS[1]], "weights"),
    "features": lambda: Symmetrized(mlp(SHAPE, 3, 8), [GROUPS[1]], "features"),
    "maximum": lambda: Symmetrized(mlp(SHAPE, 3, 8), [GROUPS[1]], "features", "max"),
    "outputs": lambda: Symmetrized(mlp(SHAPE, 3, 8), [GROUPS[1]], "outputs"),
    "convolutions": lambda: Symmetrized(convnet(SHAPE, 3, 8), [GROUPS[1]], "features"),
    "the printed layer": lambda: InvariantLinear(GROUPS[1:2], 3, scheme=(1.0, 0.0)),
}


def tolerance(dtype):
    """A few roundings, of outputs of order one."""
    return 8 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [*SHORT, torch.float64])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_in_16_bits_are_invariant_and_round(name, dtype):
    torch.manual_seed(0)
    network = NETWORKS[name]().eval()
    short = copy.deepcopy(network).to(dtype)
    assert next(short.parameters()).data_ptr() != next(network.parameters()).data_ptr()
    output, x = network(X), X.to(dtype)
    assert short(x).dtype == dtype
    error = tolerance(dtype) if dtype in SHORT else 1e-6
    assert torch.allclose(short(x).float(), output, atol=error)
    for g in range(4):
        assert torch.allclose(short(GROUPS[1].act(x)[:, g]), short(x), atol=tolerance(dtype))
    short.train()(x).float().square().mean().backward()
    assert all(bool(p.grad.isfinite().all()) for p in short.parameters() if p.requires_grad)
    if name not in ("outputs", "convolutions"):
        assert torch.allclose(network.fold().to(dtype)(x).float(), output, atol=error)


@pytest.mark.parametrize("dtype", SHORT)
def test_an_estimator_whose_network_is_in_16_bits(dtype, tmp_path, brief_comparison):
    x, y = X.numpy(), Y.numpy()
    np.save(tmp_path / "x.npy", x)
    clf = InvariantClassifier(["hflip"], SHAPE, uncertainty="ensemble", **TINY).fit(x, y)
    p = clf.predict_proba(x)
    clf.network_.to(dtype)
    short = clf.predict_proba(x)
    np.testing.assert_allclose(short, p, atol=tolerance(dtype))
    np.testing.assert_allclose(short.sum(1), 1, atol=1e-6)
    np.testing.assert_array_equal(clf.predict_proba(np.load(tmp_path / "x.npy", mmap_mode="r")), short)
    assert clf.predict_uncertainty(x)["total"].shape == (len(x),)
    clf.save(tmp_path / "run")
    np.testing.assert_allclose(
        InvariantClassifier.load(tmp_path / "run").predict_proba(x), p, atol=tolerance(dtype)
    )
    reg = InvariantRegressor(["hflip"], SHAPE, **TINY).fit(x, x[:, 0])
    mean = reg.predict(x)
    reg.network_.to(dtype)
    np.testing.assert_allclose(reg.predict(x), mean, atol=tolerance(dtype))


@pytest.mark.parametrize("uncertainty", ["none", "laplace"])
def test_numbers_by_means_of_inputs(uncertainty, brief_comparison):
    """Their network holds a sparse matrix, and is copied to predict in double precision."""
    make = {"placement": "weights", "uncertainty": uncertainty, "tolerance": 1e9}
    reg = InvariantRegressor(["hflip"], SHAPE, **make, **TINY).fit(X.numpy(), X[:, 0].numpy())
    mirrored = X.reshape(-1, 4, 4).flip(-1).reshape(-1, 16).numpy()
    np.testing.assert_allclose(reg.predict(mirrored), reg.predict(X.numpy()), rtol=1e-6)


def test_arrays_in_16_bits_are_learned_from(brief_comparison):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = X.numpy().astype(dtype)
        clf, same = (
            InvariantClassifier(["hflip"], SHAPE, **TINY).fit(values, Y) for values in (x, x.astype(np.float32))
        )
        np.testing.assert_array_equal(clf.predict_proba(x), same.predict_proba(x.astype(np.float32)))


@pytest.mark.parametrize("values", [X.numpy() + 1j, X + 1j, (X + 1j).tolist()])
def test_complex_numbers_are_refused_in_a_line(values):
    with pytest.raises(ValueError, match=r"^Complex data not supported: pass real numbers[^\n]*$"):
        InvariantClassifier(["hflip"], SHAPE, **TINY).fit(values, Y)


@pytest.mark.parametrize(("classes", "copies"), [(2, 4), (1000, 3)])
def test_two_classes_or_very_many(classes, copies, brief_comparison):
    rng = np.random.default_rng(0)
    y = np.arange(classes * copies) % classes
    x = rng.random((classes, 16))[y] + rng.normal(0, 0.01, (len(y), 16))
    clf = InvariantClassifier(["hflip"], SHAPE, **TINY).fit(x, y)
    p = clf.predict_proba(x)
    assert p.shape == (len(x), classes)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-5)
    assert np.isfinite(clf.posterior_.log_evidence).all()


def test_the_likelihood_of_4000_classes():
    """Logits so far apart that most probabilities are below the smallest number."""
    output = torch.linspace(-1e4, 1e4, 4000).repeat(3, 1).requires_grad_()
    likelihood = Categorical()
    y = torch.tensor([0, 2000, 3999])
    logs = likelihood.log_prob(output, y)
    assert logs.tolist() == pytest.approx([-2e4, -1e4, 0], abs=20)
    logs.sum().backward()
    assert bool(output.grad.isfinite().all())
    roots = likelihood.curvature_roots(output.detach())
    assert bool(roots.isfinite().all())
    assert roots.shape[1:] == (3, 4000)


class Exploding(nn.Module):
    """Finite for a while."""

    def __init__(self, steps):
        super().__init__()
        self.linear, self.left = nn.Linear(16, 2), steps

    def forward(self, x):
        self.left -= self.training
        return self.linear(x) / (self.left > 0)


def test_a_loss_that_is_not_finite_ends_the_training():
    network, history = train(
        lambda: Exploding(5), Examples(X, Y), Training(epochs=50, batch_size=32, validation=0.0), seed=0
    )
    assert len(history.epochs) == 5
    assert not np.isfinite(history.epochs[-1]["log_likelihood"])
    assert not all(bool(p.isfinite().all()) for p in network.parameters())


def test_a_final_network_that_diverges_is_an_error():
    def backbone(shape, outputs):
        return nn.Sequential(nn.Flatten(), Exploding(3))

    clf = InvariantClassifier(["hflip"], SHAPE, backbone=backbone, placement="outputs", **{**TINY, "epochs": None})
    with (
        pytest.warns(RuntimeWarning, match="diverged on 16 examples, so it falls behind"),
        pytest.raises(ValueError, match="training diverged: look for extreme values"),
    ):
        clf.fit(X, Y)


def test_the_number_of_threads_is_in_the_record(fitted):
    from invariantnet.estimator.persistence import read_model_record

    assert read_model_record(fitted).learned.threads == 1
