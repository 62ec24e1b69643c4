"""What is said about the cost of a fit before it starts."""

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet.estimator import estimate, fitting
from invariantnet.estimator.estimate import Estimate
from invariantnet.training.heat import LogPosteriors


@pytest.mark.parametrize(("seconds", "advised"), [(30.0, False), (840.0, True)])
def test_a_long_comparison_says_how_to_shorten_it(seconds, advised):
    words = Estimate(symmetries=18, models=6, hypotheses=54, comparison=seconds, final=(30.0, 30.0)).words
    assert words.startswith(
        "18 symmetries, 6 kinds of networks: 54 hypotheses, each a symmetry in a kind of network"
    )
    assert "then about 30 seconds for the final network." in words
    assert words.endswith("To shorten it, name fewer symmetries, or one backbone.") == advised


def test_what_is_compared_is_named_before_it_starts(capsys, brief_comparison):
    x = np.random.default_rng(0).normal(size=(60, 16)).astype(np.float32)
    clf = inv.InvariantClassifier(["reversal", "sign"], backbone="mlp", n_networks=1, random_state=0, verbose=1)
    clf.compare(x, x.sum(1) > 0)
    said = " ".join(capsys.readouterr().err.split())
    named = "Candidates: no symmetry, reading backwards, change of every sign, and combinations of these."
    assert named in said
    assert said.index(named) < said.index("Estimated from a few steps")


def test_the_cost_of_the_final_network_depends_on_which_one_wins():
    words = Estimate(symmetries=4, models=6, hypotheses=24, comparison=30.0, final=(7.0, 130.0)).words
    depends = "between about 5 seconds and about 2 minutes for the final network, depending on which one wins."
    assert words.endswith(depends)


@pytest.mark.parametrize("uncertainty", ["none", "ensemble"])
def test_the_cost_of_the_final_network_is_right_within_a_factor_of_two(uncertainty, brief_comparison, monkeypatch):
    """In steps of the optimizer, whatever the size of their batches: on rows, they cost the same."""
    taken, told = [], []
    step, cost, train = torch.optim.AdamW.step, estimate.estimate_cost, fitting.Fitter._train_final
    monkeypatch.setattr(estimate, "_time_step", lambda *_: 1.0)
    monkeypatch.setattr(estimate, "estimate_cost", lambda *a: told.append(cost(*a)) or told[-1])
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self, *a: taken.append(1) or step(self, *a))
    monkeypatch.setattr(fitting.Fitter, "_train_final", lambda *a: taken.clear() or train(*a))
    x = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    clf = inv.InvariantClassifier("reversal", backbone="mlp", uncertainty=uncertainty, random_state=0, verbose=1)
    clf.fit(x, x.sum(1) > 0)
    least, most = told[0].final
    assert 0.5 < least / len(taken) <= most / len(taken) < 2


@pytest.mark.parametrize(("n", "symmetries"), [(120, ["hflip"]), (400, ["rot90", "flips"])])
def test_the_estimate_is_right_within_a_factor_of_two(n, symmetries, brief_comparison, monkeypatch):
    """In steps of single networks, which do not depend on the machine."""
    taken, told = [], []
    step, cost, together = torch.optim.AdamW.step, estimate.estimate_cost, LogPosteriors.terms

    def in_a_heat(self, *batch):
        taken.extend([1] * (self.network.count - 1))
        return together(self, *batch)

    monkeypatch.setattr(LogPosteriors, "terms", in_a_heat)
    monkeypatch.setattr(estimate, "_time_step", lambda *_: 1.0)

    def announced(ahead, config, *, visible):
        told.append(cost(ahead, config))
        return estimate.announced(ahead, config, visible=visible)

    monkeypatch.setattr(fitting, "announced", announced)
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self, *a: taken.append(1) or step(self, *a))
    data = inv.datasets.load("digits:flipped", seed=1000)
    clf = inv.InvariantClassifier(symmetries, (8, 8), hidden=8, random_state=0)
    clf.compare(data.x_train[:n], data.y_train[:n])
    assert 0.5 < told[0].comparison / len(taken) < 2
