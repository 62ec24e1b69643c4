from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import invariantnet as inv
from invariantnet.inference import Evidence, HeldOut, SymmetryPosterior, fit_heldout, gather_evidence
from invariantnet.inference.evidence import PER_BLOCK, block_ends, pointwise
from invariantnet.inference.posterior import Price, bootstrap_probabilities, log_prior_of, mean_prediction
from invariantnet.likelihoods import Categorical
from invariantnet.measures import hypotheses
from invariantnet.nn import Symmetrized, mlp
from invariantnet.training import train

SHAPE = (3, 3)
FAST = Evidence(seeds=2, first_block=40)


def candidates(*names, shape=SHAPE):
    return hypotheses([inv.group(name, shape=shape) for name in names])


def make_network(group):
    return Symmetrized(mlp(group.shape, 2, 16), [group])


def corner_problem(n, seed, *, symmetric):
    """Is the brightest of four corners bright? Any corner, or only the first: invariant to rotations, or not."""
    x = torch.rand(n, 9, generator=torch.Generator().manual_seed(seed))
    corners = x[:, [0, 2, 6, 8]] ** 3
    y = (corners.mean(1) > 0.25) if symmetric else (corners[:, 0] > 0.25)
    return x, y.long()


@given(st.integers(2, 5000), st.one_of(st.none(), st.integers(1, 600)), st.floats(1.1, 4))
def test_blocks_grow_and_cover_everything(n, first, growth):
    config = Evidence(first_block=first, growth=growth)
    if (first or 1) >= n:
        with pytest.raises(ValueError, match="leaves none"):
            block_ends(n, config)
        return
    ends = block_ends(n, config)
    assert ends[-1] == n
    assert ends == sorted(set(ends))
    assert ends[0] == (first or min(500, max(16, n // 16), n // 2))


def test_evidence_is_the_sum_of_predictions_from_the_past():
    """A slow reference: train, predict the next block, sum; for every hypothesis and seed."""
    x, y = corner_problem(170, 0, symmetric=True)
    groups = candidates("rot90")
    config = Evidence(seeds=2, sure=0.0, first_block=40, growth=2.0, margin=np.inf)
    posterior = gather_evidence(make_network, groups, x, y, config=config, seed=3)
    order = torch.randperm(170, generator=torch.Generator().manual_seed(3))
    x, y = x[order], y[order]
    for k, group in enumerate(groups):
        labels = []
        for s in range(2):
            of_seed = []
            for block, (start, end) in enumerate([(40, 80), (80, 170)]):
                seed = int(np.random.SeedSequence([3, s, block]).generate_state(1)[0])
                network, _ = train(lambda g=group: make_network(g), x[:start], y[:start], PER_BLOCK, seed)
                with torch.no_grad():
                    p = network(x[start:end]).softmax(-1)[torch.arange(end - start), y[start:end]]
                of_seed.append(0.99 * p.double() + 0.005)
            labels.append(torch.cat(of_seed))
        both = torch.stack(labels)
        assert posterior.log_evidence[k] == pytest.approx(float(both.mean(0).log().sum()), rel=1e-5)
        assert posterior.log_evidence_spread[k] == pytest.approx(float(both.log().sum(1).std()), rel=1e-3)
    assert posterior.examples == 130
    assert [row["examples"] for row in posterior.race] == [40, 130]


@pytest.mark.parametrize(("sure", "networks"), [(0.0, 2), (1.1, 4)])
def test_more_networks_are_trained_only_while_the_verdict_is_open(sure, networks):
    x, y = corner_problem(80, 1, symmetric=True)
    store, steps = {}, []
    config = replace(FAST, sure=sure)
    posterior = gather_evidence(
        make_network, candidates("rot90"), x, y, config=config, store=store, on_network=steps.append
    )
    assert set(store) == {f"{name}-{s}-0" for name in posterior.names for s in range(networks)}
    assert len(steps) == len(store), "none is trained twice"
    assert [step.done for step in steps][-1] == 1
    again = gather_evidence(
        make_network, candidates("rot90"), x, y, config=replace(config, seeds=networks, sure=0.0), store=store
    )
    assert posterior == again, "the same as if so many had been asked for"


@pytest.mark.parametrize("symmetric", [True, False])
def test_posterior_names_the_symmetry_that_is_there(symmetric):
    x, y = corner_problem(500, 1, symmetric=symmetric)
    posterior = gather_evidence(make_network, candidates("rot90"), x, y, config=FAST)
    assert posterior.favourite == ("rot90" if symmetric else "trivial")
    assert max(posterior.probabilities) > 0.9
    assert sum(posterior.probabilities) == pytest.approx(1)
    assert max(posterior.log_bayes_factors) == 0


def test_same_seed_same_posterior_whatever_the_order_of_candidates_and_the_number_of_processes():
    x, y = corner_problem(80, 2, symmetric=True)
    config = Evidence(seeds=1, first_block=40)

    def posterior(*names, seed=5, jobs=1):
        return gather_evidence(
            make_network, candidates(*names), x, y, config=replace(config, jobs=jobs), seed=seed
        )

    first = posterior("rot90", "hflip")
    assert first == posterior("hflip", "rot90") == posterior("rot90", "hflip", jobs=2)
    assert first != posterior("rot90", "hflip", seed=6)


@pytest.mark.parametrize("variant", ["permuted", "rotated", "flipped", "plain"])
def test_racing_never_changes_the_winner(variant):
    data = inv.datasets.load(f"digits:{variant}", seed=0)
    x, y = torch.from_numpy(data.x_train[:600]), torch.from_numpy(data.y_train[:600])
    groups = candidates("rot90", "flips", shape=(8, 8))

    def make(group):
        return Symmetrized(mlp((8, 8), 10, 32), [group])

    raced = gather_evidence(make, groups, x, y, config=Evidence(seeds=1))
    patient = gather_evidence(make, groups, x, y, config=Evidence(seeds=1, margin=np.inf))
    truth = {"permuted": "trivial", "rotated": "rot90", "flipped": "flips", "plain": "trivial"}[variant]
    assert raced.favourite == patient.favourite == truth
    assert not patient.dropped
    for name in raced.dropped:
        assert raced.probabilities[raced.names.index(name)] < 0.05


def test_bootstrap_posterior_against_a_plain_loop():
    rng = np.random.default_rng(0)
    values = rng.normal(-1, 0.5, (3, 2, 60))
    log_prior = np.log([0.2, 0.3, 0.5])
    ours = bootstrap_probabilities(values, log_prior, seed=1, draws=20_000)
    slow = []
    for _ in range(4000):
        w, u = rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(2))
        score = log_prior + 60 * np.array([np.log(u @ np.exp(scheme)) @ w for scheme in values])
        p = np.exp(score - score.max())
        slow.append(p / p.sum())
    np.testing.assert_allclose(ours, np.mean(slow, 0), atol=0.03)


def test_equal_examples_leave_no_doubt_about_their_sum():
    """Whatever their weights, which add up to the number of examples."""
    values = np.array([-1.0, -1.3])[:, None, None].repeat(5, axis=2)
    p = bootstrap_probabilities(values, np.zeros(2), 0)
    assert p[0] == pytest.approx(1 / (1 + np.exp(-1.5)))


def test_networks_are_weighed_uniformly_on_their_simplex(monkeypatch):
    """One network of three knows the label, against three that guess among three."""
    monkeypatch.setattr("invariantnet.inference.posterior.MIXES", 20_000)
    values = np.log([[[1.0], [1e-300], [1e-300]], [[1 / 3]] * 3])
    p = bootstrap_probabilities(values, np.zeros(2), 0, draws=20_000)
    u = (np.arange(1000) + 0.5) / 1000
    assert p[0] == pytest.approx(np.mean(2 * (1 - u) * u / (u + 1 / 3)), abs=0.006)


def test_bootstrap_is_humble_about_differences_that_a_few_examples_make():
    even = np.full((2, 1, 400), -0.5)
    noisy = even.copy()
    noisy[1, 0, :3] += 3.0
    plain_softmax = 1 / (1 + np.exp(-9.0))
    assert bootstrap_probabilities(noisy, np.zeros(2), 0)[1] < plain_softmax
    np.testing.assert_allclose(bootstrap_probabilities(even, np.zeros(2), 0), [0.5, 0.5])
    steady = even.copy()
    steady[1] += 0.1
    assert bootstrap_probabilities(steady, np.zeros(2), 0)[1] > 0.999


def test_prior_of_hypotheses():
    np.testing.assert_allclose(np.exp(log_prior_of((1.0, 3.0), 2)), [0.25, 0.75])
    for alpha in (0.0, -1.0, (1.0,), (1.0, float("inf"))):
        with pytest.raises(ValueError, match="is no prior"):
            log_prior_of(alpha, 2)


def test_prices_and_tolerance():
    x, y = corner_problem(500, 1, symmetric=False)
    posterior = gather_evidence(make_network, candidates("rot90"), x, y, config=Evidence(seeds=1, margin=np.inf))
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


def posterior_with(*probabilities):
    names = ("trivial", "rot90", "d4")[: len(probabilities)]
    return SymmetryPosterior(
        names, (1, 4, 8)[: len(names)], probabilities, (0.0,) * len(names), (0.0,) * len(names), 100
    )


@pytest.mark.parametrize(
    ("probabilities", "words"),
    [
        (
            (0.001, 0.995, 0.004),
            "decisive: the symmetry rot90, with probability 0.995 after 100 predictions; next d4",
        ),
        ((0.95, 0.03, 0.02), "strong: no symmetry"),
        ((0.4, 0.35, 0.25), "inconclusive: no symmetry"),
        ((1.0,), "decisive: no symmetry"),
    ],
)
def test_verdict_in_words(probabilities, words):
    assert posterior_with(*probabilities).verdict.startswith(words)


def test_a_posterior_is_shown_whole_or_not_at_all():
    posterior = SymmetryPosterior(
        ("trivial", "rot90"), (1, 4), (0.25, 0.75), (-9.0, -8.0), (0.0, 0.0), 10, ("trivial",)
    )
    lines = str(posterior).splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["trivial", "1", "0.250", "≤", "-9.0"],
        ["rot90", "4", "0.750", "-8.0"],
    ]
    assert posterior.log_bayes_factors == (-1.0, 0.0)
    assert "race" not in repr(posterior), "it is long"
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        str(replace(posterior, orders=(1,)))
    with pytest.raises(ValueError, match="were not stored"):
        posterior.over_schemes()


@pytest.mark.parametrize(
    ("best", "word"), [(0.99, "decisive"), (0.989, "strong"), (0.9, "strong"), (0.899, "inconclusive")]
)
def test_strength_in_words(best, word):
    assert posterior_with(1 - best, best).strength == word


def test_a_second_opinion_is_shown_where_it_was_asked_for():
    posterior = posterior_with(0.25, 0.75)
    assert posterior.second_opinion is None
    assert "Laplace" not in posterior.verdict
    assert replace(posterior, laplace=(-2.0, -1.0)).verdict.endswith("; Laplace's approximation agrees")
    assert replace(posterior, laplace=(-1.0, -2.0)).verdict.endswith("; Laplace's approximation favours trivial")


def test_the_largest_group_within_the_tolerance_is_bought():
    prices = [
        Price("trivial", 1, 0.0, {}),
        Price("rot90", 4, 0.3, {}),
        Price("flips", 4, 0.2, {}),
        Price("d4", 8, 0.5, {}),
    ]
    posterior = replace(posterior_with(0.75, 0.125, 0.125), prices=tuple(prices))
    bought = {0.0: "trivial", 0.1: "trivial", 0.2: "flips", 0.4: "flips", 0.5: "d4", 9.0: "d4"}
    assert {tolerance: posterior.within(tolerance) for tolerance in bought} == bought
    assert replace(posterior, prices=(prices[3],)).within(0.4) == "trivial"
    assert replace(posterior, prices=(prices[1],)).within(0.4) == "rot90"
    late = replace(posterior, prices=(Price("trivial", 1, 0.1, {}), Price("rot90", 4, 0.0, {})))
    assert late.within(0.0) == "trivial", "the favourite, though another did better at last"


def test_the_mean_of_networks_is_that_of_their_probabilities():
    values = np.random.default_rng(0).normal(-1, 1, (3, 4, 5))
    np.testing.assert_allclose(mean_prediction(values), np.log(np.exp(values).mean(1)))


@pytest.mark.parametrize("seeds", [1, 2])
def test_bootstrap_in_parts_is_the_same(monkeypatch, seeds):
    values = np.random.default_rng(0).normal(-1, 0.5, (3, seeds, 60))
    whole = bootstrap_probabilities(values, np.zeros(3), seed=1)
    monkeypatch.setattr("invariantnet.inference.posterior.CHUNK", 170)
    np.testing.assert_allclose(bootstrap_probabilities(values, np.zeros(3), seed=1), whole)
    assert whole.sum() == pytest.approx(1)


def test_weights_of_examples_scale_their_evidence():
    values = np.random.default_rng(0).normal(-1, 0.1, (2, 2, 50))
    heavy = bootstrap_probabilities(values, np.zeros(2), 0, weight=np.full(50, 3.0))
    np.testing.assert_allclose(heavy, bootstrap_probabilities(values, np.zeros(2), 0, weight=3.0))
    assert abs(heavy[0] - 0.5) > abs(bootstrap_probabilities(values, np.zeros(2), 0)[0] - 0.5)


def test_doubt_bounds_the_price_of_a_surprise():
    sure = nn.Linear(1, 4)
    nn.init.constant_(sure.weight, 0)
    sure.bias.data = torch.tensor([1000.0, 0, 0, 0])
    values = pointwise(sure(torch.zeros(2, 1)).detach(), torch.tensor([0, 1]), Categorical(), doubt=0.01)
    np.testing.assert_allclose(values, np.log([0.9925, 0.0025]))


@pytest.mark.parametrize("kind", ["point", "dirichlet"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_heldout_moves_towards_the_symmetry_that_is_there(kind, symmetric):
    x, y = corner_problem(1500, 3, symmetric=symmetric)
    groups = candidates("rot90")
    config = HeldOut(posterior=kind, share=0.3)
    result = fit_heldout(lambda: mlp(SHAPE, 2, 16), groups, x, y, config=config)
    right = int(symmetric)
    assert result.probabilities[right] > 0.6
    assert (result.concentration is None) == (kind == "point")
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
        posterior = gather_evidence(make, candidates("rot90"), x, y, config=Evidence(seeds=1))
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


@pytest.mark.parametrize("symmetric", [True, False])
def test_features_choose_the_scheme_that_is_there(symmetric):
    x, y = corner_problem(600, 1, symmetric=symmetric)
    groups = candidates("rot90")
    config = HeldOut(posterior="neurons")
    found = fit_heldout(lambda: mlp(SHAPE, 2, 16), groups, x, y, config=config)
    assert found.responsibilities.shape == (16, 2)
    torch.testing.assert_close(found.concentration, 1 + found.responsibilities.sum(0))
    truth = [g.name for g in groups].index("rot90" if symmetric else "trivial")
    assert int(found.concentration.argmax()) == truth
