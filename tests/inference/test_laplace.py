"""Laplace's approximation against exact answers."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import invariantnet as inv
from invariantnet._system.torch_state import seeded
from invariantnet.data.examples import Examples
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.laplace import (
    LayerPosterior,
    draw_last_layer,
    laplace_evidence,
    layers_of,
    log_marginal_likelihood,
    posterior,
)
from invariantnet.inference.models import Model
from invariantnet.likelihoods import Categorical, StudentT
from invariantnet.nn import Symmetrized, convnet, mlp
from invariantnet.training.config import Training


def dense_fisher(network, layer, x, likelihood):
    """The Fisher information of one layer's weights and biases, by the Jacobian of every example."""
    parameters = [layer.weight, layer.bias]
    total = 0
    for i in range(len(x)):
        output = network(x[i : i + 1])
        rows = []
        for c in range(output.shape[1]):
            weight, bias = torch.autograd.grad(output[0, c], parameters, retain_graph=True)
            rows.append(torch.cat([weight.flatten(1), bias[:, None]], dim=1).flatten())
        jacobian = torch.stack(rows)
        roots = likelihood.curvature_roots(output.detach())[:, 0]
        total = total + (roots @ jacobian).mT @ (roots @ jacobian)
    return total


@pytest.mark.parametrize("likelihood", [Categorical(), StudentT()], ids=["classes", "numbers"])
def test_factors_are_exact_where_all_examples_have_the_same_curvature(likelihood):
    """With zero weights every output is alike, so A ⊗ B is the Fisher information itself."""
    with seeded(0):
        network = nn.Linear(3, 2).double()
        x = torch.randn(40, 3).double()
    nn.init.zeros_(network.weight)
    found = posterior(network, x, likelihood)[""]
    A = found.input_vectors @ torch.diag(found.input_values) @ found.input_vectors.mT
    B = found.output_vectors @ torch.diag(found.output_values) @ found.output_vectors.mT
    exact = dense_fisher(network, network, x, likelihood)
    torch.testing.assert_close(torch.kron(B, A), exact, atol=1e-6, rtol=1e-4)


def test_roots_give_the_fisher_information_of_the_outputs():
    with seeded(1):
        logits = torch.randn(5, 4).double()
    p = logits.softmax(-1)
    roots = Categorical().curvature_roots(logits)
    exact = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    torch.testing.assert_close(torch.einsum("rni,rnj->nij", roots, roots), exact)
    with seeded(2):
        many = torch.randn(3000, 30)
    p = many.softmax(-1)
    roots = Categorical().curvature_roots(many)
    trace = float(roots.square().sum(-1).sum(0).mean())
    assert trace == pytest.approx(float((1 - p.square().sum(-1)).mean()), rel=0.05)


def test_evidence_of_a_gaussian_posterior_is_exact():
    """log ∫ exp(−½ (θ−m)ᵀ(H)(θ−m)) N(θ; 0, 1/δ) dθ, for H = A ⊗ B, up to the quadratic form of the prior at m."""
    with seeded(3):
        root_a, root_b, mean = (torch.randn(4, 4).double(), torch.randn(3, 3).double(), torch.randn(3, 4).double())
    A, B = root_a @ root_a.mT, root_b @ root_b.mT
    found = LayerPosterior.of(mean, A, B)
    H, d = torch.kron(B, A), found.precision
    exact = 0.5 * (
        12 * math.log(d)
        - d * float(mean.square().sum())
        - float(torch.logdet(H + d * torch.eye(12, dtype=torch.float64)))
    )
    assert found.log_occam == pytest.approx(exact, rel=1e-9)
    for factor in (0.9, 1.1):
        other = LayerPosterior(
            mean,
            found.input_values,
            found.input_vectors,
            found.output_values,
            found.output_vectors,
            factor * d,
        )
        assert other.log_occam < found.log_occam


