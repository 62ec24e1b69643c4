"""The training loop: what it learns, that it stops, and that its seed decides."""

import platform
import subprocess
import sys
from typing import get_args

import pytest
import torch
from torch import nn

import invariantnet as inv
from invariantnet._system.torch_state import seeded
from invariantnet.choices import Placement, Pool
from invariantnet.data.examples import Examples
from invariantnet.likelihoods import Categorical
from invariantnet.nn import BayesianLinear, Symmetrized, cnn, invariant_net, mlp, symmetrized
from invariantnet.nn.copies import MeanOverCopies
from invariantnet.nn.standardize import InputStatistics
from invariantnet.objectives import LogPosterior
from invariantnet.training.config import Training
from invariantnet.training.loop import log_probabilities, predict, train
from invariantnet.training.preparation import prepared

SHAPE = (4, 4)


def problem(n=400, seed=0):
    """Which half of the image is brighter: decided by half the pixels, in no way invariant to rotations."""
    x = torch.rand(n, 16, generator=torch.Generator().manual_seed(seed))
    return x, (x[:, :8].sum(1) > x[:, 8:].sum(1)).long()


def rotations():
    return inv.symmetry("rot90", shape=SHAPE)


MODELS = {
    "InvariantNet": lambda: invariant_net([rotations()], 2, 10),
    "RotNet": lambda: invariant_net([rotations()], 2, 10, scheme=(1.0, 0.0)),
    "MLP": lambda: mlp(SHAPE, 2, 10),
    "BMLP": lambda: mlp(SHAPE, 2, 10, bayesian=True),
    "CNN": lambda: cnn(SHAPE, 2, 10),
    "BCNN": lambda: cnn(SHAPE, 2, 10, bayesian=True),
}


