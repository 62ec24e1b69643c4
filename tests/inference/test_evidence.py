"""By evidence and by held-out data: the symmetry that is there is found."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import FAST, SHAPE, candidates, corner_problem, make_network
from torch import nn

import invariantnet as inv
from invariantnet.data.examples import Examples
from invariantnet.inference import Evidence, HeldOut, fit_heldout, gather_evidence
from invariantnet.inference.models import DECAYED
from invariantnet.inference.scoring import Scorer
from invariantnet.likelihoods import Categorical, Gaussian
from invariantnet.nn import Symmetrized, mlp
from invariantnet.training.config import Training
from invariantnet.training.loop import train


def test_evidence_is_the_sum_of_predictions_from_the_past():
    """A slow reference: train, predict the next block, sum; for every hypothesis and seed."""
    x, y = corner_problem(170, 0, symmetric=True)
    groups = candidates("rot90")
    config = Evidence(n_networks=2, sure=0.0, first_block=40, growth=2.0, margin=np.inf)
    posterior = gather_evidence(make_network, groups, Examples(x, y), config=config, seed=3)
    order = torch.randperm(170, generator=torch.Generator().manual_seed(3))
    x, y = x[order], y[order]
    for k, group in enumerate(groups):
        labels = []
        for s in range(2):
            of_seed = []
            for block, (start, end) in enumerate([(40, 80), (80, 170)]):
                seed = int(np.random.SeedSequence([3, s, block]).generate_state(1)[0])
                network, _ = train(
                    lambda g=group: make_network(g), Examples(x[:start], y[:start]), DECAYED.training, seed
                )
                with torch.no_grad():
                    p = network(x[start:end]).softmax(-1)[torch.arange(end - start), y[start:end]]
                of_seed.append(0.99 * p.double() + 0.005)
            labels.append(torch.cat(of_seed))
        both = torch.stack(labels)
        assert posterior.log_evidence[k] == pytest.approx(float(both.mean(0).log().sum()), rel=1e-5)
        assert posterior.log_evidence_spread[k] == pytest.approx(float(both.log().sum(1).std()), rel=1e-3)
    assert posterior.examples == 130
    assert [stage.examples for stage in posterior.race] == [40, 130]


@pytest.mark.parametrize("symmetric", [True, False])
def test_posterior_names_the_symmetry_that_is_there(symmetric):
    x, y = corner_problem(500, 1, symmetric=symmetric)
    posterior = gather_evidence(make_network, candidates("rot90"), Examples(x, y), config=FAST)
    assert posterior.favourite == ("rot90" if symmetric else "trivial")
    assert max(posterior.probabilities) > 0.9
    assert sum(posterior.probabilities) == pytest.approx(1)
    assert max(posterior.log_bayes_factors) == 0


def test_same_seed_same_posterior_whatever_the_order_of_candidates_and_the_number_of_processes():
    x, y = corner_problem(80, 2, symmetric=True)
    config = Evidence(n_networks=1, first_block=40)

    def posterior(*names, seed=5, n_jobs=1):
        return gather_evidence(
            make_network, candidates(*names), Examples(x, y), config=replace(config, n_jobs=n_jobs), seed=seed
        )

    first = posterior("rot90", "hflip")
    assert first == posterior("hflip", "rot90") == posterior("rot90", "hflip", n_jobs=2)
    assert first != posterior("rot90", "hflip", seed=6)


@pytest.mark.parametrize("variant", ["permuted", "rotated", "flipped", "plain"])
def test_racing_never_changes_the_winner(variant):
    data = inv.datasets.load(f"digits:{variant}", seed=0)
    x, y = torch.from_numpy(data.x_train[:600]), torch.from_numpy(data.y_train[:600])
    groups = candidates("rot90", "flips", shape=(8, 8))

    def make(group):
        return Symmetrized(mlp((8, 8), 10, 32), [group])

    raced = gather_evidence(make, groups, Examples(x, y), config=Evidence(n_networks=1))
    patient = gather_evidence(make, groups, Examples(x, y), config=Evidence(n_networks=1, margin=np.inf))
    truth = {"permuted": "trivial", "rotated": "rot90", "flipped": "flips", "plain": "trivial"}[variant]
    assert raced.favourite == patient.favourite == truth
    assert not patient.dropped
    for name in raced.dropped:
        assert raced.probabilities[raced.names.index(name)] < 0.05


@pytest.mark.parametrize("weighted", [False, True])
def test_guessing_is_what_the_labels_alone_foretell(weighted):
    """Blocks of 40, 40 and 80 labels, each predicted by the frequencies of those before it."""
    x, y = corner_problem(160, 0, symmetric=True)
    weight = 2 * torch.rand(160) if weighted else None
    config = Evidence(n_networks=1, first_block=40, growth=2.0, margin=np.inf)
    posterior = gather_evidence(make_network, candidates("rot90"), Examples(x, y, weight), config=config)
    order = torch.randperm(160, generator=torch.Generator().manual_seed(0))
    labels, counts = y[order].tolist(), [1.0] * 160 if weight is None else weight[order].tolist()
    expected = 0.0
    for i in range(40, 160):
        past = 40 if i < 80 else 80
        same = sum(c for label, c in zip(labels[:past], counts[:past], strict=True) if label == labels[i])
        p = (same + 0.5) / (sum(counts[:past]) + 1)
        expected += counts[i] * math.log((1 - config.doubt) * p + config.doubt / 2)
    assert posterior.guessing == pytest.approx(expected)
    assert max(posterior.log_evidence) > posterior.guessing
    assert "guessing" not in posterior.verdict


def test_labels_that_have_nothing_to_do_with_the_inputs_are_called_that():
    x, _ = corner_problem(200, 0, symmetric=True)
    noise = torch.randint(2, (200,), generator=torch.Generator().manual_seed(1))
    assert (
        "guessing" in gather_evidence(make_network, candidates("rot90"), Examples(x, noise), config=FAST).verdict
    )


def test_numbers_are_guessed_by_their_mean_and_spread():
    past, weight = torch.tensor([0.0, 4.0, 9.0]), torch.tensor([1.0, 1.0, 0.0])
    y = torch.tensor([2.0, 4.0])
    found = Gaussian().log_prob(Gaussian().guess(past, weight, y), y.double())
    torch.testing.assert_close(found.float(), torch.distributions.Normal(2.0, 2.0).log_prob(y))


def test_a_class_that_was_never_seen_is_guessed_too():
    output = Categorical().guess(torch.tensor([0, 0, 1]), torch.ones(3), torch.tensor([2, 0]))
    assert output.softmax(-1).tolist() == [pytest.approx([2.5 / 4.5, 1.5 / 4.5, 0.5 / 4.5])] * 2


def test_a_surprise_costs_one_who_guesses_no_more_than_a_network():
    """All targets before are equal, and one that comes is not."""
    y = torch.zeros(80)
    y[60:] = 1.0
    config = Evidence(n_networks=1, first_block=40)
    posterior = gather_evidence(
        lambda group: Symmetrized(mlp(SHAPE, 2, 4), [group]),
        candidates("rot90"),
        Examples(torch.rand(80, 9), y),
        config=config,
        likelihood=Gaussian(),
    )
    assert posterior.guessing > 40 * (math.log(config.doubt) - 3)


def test_prices_and_tolerance():
    x, y = corner_problem(500, 1, symmetric=False)
    posterior = gather_evidence(
        make_network, candidates("rot90"), Examples(x, y), config=Evidence(n_networks=1, margin=np.inf)
    )
    free, turned = posterior.prices
    assert (free.name, turned.name, turned.order) == ("trivial", "rot90", 4)
    assert free.nats_per_example == 0 < turned.nats_per_example
    assert turned.accuracy["trivial"] == pytest.approx(turned.accuracy["rot90"]), (
        "an invariant network does not notice"
    )
    assert free.accuracy["rot90"] < free.accuracy["trivial"]
    assert posterior.within(0.0) == "trivial"
    assert posterior.within(turned.nats_per_example + 0.01) == "rot90"
    assert posterior.within(turned.nats_per_example / 2) == "trivial"


def scorer(doubt):
    return Scorer(make_network, Categorical(), DECAYED.training, doubt)


def test_without_doubt_a_prediction_counts_as_it_is():
    output = torch.tensor([[0.25, 0.75]]).log()
    assert scorer(0.0).log_likelihood(output, torch.tensor([1])) == pytest.approx(np.log(0.75))


def test_doubt_bounds_the_price_of_a_surprise():
    sure = nn.Linear(1, 4)
    nn.init.constant_(sure.weight, 0)
    sure.bias.data = torch.tensor([1000.0, 0, 0, 0])
    values = scorer(0.01).log_likelihood(sure(torch.zeros(2, 1)).detach(), torch.tensor([0, 1]))
    np.testing.assert_allclose(values, np.log([0.9925, 0.0025]))


@pytest.mark.parametrize("kind", ["point", "dirichlet"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_heldout_moves_towards_the_symmetry_that_is_there(kind, symmetric):
    x, y = corner_problem(1500, 3, symmetric=symmetric)
    groups = candidates("rot90")
    config = HeldOut(posterior=kind, share=0.3)
    result = fit_heldout(lambda: mlp(SHAPE, 2, 16), groups, Examples(x, y), config=config)
    right = int(symmetric)
    assert result.probabilities[right] > 0.6
    assert (result.concentration is None) == (kind == "point")
    with pytest.raises(ValueError, match="no scheme per feature"):
        result.over_schemes()
    if kind == "dirichlet":
        torch.testing.assert_close(result.concentration / result.concentration.sum(), result.probabilities)


def test_a_network_that_diverges_loses_and_the_others_go_on():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(2))

        def forward(self, x):
            return (x[:, :2] + self.w) * torch.nan

    def make(group):
        return Broken() if group.name == "rot90" else make_network(group)

    x, y = corner_problem(300, 1, symmetric=True)
    with pytest.warns(RuntimeWarning, match="a network of rot90 diverged on 18 examples"):
        posterior = gather_evidence(make, candidates("rot90"), Examples(x, y), config=Evidence(n_networks=1))
    assert posterior.favourite == "trivial"
    assert np.isfinite(posterior.log_evidence).all()


def test_every_feature_with_a_scheme_of_its_own_against_a_plain_loop():
    groups = candidates("rot90", "hflip")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Symmetrized(mlp(SHAPE, 2, 5), groups).double()
        x, r = torch.rand(4, 9).double(), torch.rand(5, len(groups)).double().softmax(-1)
    first, activation, head = network.module
    each = [activation(first(g.act(x))).mean(1) for g in groups]
    features = sum(r[:, k] * value for k, value in enumerate(each))
    torch.testing.assert_close(network(x, r), head(features))
    same = r[:1].expand(5, -1)
    torch.testing.assert_close(network(x, same), network(x, r[0]))


def test_features_have_schemes_of_their_own_only_where_features_are_averaged():
    x, y = corner_problem(60, 1, symmetric=True)
    with pytest.raises(ValueError, match="needs placement='features'"):
        fit_heldout(
            lambda: mlp(SHAPE, 2, 4),
            candidates("rot90"),
            Examples(x, y),
            config=HeldOut(posterior="neurons"),
            placement="outputs",
        )


def test_a_prior_for_each_hypothesis_moves_what_is_learned_on_held_out_data():
    x, y = corner_problem(60, 1, symmetric=True)
    first, second = (
        fit_heldout(
            lambda: mlp(SHAPE, 2, 4), candidates("rot90"), Examples(x, y), config=HeldOut(), alpha=alpha
        ).probabilities
        for alpha in ([100.0, 1.0], [1.0, 100.0])
    )
    assert first[0] > 0.9
    assert second[1] > 0.9


@pytest.mark.parametrize("symmetric", [True, False])
def test_features_choose_the_scheme_that_is_there(symmetric):
    x, y = corner_problem(600, 1, symmetric=symmetric)
    groups = candidates("rot90")
    config = HeldOut(posterior="neurons")
    found = fit_heldout(lambda: mlp(SHAPE, 2, 16), groups, Examples(x, y), config=config)
    assert found.responsibilities.shape == (16, 2)
    torch.testing.assert_close(found.concentration, 1 + found.responsibilities.sum(0))
    shares = found.concentration / found.concentration.sum()
    np.testing.assert_allclose(found.over_schemes().mean, shares, atol=0.02)
    truth = [g.name for g in groups].index("rot90" if symmetric else "trivial")
    assert int(found.concentration.argmax()) == truth


def test_running_statistics_do_not_learn_from_what_is_held_out():
    x, y = corner_problem(200, 1, symmetric=True)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    x[order[:60]] += 100.0  # the part that is held out

    def normalised():
        return nn.Sequential(nn.Linear(9, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))

    found = fit_heldout(normalised, candidates("rot90"), Examples(x, y), config=HeldOut())
    assert float(found.network.module[1].running_mean.abs().max()) < 20


@pytest.mark.parametrize("kind", ["point", "dirichlet"])
def test_what_is_learned_about_the_schemes_starts_at_the_uniform_distribution(kind):
    x, y = corner_problem(20, 1, symmetric=True)
    config = HeldOut(posterior=kind, learning_rate=0.0, training=Training(epochs=1, validation=0.0))
    found = fit_heldout(lambda: mlp(SHAPE, 2, 4), candidates("rot90"), Examples(x, y), config=config)
    assert found.probabilities.tolist() == pytest.approx([0.5, 0.5])
    if kind == "dirichlet":
        assert found.concentration.tolist() == pytest.approx([1.001, 1.001])


def test_examples_of_equal_weight_teach_what_they_teach_without():
    x, y = corner_problem(60, 1, symmetric=True)
    plain, weighted = (
        fit_heldout(lambda: mlp(SHAPE, 2, 4), candidates("rot90"), Examples(x, y, weight), config=HeldOut())
        for weight in (None, torch.ones(60))
    )
    torch.testing.assert_close(weighted.probabilities, plain.probabilities)
