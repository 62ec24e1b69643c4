"""What is said about the cost of a fit before it starts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet.data.examples import Examples
from invariantnet.estimator import estimate, fitting
from invariantnet.estimator.estimate import Ahead, Estimate, Final
from invariantnet.inference import Evidence, models
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.likelihoods import Categorical
from invariantnet.training.heat import LogPosteriors


@pytest.mark.parametrize(("seconds", "advised"), [(30.0, False), (840.0, True)])
def test_a_long_comparison_says_how_to_shorten_it(seconds, advised):
    words = Estimate(
        symmetries=18, models=6, hypotheses=54, comparison=seconds, longest=seconds, final=(30.0, 30.0)
    ).words
    assert words.startswith(
        "18 symmetries, 6 kinds of networks: 54 hypotheses, each a symmetry in a kind of network"
    )
    assert "then about 30 seconds for the final network." in words
    assert words.endswith("To shorten it, name fewer symmetries, or one backbone.") == advised


def test_one_hypothesis_is_not_counted_in_the_plural():
    words = Estimate(1, 1, 1, comparison=10.0, longest=10.0, final=(50.0, 50.0)).words
    assert words.startswith("one symmetry, one kind of network: one hypothesis. Estimated")
    assert "about 10 seconds of CPU time to compare it, then" in words


def test_it_is_said_how_long_an_open_verdict_takes_if_that_is_much_longer():
    words = Estimate(18, 7, 63, comparison=1200.0, longest=9700.0, final=(30.0, 30.0)).words
    assert (
        "about 20 minutes of CPU time to compare them (about 2.7 hours if the first examples do not decide), then"
        in words
    )
    assert "do not decide" not in Estimate(4, 7, 24, comparison=30.0, longest=45.0, final=(30.0, 30.0)).words


@pytest.mark.parametrize(
    ("every", "predicted", "measured"),
    [
        ((22.8, 75.7), (0, 561), 22.1),  # 3,000 rotated digits of MNIST, two symmetries and their join, decisive
        ((125.4, 125.4, 127.9), (0, 23, 69), 148.1),  # 190 photographs of three shapes, `auto`, inconclusive
        ((6.7, 6.8, 6.8), (0, 48, 144), 17.8),  # 384 sequences of 60 steps, `auto`, inconclusive
    ],
)
def test_the_share_of_networks_that_are_trained_is_right_within_a_factor_of_two(every, predicted, measured):
    """CPU seconds of a race, and of each of its blocks with all hypotheses."""
    told = estimate.SHARE * estimate.until_decided(every, predicted)
    assert 0.5 < told / measured < 2


def test_many_examples_cost_more_although_few_hypotheses_are_left():
    costs = [
        estimate.until_decided([55.0, 220.0, 900.0, 3500.0][:k], [0, 1500, 7500, 31500][:k]) for k in (1, 2, 3, 4)
    ]
    assert costs == sorted(set(costs))
    assert costs[-1] < 0.25 * (55 + 220 + 900 + 3500)


def test_the_announced_cost_is_bounded_however_many_examples_there_are(monkeypatch):
    """Of 60,000 examples a sure verdict needs 7,500 predictions, and an open one 31,500."""
    monkeypatch.setattr(estimate, "_time_step", lambda *_: 1.0)
    model = replace(models.MLPS[0], training=replace(models.MLPS[0].training, epochs=1, min_steps=0))
    compared = [Hypothesis(inv.symmetry(name, shape=(2, 2)), model) for name in ("trivial", "rot90")]

    def told(n):
        examples = Examples(torch.zeros(n, 4), torch.zeros(n).long())
        final = Final(lambda _: None, lambda h: h.model.final, "none")
        return estimate.estimate_cost(Ahead(lambda _: None, compared, examples, Categorical(), final), Evidence())

    some, many = told(60_000), told(1_000_000)
    assert (some.comparison, some.longest) == (many.comparison, many.longest)
    steps = [model.training.steps(n * 4 // 5) for n in (500, 2000, 8000)]
    assert some.longest == pytest.approx(estimate.SHARE_OF_ONE_MODEL * 4 * sum(steps))
    assert some.comparison == pytest.approx(estimate.SHARE_OF_ONE_MODEL * 4 * (steps[0] + 0.2 * steps[1]))
    assert many.final > some.final, "the final network learns from all"


def test_rungs_of_a_ladder_cost_the_copies_that_a_step_draws(monkeypatch):
    monkeypatch.setattr(
        estimate, "_time_step", lambda _, __, h, *rest: 1.0 if h.symmetry.name == "trivial" else 5.0
    )
    names = ("trivial", "rotation:15", "rotation:90", "rotation:180")
    compared = [Hypothesis(inv.symmetry(name, shape=(8, 8)), models.CNNS[0]) for name in names]
    assert [h.copies for h in compared] == [1, 3, 7, 16]
    examples = Examples(torch.zeros(90, 64), torch.zeros(90).long())
    final = Final(lambda _: None, lambda h: h.model.final, "none")
    told = estimate.estimate_cost(Ahead(lambda _: None, compared, examples, Categorical(), final), Evidence())
    seconds = [told.step_seconds[h.name] for h in compared]
    assert seconds == pytest.approx([1.0, 1 + 2 * 4 / 3, 5.0, 5.0])


def test_what_is_compared_is_named_before_it_starts(capsys, brief_comparison):
    x = np.random.default_rng(0).normal(size=(60, 16)).astype(np.float32)
    clf = inv.InvariantClassifier(["reversal", "sign"], backbone="mlp", n_networks=1, random_state=0, verbose=1)
    clf.compare(x, x.sum(1) > 0)
    said = " ".join(capsys.readouterr().err.split())
    named = (
        "Candidates: no symmetry, the reverse order of entries, change of every sign, and combinations of these."
    )
    assert named in said
    assert said.index(named) < said.index("Estimated from a few steps")


def test_the_cost_of_the_final_network_depends_on_which_one_wins():
    words = Estimate(
        4, models=6, hypotheses=24, comparison=30.0, longest=50.0, final=(7.0, 130.0), dearest="quarter turns"
    ).words
    depends = "then about 5 seconds for the final network, or about 2 minutes with quarter turns."
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
