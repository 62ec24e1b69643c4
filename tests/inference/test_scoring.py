"""What a prediction counts, and what can be predicted without inputs."""

import numpy as np
import pytest
import torch
from problems import BRIEF, corner_problem, hypotheses, make_network
from torch import nn

import invariantnet as inv
from invariantnet.data.examples import Examples
from invariantnet.inference import scoring
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.prices import predict_moved
from invariantnet.inference.scoring import Entry, Scorer
from invariantnet.likelihoods import Categorical, StudentT


def scorer(doubt):
    return Scorer(make_network, Categorical(), doubt)


def test_without_doubt_a_prediction_counts_as_it_is():
    output = torch.tensor([[0.25, 0.75]]).log()
    assert scorer(0.0).log_likelihood(output, torch.tensor([1])) == pytest.approx(np.log(0.75))


def test_doubt_bounds_the_price_of_a_surprise():
    sure = nn.Linear(1, 4)
    nn.init.constant_(sure.weight, 0)
    sure.bias.data = torch.tensor([1000.0, 0, 0, 0])
    values = scorer(0.01).log_likelihood(sure(torch.zeros(2, 1)).detach(), torch.tensor([0, 1]))
    np.testing.assert_allclose(values, np.log([0.9925, 0.0025]))


def test_numbers_are_guessed_by_their_mean_and_spread():
    past, weight = torch.tensor([0.0, 4.0, 9.0]), torch.tensor([1.0, 1.0, 0.0])
    y = torch.tensor([2.0, 4.0])
    found = StudentT().log_prob(StudentT().guess(past, weight, y), y.double())
    expected = torch.distributions.StudentT(5.0, 2.0, 2.0 * (3 / 5) ** 0.5).log_prob(y)
    torch.testing.assert_close(found.float(), expected)


def test_a_class_that_was_never_seen_is_guessed_too():
    output = Categorical().guess(torch.tensor([0, 0, 1]), torch.ones(3), torch.tensor([2, 0]))
    assert output.softmax(-1).tolist() == [pytest.approx([2.5 / 4.5, 1.5 / 4.5, 0.5 / 4.5])] * 2


def test_the_strain_is_the_growth_of_the_loss_of_a_network_that_knows_its_inputs():
    x, y = torch.zeros(4, 1), torch.tensor([0, 1, 0, 1])
    past = shown = Examples(x, y)
    judge = scorer(0.0)
    guess = float(-judge.guess(past, shown).mean())

    def strain(loss, moved):
        return judge.strain(np.full(4, loss), np.full(4, moved), past, shown)

    assert strain(0.1, 0.15) == pytest.approx(0.5)
    assert strain(guess / 2, guess / 2) == np.inf, "of a network that knows little, nothing follows"


def test_networks_are_tried_on_moved_inputs_if_they_are_asked_for():
    x, y = corner_problem(60, 0, symmetric=True)
    past, block = Examples(x[:40], y[:40]), Examples(x[40:], y[40:])
    turns, plain = (inv.symmetry(name, shape=(3, 3)) for name in ("rotation:20", "trivial"))

    def tried(asked, moved):
        judge = Scorer(make_network, Categorical(), 0.0, moved, [turns])
        (score,) = judge.score([Entry(Hypothesis(plain, BRIEF), 0, 0, asked)], past, block, [plain])
        return set(score.strain), set(score.accuracy)

    assert tried(True, predict_moved) == ({"rotation:20"}, {"trivial"})
    assert tried(False, predict_moved) == (set(), set())
    assert tried(True, lambda *_: None)[0] == set()


def test_accuracies_on_moved_inputs_are_the_same_whether_or_not_the_network_is_known_to_be_invariant(monkeypatch):
    x, y = corner_problem(120, 0, symmetric=True)
    examples = Examples(x, y)
    compared = hypotheses("rot90", "flips")
    groups = list(dict.fromkeys(h.symmetry for h in compared))
    entry = Entry(next(h for h in compared if h.symmetry.name == "d4"), 0, 0)
    judge = Scorer(make_network, Categorical(), 0.01)
    asked = []

    def told(network, symmetry, *rest):
        asked.append(symmetry.name)
        return predict_moved(network, symmetry, *rest)

    known = Scorer(make_network, Categorical(), 0.01, told).score([entry], examples[:80], examples[80:], groups)[0]
    monkeypatch.setattr(scoring, "_is_invariant", lambda *_: False)
    found = judge.score([entry], examples[:80], examples[80:], groups)[0]
    assert not asked, "d4 contains every candidate"
    assert known.accuracy == found.accuracy
    assert set(known.accuracy) == {"trivial", "rot90", "flips", "d4"}
