"""By prequential evidence, the symmetry that is there is found."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import BRIEF, BRIEFLY, ONE, SHAPE, corner_problem, hypotheses, make_network
from torch import nn

import invariantnet as inv
from invariantnet.data.examples import Examples
from invariantnet.inference import Records, gather_evidence
from invariantnet.likelihoods import Categorical, StudentT
from invariantnet.nn import Symmetrized, mlp
from invariantnet.training.loop import train


def test_evidence_is_the_sum_of_predictions_from_the_past():
    """A slow reference: train, predict the next block, sum; for every hypothesis and network."""
    x, y = corner_problem(170, 0, symmetric=True)
    compared = hypotheses("rot90", model=BRIEF)
    config = replace(ONE, n_networks=2, sure=0.0, growth=2.0, margin=np.inf)
    posterior = gather_evidence(make_network, compared, Examples(x, y), config=config, seed=3)
    order = torch.randperm(170, generator=torch.Generator().manual_seed(3))
    x, y = x[order], y[order]
    for k, hypothesis in enumerate(compared):
        by_network = []
        for s in range(2):
            by_block = []
            for block, (start, end) in enumerate([(40, 80), (80, 170)]):
                seed = int(np.random.SeedSequence([3, s, block]).generate_state(1)[0])
                past = torch.arange(start)
                learned, held = past[past % 5 != s], past[past % 5 == s]
                examples = Examples(x[learned], y[learned])
                network, _ = train(lambda h=hypothesis: make_network(h), examples, BRIEFLY, seed)
                with torch.no_grad():
                    outputs = network(x[held]).log_softmax(-1)
                    calibration = Categorical().calibration(outputs, y[held], None)
                    logits = network(x[start:end]) * calibration.scale
                    p = logits.softmax(-1)[torch.arange(end - start), y[start:end]]
                by_block.append((1 - config.doubt) * p.double() + config.doubt / 2)
            by_network.append(torch.cat(by_block))
        both = torch.stack(by_network)
        assert posterior.log_evidence[k] == pytest.approx(float(both.mean(0).log().sum()), rel=1e-5)
        assert posterior.log_evidence_spread[k] == pytest.approx(float(both.log().sum(1).std()), rel=1e-3)
    assert posterior.examples == 130
    assert [stage.examples for stage in posterior.race] == [40, 130]


@pytest.fixture(scope="module", params=[True, False], ids=["symmetric", "not symmetric"])
def judged(request):
    """Whether the data is symmetric to rotations, and the posterior with every hypothesis kept to the end."""
    x, y = corner_problem(500, 1, symmetric=request.param)
    config = replace(ONE, margin=np.inf)
    return request.param, gather_evidence(make_network, hypotheses("rot90"), Examples(x, y), config=config)


def test_posterior_names_the_symmetry_that_is_there(judged):
    symmetric, posterior = judged
    assert posterior.favourite == ("rot90" if symmetric else "trivial")
    assert max(posterior.probabilities) > 0.9
    assert sum(posterior.probabilities) == pytest.approx(1)
    assert max(posterior.log_bayes_factors) == 0
    assert "guessing" not in posterior.verdict


def test_prices_and_tolerance(judged):
    symmetric, posterior = judged
    free, turned = posterior.prices
    assert (free.name, turned.name, turned.order) == ("trivial", "rot90", 4)
    assert min(free.nats_per_example, turned.nats_per_example) == 0
    assert turned.accuracy["trivial"] == pytest.approx(turned.accuracy["rot90"]), (
        "turning an input changes nothing for an invariant network"
    )
    assert posterior.within(turned.nats_per_example + 0.01) == "rot90"
    if not symmetric:
        assert turned.nats_per_example > 0
        assert free.accuracy["rot90"] < free.accuracy["trivial"]
        assert posterior.within(0.0) == posterior.within(turned.nats_per_example / 2) == "trivial"


def test_neither_the_order_of_candidates_nor_the_number_of_processes_changes_the_posterior():
    x, y = corner_problem(80, 2, symmetric=True)

    def posterior(*names, seed=5, n_jobs=1):
        config = replace(ONE, n_jobs=n_jobs)
        return gather_evidence(
            make_network, hypotheses(*names, model=BRIEF), Examples(x, y), config=config, seed=seed
        )

    first = posterior("rot90", "hflip")
    assert first == posterior("hflip", "rot90") == posterior("rot90", "hflip", n_jobs=2)
    assert first != posterior("rot90", "hflip", seed=6)


@pytest.mark.parametrize("variant", ["permuted", "rotated", "flipped", "plain"])
def test_dropping_hypotheses_never_changes_the_winner(variant, annotations_unchecked):
    data = inv.datasets.load(f"digits:{variant}", seed=0)
    examples = Examples(torch.from_numpy(data.x_train[:600]), torch.from_numpy(data.y_train[:600]))
    compared, cache = hypotheses("rot90", "flips", shape=(8, 8)), {}

    def posterior(margin):
        config = replace(ONE, first_block=None, margin=margin)
        return gather_evidence(
            lambda h: Symmetrized(mlp((8, 8), 10, 16), [h.symmetry]),
            compared,
            examples,
            config=config,
            records=Records(cache),
        )

    raced, patient = posterior(ONE.margin), posterior(np.inf)
    truth = {"permuted": "trivial", "rotated": "rot90", "flipped": "flips", "plain": "trivial"}[variant]
    assert raced.favourite == patient.favourite == truth
    assert not patient.dropped
    for name in raced.dropped:
        assert raced.probabilities[raced.names.index(name)] < 0.05


@pytest.mark.parametrize("weighted", [False, True])
def test_guessing_predicts_labels_by_their_frequencies_so_far(weighted):
    """Blocks of 40, 40 and 80 labels, each predicted by the frequencies of the labels before it."""
    x, y = corner_problem(160, 0, symmetric=True)
    weight = 2 * torch.rand(160, generator=torch.Generator().manual_seed(0)) if weighted else None
    config = replace(ONE, growth=2.0, margin=np.inf)
    posterior = gather_evidence(
        make_network, hypotheses("rot90", model=BRIEF), Examples(x, y, weight), config=config
    )
    order = torch.randperm(160, generator=torch.Generator().manual_seed(0))
    labels, counts = y[order].tolist(), [1.0] * 160 if weight is None else weight[order].tolist()
    expected = 0.0
    for i in range(40, 160):
        past = 40 if i < 80 else 80
        same = sum(c for label, c in zip(labels[:past], counts[:past], strict=True) if label == labels[i])
        p = (same + 0.5) / (sum(counts[:past]) + 1)
        expected += counts[i] * math.log((1 - config.doubt) * p + config.doubt / 2)
    assert posterior.guessing == pytest.approx(expected)


def test_the_verdict_says_that_the_labels_do_not_depend_on_the_inputs():
    x, _ = corner_problem(200, 0, symmetric=True)
    noise = torch.randint(2, (200,), generator=torch.Generator().manual_seed(1))
    posterior = gather_evidence(make_network, hypotheses("rot90"), Examples(x, noise), config=ONE)
    assert not posterior.learned
    assert posterior.strength == "nothing learned"
    assert posterior.probabilities == pytest.approx([0.5, 0.5]), "as before any data"
    assert "guess" in posterior.verdict


def test_a_surprise_costs_guessing_a_bounded_number_of_nats():
    """All earlier targets are equal, and a new one is not."""
    y = torch.zeros(80)
    y[60:] = 1.0
    posterior = gather_evidence(
        lambda h: Symmetrized(mlp(SHAPE, 2, 4), [h.symmetry]),
        hypotheses("rot90", model=BRIEF),
        Examples(torch.rand(80, 9, generator=torch.Generator().manual_seed(0)), y),
        config=ONE,
        likelihood=StudentT(),
    )
    assert posterior.guessing > 40 * (math.log(ONE.doubt) - 3)


def test_a_network_that_diverges_loses_and_the_others_go_on():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(2))

        def forward(self, x):
            return (x[:, :2] + self.w) * torch.nan

    def make(hypothesis):
        return Broken() if hypothesis.symmetry.name == "rot90" else make_network(hypothesis)

    x, y = corner_problem(100, 1, symmetric=True)
    with pytest.warns(RuntimeWarning, match="a network of rot90 · plain mlp diverged on 40 examples"):
        posterior = gather_evidence(make, hypotheses("rot90"), Examples(x, y), config=ONE)
    assert posterior.favourite == "trivial"
    assert np.isfinite(posterior.log_evidence).all()


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_races_of_one_fit_that_are_resumed_come_to_the_same_bits(lost):
    """The second race has more hypotheses; whatever scores were lost, networks are trained in the same heats."""
    x, y = corner_problem(120, 0, symmetric=True)

    def races(cache):
        planned = set()
        compared = [hypotheses(*names, model=BRIEF) for names in (["rot180"], ["rot180", "hflip", "vflip"])]
        return [
            gather_evidence(
                make_network,
                several,
                Examples(x, y),
                config=replace(ONE, n_networks=2),
                records=Records(cache, {"data": "corners"}, planned=planned),
            )
            for several in compared
        ]

    scores = {}
    before = races(scores)
    left = {key: score for k, (key, score) in enumerate(scores.items()) if k % 3 != lost}
    assert [repr(p) for p in races(left)] == [repr(p) for p in before]
    assert left.keys() == scores.keys()
