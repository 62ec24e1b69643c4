"""What a prediction counts, and what can be predicted without inputs."""

import numpy as np
import pytest
import torch
from problems import BRIEF, corner_problem, make_network
from torch import nn

import invariantnet as inv
from invariantnet.data.examples import Examples
from invariantnet.inference.hypotheses import Hypothesis
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


def test_the_strain_is_the_factor_by_which_moving_inputs_multiplies_the_loss():
    x, y = corner_problem(60, 0, symmetric=True)
    past, block = Examples(x[:40], y[:40]), Examples(x[40:], y[40:])
    turns = inv.symmetry("rotation:20", shape=(3, 3))

    def strain(predicted, network=0):
        judge = Scorer(make_network, Categorical(), 0.0, lambda *_: predicted, [turns])
        plain = Hypothesis(inv.symmetry("trivial", shape=(3, 3)), BRIEF)
        (score,) = judge.score([Entry(plain, network, 0)], past, block)
        return score.strain, -score.log_likelihood.mean()

    blind = torch.zeros(20, 2).log_softmax(-1)
    found, loss = strain(blind)
    assert set(found) == {"rotation:20"}
    moved = Scorer(make_network, Categorical(), 0.0).log_likelihood(blind, block.y)
    assert found["rotation:20"] == pytest.approx(-moved.mean() / loss, rel=0.2), "but for the calibration"
    assert strain(None)[0] == {}
    assert strain(blind, network=1)[0] == {}, "first networks are tried"