def test_draws_have_the_covariance_of_the_posterior():
    with seeded(4):
        root_a, root_b, mean = (torch.randn(3, 3).double(), torch.randn(2, 2).double(), torch.randn(2, 3).double())
    found = LayerPosterior.of(mean, root_a @ root_a.mT, root_b @ root_b.mT)
    H = torch.kron(root_b @ root_b.mT, root_a @ root_a.mT) + found.precision * torch.eye(6, dtype=torch.float64)
    draws = found.draw(40_000, torch.Generator().manual_seed(0)).flatten(1)
    exact = torch.linalg.inv(H)
    torch.testing.assert_close(torch.cov(draws.mT), exact, atol=0.05 * float(exact.abs().max()), rtol=0.1)
    torch.testing.assert_close(draws.mean(0), mean.flatten(), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("placement", ["weights", "features", "outputs"])
@pytest.mark.parametrize("make", [mlp, convnet], ids=["mlp", "cnn"])
def test_every_placement_and_backbone(make, placement):
    if make is convnet and placement == "weights":
        return
    group = inv.symmetry("rot90", shape=(4, 4))
    with seeded(5):
        network = Symmetrized(make((4, 4), 3, 5), [group], placement).eval()
        x, y = torch.rand(20, 16), torch.randint(3, (20,))
    before = network(x)
    assert math.isfinite(log_marginal_likelihood(network, Examples(x, y), Categorical()))
    assert set(posterior(network, x, Categorical())) == set(layers_of(network, x))
    drawn = draw_last_layer(network, x, Categorical(), 6, 0)
    assert {len(values) for values in drawn.values()} == {6}
    torch.testing.assert_close(network(x), before)  # no hook is left behind


def test_a_hooked_layer_is_called_on_every_copy():
    """A hook makes the network call its first layer on every copy; the output must equal that of the fast path."""
    group = inv.symmetry("d4", shape=(3, 3))
    with seeded(6):
        network = Symmetrized(mlp((3, 3), 2, 4), [group]).double()
        x = torch.rand(7, 9).double()
    fast, seen = network(x), []
    hook = network.module[0].register_forward_hook(lambda *call: seen.append(call[1][0].shape))
    torch.testing.assert_close(network(x), fast)
    hook.remove()
    assert seen == [(7 * 8, 9)]


def test_laplace_evidence_prefers_the_symmetry_that_is_there():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(400, 9)).astype(np.float32))
    names = ("trivial", "rot90")
    corners = x[:, [0, 2, 6, 8]]
    training = Training(epochs=40, batch_size=64, learning_rate=1e-2, validation=0.0, schedule="one-cycle")
    model = Model("mlp", training, training)

    def favourite(y):
        found = laplace_evidence(
            lambda h: Symmetrized(mlp((3, 3), 2, 16), [h.symmetry]),
            [Hypothesis(inv.symmetry(name, shape=(3, 3)), model) for name in names],
            Examples(x, y.long()),
            likelihood=Categorical(),
        )
        return names[int(np.argmax(found))]

    assert favourite(corners.abs().sum(1) > 3.2) == "rot90"
    assert favourite(corners[:, 0] > 0) == "trivial"


def test_a_layer_without_bias_has_no_column_for_it():
    with seeded(4):
        network = nn.Linear(3, 2, bias=False)
        x = torch.randn(40, 3)
    assert posterior(network, x, Categorical())[""].mean.shape == (2, 3)


def convolution(**options):
    with seeded(7):
        return nn.Sequential(
            nn.Unflatten(1, (2, 4, 4)), nn.Conv2d(2, 4, 3, **options), nn.Flatten(), nn.LazyLinear(2)
        )


def evidence_of(network, x):
    return log_marginal_likelihood(network, Examples(x, torch.arange(len(x)) % 2), Categorical())


@pytest.mark.parametrize("mode", ["zeros", "circular", "reflect"])
def test_the_inputs_of_a_convolution_are_its_padded_patches(mode):
    with seeded(8):
        x = torch.randn(30, 32)
        named, counted = convolution(padding="same", padding_mode=mode), convolution(padding=1, padding_mode=mode)
    named(x), counted(x)
    counted.load_state_dict(named.state_dict())
    assert evidence_of(named, x) == pytest.approx(evidence_of(counted, x))
    images = x.unflatten(1, (2, 4, 4))
    padded = nn.functional.pad(images, (1, 1, 1, 1), mode="constant" if mode == "zeros" else mode)
    valid = nn.Sequential(nn.Unflatten(1, (2, 6, 6)), *list(named)[1:])
    before = evidence_of(named, x)
    valid[1].padding, valid[1].padding_mode, valid[1]._reversed_padding_repeated_twice = 0, "zeros", [0] * 4
    assert before == pytest.approx(evidence_of(valid, padded.flatten(1)))


def test_a_convolution_over_the_whole_image_is_a_linear_layer():
    with seeded(8):
        x, layer, head = torch.randn(30, 32), nn.Linear(32, 3), nn.Linear(3, 2)
    whole = nn.Conv2d(2, 3, 4)
    whole.load_state_dict({"weight": layer.weight.detach().reshape(3, 2, 4, 4), "bias": layer.bias.detach()})
    plain = nn.Sequential(layer, nn.ReLU(), head)
    convolved = nn.Sequential(nn.Unflatten(1, (2, 4, 4)), whole, nn.ReLU(), nn.Flatten(), head)
    assert evidence_of(convolved, x) == pytest.approx(evidence_of(plain, x))


def test_convolutions_in_groups_have_an_evidence():
    with seeded(9):
        network, x = convolution(groups=2), torch.randn(30, 32)
    network(x)
    assert math.isfinite(evidence_of(network, x))


def test_draws_of_the_last_layer_have_its_weights_as_their_mean():
    with seeded(0):
        network = mlp((4, 4), 3, 8)
        x = torch.rand(200, 16)
    head = network[-1]
    drawn = draw_last_layer(network, x, Categorical(), 4000, 0)
    assert set(drawn) == {"2.weight", "2.bias"}
    for name, own in (("2.weight", head.weight), ("2.bias", head.bias)):
        error = drawn[name].std(0) / 4000**0.5
        assert ((drawn[name].mean(0) - own).abs() < 5 * error).all()
    assert not torch.equal(drawn["2.bias"][0], drawn["2.bias"][1])


@pytest.mark.parametrize(
    "network",
    [
        nn.Sequential(nn.Linear(16, 3, bias=False)),
        nn.Sequential(nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 3, 4), nn.Flatten()),
    ],
    ids=["no bias", "convolution"],
)
def test_a_network_without_a_last_linear_layer_is_refused(network):
    with pytest.raises(ValueError, match=r"ends with nn\.Linear"):
        draw_last_layer(network, torch.rand(5, 16), Categorical(), 2, 0)
