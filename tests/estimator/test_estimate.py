"""What is said about the cost of a fit before it starts."""

import pytest
import torch

import invariantnet as inv
from invariantnet.estimator import estimate, fitting
from invariantnet.estimator.estimate import Estimate


@pytest.mark.parametrize(("seconds", "advised"), [(30.0, False), (840.0, True)])
def test_a_long_comparison_says_how_to_shorten_it(seconds, advised):
    words = Estimate(symmetries=18, models=6, hypotheses=54, comparison=seconds, final=30.0).words
    assert words.startswith("18 symmetries, 6 kinds of networks: 54 hypotheses.")
    assert words.endswith("To shorten it, name fewer symmetries, or one backbone.") == advised


@pytest.mark.parametrize(("n", "symmetries"), [(120, ["hflip"]), (400, ["rot90", "flips"])])
def test_the_estimate_is_right_within_a_factor_of_two(n, symmetries, brief_comparison, monkeypatch):
    """In steps of the optimizer, which do not depend on the machine."""
    taken, told = [], []
    step, cost = torch.optim.AdamW.step, estimate.estimate_cost
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
