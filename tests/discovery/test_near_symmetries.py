"""What makes a near symmetry, or none, look like one: and what tells them apart."""

from dataclasses import replace

import numpy as np
import pytest

import invariantnet as inv
from invariantnet.discovery._laplace import NO_SHARE, evidence_of_classes
from invariantnet.discovery.copies import nothing, symmetry_of
from invariantnet.discovery.evidence import Evidence, Rival, pooled
from invariantnet.discovery.posterior import Posterior
from invariantnet.discovery.predictors import Labelled
from invariantnet.discovery.proposals import Proposal
from invariantnet.discovery.scores import scores_of


def test_a_group_that_is_far_behind_is_not_compared_with_all_models():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 5))
    examples = Labelled(x, x @ np.arange(5.0) + x[:, 0] ** 2 + 0.3 * rng.normal(size=60), None)
    evidence = Evidence(examples, scores_of(examples, None))
    exchange = np.array([[1, 0, 2, 3, 4]])

    asked = evidence.log_e_value(exchange)
    other = Evidence(examples, scores_of(examples, None))
    before = len(other.scores.cache)
    bound = other.log_e_value(exchange, rival=Rival(nothing(5), lead=1e6))

    assert bound < asked
    assert len(other.scores.cache) == before + 2 < len(evidence.scores.cache)


def test_scales_far_beyond_the_best_one_have_no_share():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 30)) / 30**0.5
    y = (features[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(np.int64)

    found = evidence_of_classes(features, y, 2)

    assert found[-1] == -np.inf
    assert found.max() - found[np.isfinite(found)][-1] > NO_SHARE


def test_the_relevance_of_inputs_is_learned_and_shared_within_orbits():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4)) * np.array([1.0, 10.0, 1.0, 1.0])
    y = np.tanh(x[:, 0]) + 0.1 * x[:, 1] + 0.1 * rng.normal(size=300)
    examples = Labelled(x, y, None)

    relevance = Evidence(examples, scores_of(examples, None)).relevance

    assert relevance[:2].min() > 4 * relevance[2:].max()  # whatever the units of an input
    assert np.square(pooled(relevance, np.array([0, 0, 1, 1]))).sum() == pytest.approx(np.square(relevance).sum())
    assert len(set(pooled(relevance, np.array([0, 0, 1, 1])))) == 2


def test_two_inputs_that_hardly_matter_are_not_exchangeable():
    """A model that believes in equal relevance takes their exchange for a symmetry."""
    rng = np.random.default_rng(1000)
    x = rng.normal(size=(600, 8))
    slopes = np.array([2.0, 0.3, 1.0, -1.5, 0.5, -0.3, 1.8, -1.0])
    y = x @ slopes + 0.4 * x[:, 0] * x[:, 6] + 0.3 * rng.normal(size=600)
    examples = Labelled(x, y, None)
    evidence = Evidence(examples, scores_of(examples, None))
    exchange = np.array([[0, 1, 2, 3, 5, 4, 6, 7]])
    blind = [m for m in evidence.models if not m.by_relevance]

    assert any(m.by_relevance for m in evidence.models)
    gains = [evidence.of_model(m, symmetry_of(exchange)) - evidence.of_model(m, nothing(8)) for m in blind]
    assert evidence.log_e_value(exchange) < max(gains)


class _Generous(Evidence):
    """Evidence of models that cannot see what labels say."""

    def log_e_value(self, generators, closed=None, rival=None):
        return 50.0


def test_a_group_with_which_labels_are_predicted_worse_is_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = x[:, 0] + 0.9 * x[:, 1] + x[:, 2] ** 2 + 0.02 * rng.normal(size=200)
    examples = Labelled(x, y, None)
    posterior = Posterior(_Generous(examples, scores_of(examples, None)), rng)
    posterior.weigh(Proposal(np.array([[1, 0, 2]]), "inputs", "exchanges", 0.0))

    again = posterior.weighed_again(posterior.evidence)

    assert posterior.log_e_value > 10
    assert again.log_e_value < -10


def test_inputs_in_other_units_are_not_exchanged():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(40, 10, size=100), rng.normal(40, 10, size=100), rng.integers(2, size=100)])
    examples = Labelled(x, x.sum(axis=1) + 0.1 * rng.normal(size=100), None)
    posterior = Posterior(Evidence(examples, scores_of(examples, None)), rng)

    for exchange in ([1, 0, 2], [2, 1, 0]):
        posterior.weigh(Proposal(np.array([exchange]), "inputs", "exchanges", 0.0))

    assert [w.generators.tolist() for w in posterior.weighed.values()] == [[[1, 0, 2]]]


def test_a_cycle_of_some_inputs_is_found_among_many_permutations_that_fit_as_well():
    rng = np.random.default_rng([1000, 2])
    members = rng.permutation(7)[:5]
    x = rng.normal(size=(400, 7))
    ring, ahead = x[:, members], np.roll(x[:, members], -1, axis=1)
    y = np.tanh(ring - ahead**2).sum(axis=1) + 0.3 * (ring * ahead**2).sum(axis=1)
    y += x[:, np.setdiff1d(np.arange(7), members)] @ np.array([1.0, -2.0]) + 0.3 * rng.normal(size=400)

    found = inv.discover(x, y, random_state=1000)

    turn = np.arange(7)
    turn[members] = np.roll(members, 1)
    assert found.group == inv.Group.from_permutations([turn])


def test_a_distance_allows_changes_of_two_signs():
    rng = np.random.default_rng(1000)
    x = rng.normal(size=(300, 4))
    y = np.linalg.norm(x[:, :2] - x[:, 2:], axis=1) + 0.05 * rng.normal(size=300)

    found = inv.discover(x, y, random_state=0)

    both_signs = np.array([4, 1, 6, 3])
    exchange = np.array([2, 1, 0, 3])
    axes = np.array([1, 0, 3, 2])
    assert found.group == inv.Group.from_permutations([both_signs, exchange, axes])


def test_no_group_is_called_exact_with_which_labels_are_hardly_explained():
    """Thirds of a turn of six points with weights: no permutation, and polynomials and kernels hardly learn it."""
    rng = np.random.default_rng(14)
    x = rng.normal(size=(500, 6, 2))
    angle, radius = np.arctan2(x[..., 1], x[..., 0]), np.hypot(x[..., 0], x[..., 1])
    values = np.cos(3 * angle) * np.minimum(radius, 1.5)
    y = values @ [2, 1, 1, -1, 0.5, -2] + 0.2 * rng.normal(size=500)
    found = inv.discover(x, y, random_state=0)
    assert found.found
    assert found.explained < 0.5
    assert not found.exact
    assert "It need not be this group: with it, predictions explain only 31% of the labels" in found.verdict
    assert replace(found, explained=0.9, repeatedly=True).exact
    signed = inv.Group.from_permutations([[12, *range(1, 12)]])
    words = "It changes signs too: in a generator, an index of 12 + i stands for minus input i."
    assert words in replace(found, group=signed).verdict
    assert words not in found.verdict