@pytest.mark.parametrize("model", MODELS)
def test_one_loop_serves_every_model_and_is_deterministic(model):
    x, y = problem()
    config = Training(epochs=3, batch_size=64)
    state = torch.get_rng_state()
    first, history = train(MODELS[model], Examples(x, y), config, seed=1)
    assert torch.equal(torch.get_rng_state(), state), "the global generator is left alone"
    again, same = train(MODELS[model], Examples(x, y), config, seed=1)
    other, _ = train(MODELS[model], Examples(x, y), config, seed=2)
    assert history == same
    weights = [nn.utils.parameters_to_vector(n.parameters()) for n in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    terms = {"log_likelihood", "validation_log_likelihood", "validation_accuracy"}
    terms |= {"log_prior_pi"} if model == "InvariantNet" else set()
    terms |= {"minus_kl"} if model.startswith("B") else set()
    assert [set(epoch) for epoch in history.epochs] == [terms] * 3


def test_networks_learn():
    x, y = problem(2000)
    network, _ = train(MODELS["MLP"], Examples(x, y), Training(epochs=40, learning_rate=1e-2), seed=0)
    x_new, y_new = problem(500, seed=9)
    assert (log_probabilities(network, x_new).argmax(-1) == y_new).float().mean() > 0.95


def test_scheme_moves_away_from_a_symmetry_that_the_labels_contradict():
    x, y = problem(1000)
    make = lambda: invariant_net([rotations()], 2, 20, identity="full")  # noqa: E731
    _, history = train(make, Examples(x, y), Training(epochs=30, learning_rate=1e-2, patience=30), seed=0)
    assert history.scheme_names == ("rot90", "trivial")
    assert history.schemes[0] == [0.5, 0.5]
    assert len(history.schemes) == len(history.epochs) + 1
    assert history.schemes[-1][1] > 0.8


def test_early_stopping_restores_the_best_weights():
    x, y = problem(60)
    y = y[torch.randperm(60, generator=torch.Generator().manual_seed(0))]
    config = Training(epochs=200, patience=3, learning_rate=0.05, batch_size=16, validation=0.3)
    network, history = train(MODELS["MLP"], Examples(x, y), config, seed=0)
    scores = [epoch["validation_log_likelihood"] for epoch in history.epochs]
    assert len(scores) == history.best_epoch + 3 < 200
    assert max(scores) == scores[history.best_epoch - 1]
    with seeded(0):
        MODELS["MLP"]()
        held_out = torch.randperm(60)[:18]
    kept = -nn.functional.nll_loss(log_probabilities(network, x[held_out]), y[held_out])
    assert float(kept) == pytest.approx(max(scores), abs=1e-6)


def test_objective_is_the_formula():
    x, y = problem(50)
    network = nn.Sequential(*MODELS["InvariantNet"]().eval(), BayesianLinear(nn.Linear(2, 2)))
    with seeded(0), torch.no_grad():
        terms = LogPosterior(network, examples=1000).terms(x, y)
    with seeded(0), torch.no_grad():
        expected = network(x).log_softmax(-1)[torch.arange(50), y].mean()
    assert float(terms["log_likelihood"]) == pytest.approx(float(expected), abs=1e-6)
    assert float(terms["log_prior_pi"]) == pytest.approx(network[0].log_prior().item() / 1000)
    assert float(terms["minus_kl"]) == pytest.approx(-network[-1].kl().item() / 1000)


def test_stochastic_predictions_average_probabilities():
    network = MODELS["BMLP"]()
    for layer in (network[0], network[2]):
        torch.nn.init.constant_(layer.weight_rho, 0.0)
    x, _ = problem(3)
    with seeded(4):
        average = log_probabilities(network, x, samples=6).exp()
    with seeded(4), torch.no_grad():
        expected = torch.stack([network(x).softmax(-1) for _ in range(6)]).mean(0)
    torch.testing.assert_close(average, expected)
    torch.testing.assert_close(average.sum(-1), torch.ones(3))


@pytest.mark.parametrize("shape", [(28, 28), (3, 9, 7)])
@pytest.mark.parametrize("bayesian", [False, True])
def test_grey_and_coloured_images(shape, bayesian):
    x = torch.rand(2, int(torch.tensor(shape).prod()))
    assert cnn(shape, 5, bayesian=bayesian)(x).shape == (2, 5)
    assert mlp(shape, 5, bayesian=bayesian)(x).shape == (2, 5)
    group = inv.symmetry("flips", shape=shape)
    assert invariant_net([group], 5)(x).shape == (2, 5)


def test_cnn_needs_images():
    with pytest.raises(ValueError, match="use an MLP"):
        cnn((10,), 2)


def test_the_validation_split_counts_examples_by_their_weight():
    x, y = torch.randn(200, 2), torch.randint(2, (200,))
    weight = torch.where(y == 0, 2.0, 0.0)
    config = Training(epochs=30, learning_rate=0.05, validation=0.5)
    _, history = train(lambda: nn.Linear(2, 2), Examples(x, y, weight), config, 0)
    # Only class 0 counts: to always say so becomes ever better, though half of the examples say otherwise.
    assert history.best_epoch == 30


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about the allocator of Linux")
def test_steps_do_not_wait_for_new_memory():
    """In a process of its own: what was allocated before decides what is kept."""
    code = """
import resource, torch
from invariantnet import symmetry
from invariantnet.data.examples import Examples
from invariantnet.nn import Symmetrized, mlp
from invariantnet.training.config import Training
from invariantnet.training.loop import train
torch.set_num_threads(1)
pages = []
train(
    lambda: Symmetrized(mlp((28, 28), 10), [symmetry("d4", shape=(28, 28))]),
    Examples(torch.rand(256, 784), torch.zeros(256).long()), Training(epochs=40, validation=0.0), 0,
    on_step=lambda _: pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt),
)
print((pages[-1] - pages[-21]) / 20)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) < 100, "arrays of eight megabytes are 2,000 pages"


def test_weights_are_laid_anew_only_while_they_are_trained():
    """Moved weights lie as transposes then; but not where another layer uses the same memory."""
    x, y = problem()
    for tied in (False, True):
        made, seen = mlp(SHAPE, 2, 10), []
        if tied:
            made = nn.Sequential(made[0], nn.ReLU(), nn.Linear(10, 16, bias=False), nn.ReLU(), nn.Linear(16, 2))
            made[2].weight = nn.Parameter(made[0].weight.data.mT)
        network, _ = train(
            lambda made=made: Symmetrized(made, [rotations(), inv.symmetry("hflip", shape=SHAPE)]),
            Examples(x, y),
            Training(epochs=2),
            0,
            on_step=lambda n, seen=seen: seen.append(n.module[0].weight.is_contiguous()),
        )
        assert set(seen) == {tied}
        assert network.module[0].weight.is_contiguous()
        if tied:
            torch.testing.assert_close(made[2].weight, made[0].weight.mT, rtol=0, atol=0)


@pytest.mark.parametrize("units", [1, 4])
def test_no_inputs_give_no_outputs(units):
    network = Symmetrized(mlp(SHAPE, 3, 10, units=units), [rotations()], pool="max")
    assert log_probabilities(network, torch.empty(0, 16)).shape == (0, 3)


def test_what_is_not_learned_is_computed_once():
    """Heads on copies are given those of their symmetry, in their units, once and not in every step."""
    x, y = problem(60)
    units = InputStatistics.of(x.reshape(-1, 4), [], (4,)).pooled()
    calls = []
    units.register_forward_hook(lambda *_: calls.append(1))

    def on_copies():
        return MeanOverCopies(nn.Linear(4, 2), 4, (0, 2), units, probabilities=True)

    config = Training(epochs=3, batch_size=16, validation=0.0)
    network, _ = train(on_copies, Examples(x, y), config, seed=0)
    assert len(calls) == 1
    whole, _ = train(lambda: nn.Sequential(on_copies()), Examples(x, y), config, seed=0)
    torch.testing.assert_close(
        predict(network, x, Categorical()), predict(whole, x, Categorical()), rtol=0, atol=0
    )


@pytest.mark.parametrize("placement", get_args(Placement))
@pytest.mark.parametrize("pool", get_args(Pool))
def test_copies_that_are_made_once_give_the_same_network(monkeypatch, placement, pool):
    """Copies are made before training where memory allows it, and else in every step."""
    if pool == "max" and placement != "features":
        return
    x, y = problem(60)
    calls = []
    units = InputStatistics.of(x, [rotations()], SHAPE).for_symmetry(rotations())
    units.register_forward_hook(lambda *_: calls.append(1))

    def trained():
        def make():
            return Symmetrized(mlp(SHAPE, 2, 10), [rotations()], placement, pool, standardize=units)

        calls.clear()
        return train(make, Examples(x, y), Training(epochs=3, batch_size=16, validation=0.0), seed=0)[0]

    once = trained()
    assert len(calls) == 1
    monkeypatch.setattr(symmetrized, "NUMBERS_AT_ONCE", 512)
    often = trained()
    assert len(calls) > 3
    torch.testing.assert_close(once(x), often(x))


def test_the_orbit_sums_of_the_paper_are_computed_once():
    x, y = problem(20)
    network = MODELS["InvariantNet"]()
    rest, sums = prepared(network, Examples(x, y))
    assert rest is not network
    with seeded(0), torch.no_grad():
        expected = network.eval()(x)
    torch.testing.assert_close(rest.eval()(sums.x).detach(), expected)
