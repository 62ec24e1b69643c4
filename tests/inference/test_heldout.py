"""One network for all hypotheses: π learns from held-out data."""

import numpy as np
import pytest
import torch
from problems import BRIEFLY, SHAPE, candidates, corner_problem
from torch import nn

from invariantnet.data.examples import Examples
from invariantnet.inference import HeldOut, fit_heldout
from invariantnet.nn import Symmetrized, mlp

BRIEF = HeldOut(training=BRIEFLY)


def fitted(examples, config, *, module=lambda: mlp(SHAPE, 2, 4), **options):
    return fit_heldout(lambda: Symmetrized(module(), candidates("rot90"), **options), examples, config=config)


@pytest.mark.parametrize("kind", ["point", "dirichlet", "neurons"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_pi_moves_towards_the_symmetry_that_is_there(kind, symmetric, annotations_unchecked):
    examples = Examples(*corner_problem(800, 3, symmetric=symmetric))
    found = fitted(examples, HeldOut(posterior=kind), module=lambda: mlp(SHAPE, 2, 16))
    assert found.probabilities[int(symmetric)] > 0.6
    if kind == "point":
        assert found.concentration is None
    else:
        torch.testing.assert_close(found.concentration / found.concentration.sum(), found.probabilities)
    if kind == "neurons":
        assert found.responsibilities.shape == (16, 2)
        torch.testing.assert_close(found.concentration, 1 + found.responsibilities.sum(0))
        np.testing.assert_allclose(found.over_schemes().mean, found.probabilities, atol=0.02)
    else:
        assert found.responsibilities is None
        with pytest.raises(ValueError, match="no scheme per feature"):
            found.over_schemes()


@pytest.mark.parametrize("kind", ["point", "dirichlet", "neurons"])
def test_pi_starts_uniform(kind):
    examples = Examples(*corner_problem(20, 1, symmetric=True))
    found = fitted(examples, HeldOut(posterior=kind, learning_rate=0.0, training=BRIEFLY))
    assert found.probabilities.tolist() == pytest.approx([0.5, 0.5])
    if kind == "dirichlet":
        assert found.concentration.tolist() == pytest.approx([1.001, 1.001])


def test_the_prior_of_each_hypothesis_moves_pi():
    examples = Examples(*corner_problem(60, 1, symmetric=True))
    config = HeldOut(learning_rate=0.5, training=BRIEFLY)
    first, second = (fitted(examples, config, prior=a).probabilities for a in ([100.0, 1.0], [1.0, 100.0]))
    assert first[0] > 0.9
    assert second[1] > 0.9


def test_equal_weights_count_as_none():
    x, y = corner_problem(60, 1, symmetric=True)
    plain, weighted = (fitted(Examples(x, y, weight), BRIEF) for weight in (None, torch.ones(60)))
    torch.testing.assert_close(weighted.probabilities, plain.probabilities)


def test_running_statistics_do_not_learn_from_held_out_examples():
    x, y = corner_problem(200, 1, symmetric=True)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    x[order[:60]] += 100.0  # the examples that are held out

    def normalised():
        return nn.Sequential(nn.Linear(9, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))

    found = fitted(Examples(x, y), BRIEF, module=normalised)
    assert float(found.network.module[1].running_mean.abs().max()) < 20


def test_a_scheme_per_feature_against_a_plain_loop():
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


def test_what_cannot_be_learned_is_refused(annotations_unchecked):
    examples = Examples(*corner_problem(60, 1, symmetric=True))
    with pytest.raises(ValueError, match="posterior='neurons' needs placement='features', not 'outputs'"):
        fitted(examples, HeldOut(posterior="neurons"), placement="outputs")
    with pytest.raises(ValueError, match="1 examples leave none to train on"):
        fitted(examples[:1], BRIEF)
    with pytest.raises(ValueError, match="posterior 'magic' is unknown: choose among point, dirichlet, neurons"):
        HeldOut(posterior="magic")
