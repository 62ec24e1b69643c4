"""Evidence of all labels: against slow references, and 1 on average if there is no symmetry."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

import invariantnet as inv
from invariantnet.discovery._laplace import OFFSET, PENALTIES, SCALES, evidence_of_classes, evidence_of_reals
from invariantnet.discovery.chambers import chosen_copies, even_signs
from invariantnet.discovery.closure import closure, orbits_of_pairs
from invariantnet.discovery.evidence import Evidence
from invariantnet.discovery.posterior import _subgroups_with_more_orbits
from invariantnet.discovery.predictors import Labelled
from invariantnet.discovery.prior import cycle_lengths, log_prior, partitions_of
from invariantnet.discovery.scores import scores_of
from invariantnet.symmetries.lookup import symmetry

EXCHANGE = np.array([[1, 0, 2, 3]])


def evidence_of(examples):
    return Evidence(examples, scores_of(examples, None))


def quadratic(n, dim, seed, *, symmetric):
    """Labels from a random polynomial, with noise; inputs 0 and 1 can be exchanged, or not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim))
    linear, square = rng.normal(size=dim), rng.normal(size=(dim, dim)) / dim**0.5
    if symmetric:
        swap = np.arange(dim)
        swap[:2] = 1, 0
        linear, square = (linear + linear[swap]) / 2, (square + square[np.ix_(swap, swap)]) / 2
    y = x @ linear + np.einsum("ni,ij,nj->n", x, square, x)
    return x, y / y.std() + 0.3 * rng.normal(size=n)


def test_evidence_of_reals_is_a_density_of_student_t():
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    found = evidence_of_reals(features, y)
    # Contrasts of the labels do not depend on the offset; only differences between penalties count.
    contrasts = np.linalg.svd(np.ones((1, 6)))[2][1:]
    for k in (4, 12):
        shape = contrasts @ (np.eye(6) + features @ features.T / PENALTIES[k]) @ contrasts.T
        slow = -0.5 * np.linalg.slogdet(shape)[1]
        slow -= 2.5 * np.log(contrasts @ y @ np.linalg.solve(shape, contrasts @ y))
        centred = features - features.mean(axis=0)
        determinant = np.linalg.slogdet(np.eye(6) + centred @ centred.T / PENALTIES[k])[1]
        assert np.linalg.slogdet(shape)[1] == pytest.approx(determinant)
        assert found[k] == pytest.approx(slow)


def test_wide_and_narrow_features_give_the_same_evidence():
    rng = np.random.default_rng(1)
    wide, y = rng.normal(size=(8, 20)), rng.normal(size=8)
    values, vectors = np.linalg.eigh((wide - wide.mean(axis=0)) @ (wide - wide.mean(axis=0)).T)
    narrow = vectors * np.sqrt(values.clip(0))
    assert np.allclose(evidence_of_reals(wide, y), evidence_of_reals(narrow, y))
    labels = (y > 0).astype(int)
    assert np.allclose(evidence_of_classes(wide, labels, 2), evidence_of_classes(narrow, labels, 2), atol=1e-3)


def test_evidence_of_classes_is_close_to_an_integral():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(30, 1))
    y = (features[:, 0] + rng.normal(size=30) > 0).astype(int)
    grid = np.linspace(-20, 20, 201)
    weight, offset = np.meshgrid(grid, grid)
    centred = features[:, 0] - features.mean()
    odds = weight[..., None] * centred + offset[..., None]
    likelihood = (y * odds - np.logaddexp(0, odds)).sum(axis=-1)
    for scale, found in zip(SCALES[:3], evidence_of_classes(features, y, 2)[:3], strict=True):
        prior = norm.logpdf(weight, scale=scale) + norm.logpdf(offset, scale=OFFSET)
        slow = np.logaddexp.reduce((likelihood + prior).ravel()) + 2 * np.log(grid[1] - grid[0])
        assert found == pytest.approx(slow, abs=0.2)


def test_classes_one_after_another_do_not_depend_on_absent_ones():
    rng = np.random.default_rng(3)
    features, y = rng.normal(size=(40, 2)), rng.integers(3, size=40)
    assert np.array_equal(evidence_of_classes(features, y, 3), evidence_of_classes(features, y, 5))


def test_bayes_factors_average_at_most_one_if_there_is_no_symmetry():
    values = []
    for seed in range(40):
        x, y = quadratic(30, 4, seed, symmetric=False)
        values.append(np.exp(evidence_of(Labelled(x, y, None)).log_e_value(EXCHANGE)))
    assert np.mean(values) <= 1 + 4 * np.std(values) / len(values) ** 0.5
    assert np.mean(np.array(values) >= 20) <= 0.05


def test_bayes_factors_are_large_if_there_is_a_symmetry():
    x, y = quadratic(200, 4, 0, symmetric=True)
    assert evidence_of(Labelled(x, y, None)).log_e_value(EXCHANGE) > 5


@pytest.mark.parametrize("seed", [1000, 1005, 1011, 1017])
def test_few_examples_without_symmetry_get_none(seed):
    # Predictors of fifteen examples gain from any constraint: that is no symmetry.
    x, y = quadratic(100, 4, seed, symmetric=False)
    assert not inv.discover(x, y, random_state=seed).found


def test_labels_without_any_relation_to_inputs_have_no_verdict():
    rng = np.random.default_rng(4)
    found = inv.discover(rng.normal(size=(100, 4)), rng.normal(size=100), random_state=0)
    assert not found.found
    assert found.test == "all labels"


def bits(n, dim, seed):
    return np.random.default_rng(seed).permutation(np.array(list(product((-1.0, 1.0), repeat=dim))))[:n]


def test_labels_that_no_model_learns_have_every_symmetry_and_so_none():
    # Without inputs, all changes of sign would seem to hold.
    x = bits(300, 9, seed=0)
    assert not inv.discover(x, np.random.default_rng(1).integers(2, size=300), random_state=0).found


def test_parity_has_all_permutations_and_all_changes_of_two_signs():
    # It is noise to every model that knows no symmetry, and to an average over a few of the permutations.
    x = bits(250, 8, seed=1000)
    found = inv.discover(x, (x.prod(axis=1) < 0).astype(int), random_state=0)
    signs = inv.Group.from_permutations(even_signs(8))
    assert signs <= found.group
    assert found.group.order == signs.order * 40320


def test_turns_of_a_ring_are_closed_by_its_reflections():
    turn = np.roll(np.arange(6), 1)
    ring = inv.Group.from_permutations(closure(turn[None]))
    assert ring == inv.Group.from_permutations([turn, np.arange(6)[::-1]])


@pytest.mark.parametrize("name", ["rot90", "d4", "flips"])
def test_closure_keeps_orbits_of_pairs_and_holds_the_group(name):
    group = symmetry(name, (3, 3))
    larger = inv.Group.from_permutations(closure(group.generators))
    assert group <= larger
    assert np.array_equal(orbits_of_pairs(group.generators), orbits_of_pairs(larger.generators))


def test_a_ring_is_among_the_subgroups_of_a_larger_group():
    # All exchanges of odd places, of even places, and of both sets: of order 72, and the ring of six is inside.
    larger = np.array([[2, 1, 0, 3, 4, 5], [2, 1, 4, 3, 0, 5], [1, 2, 3, 4, 5, 0]])
    ring = np.array([[1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0]])
    assert inv.Group.from_permutations(larger).order == 72
    found = [orbits_of_pairs(part).max() for part in _subgroups_with_more_orbits(larger)]
    assert orbits_of_pairs(ring).max() in found
    assert min(found) > orbits_of_pairs(larger).max()


def test_models_that_cannot_tell_turns_from_reflections_do_not_speak_for_turns():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(150, 5))
    y = (x * np.roll(x, 1, axis=1)).sum(axis=1) + 0.1 * rng.normal(size=150)
    found = inv.discover(x, y, random_state=0)
    assert found.group == inv.Group.from_permutations([np.roll(np.arange(5), 1), np.arange(5)[::-1]])
    assert found.exact


def test_priors_of_conjugate_groups_sum_to_at_most_one():
    exchanges = [[1, 0, 2], [2, 1, 0], [0, 2, 1]]
    groups = [inv.Group.from_permutations([e]) for e in exchanges]
    groups += [inv.Group.from_permutations([[1, 2, 0]]), inv.Group.from_permutations([[1, 2, 0], [1, 0, 2]])]
    total = sum(np.exp(log_prior(group)) for group in groups)
    assert total <= 1
    assert log_prior(groups[0]) == pytest.approx(log_prior(groups[1]))


def test_a_change_of_sign_has_a_prior_too():
    assert log_prior(inv.Group.from_permutations([[4, 1, 2, 3]])) < 0


def test_cycles_and_partitions_are_counted():
    assert sorted(cycle_lengths(np.array([1, 0, 2, 4, 5, 3]))) == [1, 2, 3]
    assert [partitions_of(n) for n in (1, 2, 3, 4, 5, 10)] == [1, 2, 3, 5, 7, 42]


SIX = np.array([[1, 0, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])


@pytest.mark.parametrize(
    "generators",
    [
        SIX,
        np.array([[1, 0, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 0, 6]]),
        np.concatenate([SIX, even_signs(6)]),
        np.concatenate([SIX, [[6, 1, 2, 3, 4, 5]]]),
        even_signs(8),
    ],
)
def test_a_chosen_copy_is_a_copy_and_the_same_for_all(generators):
    dim = generators.shape[1]
    x = np.random.default_rng(6).normal(size=(5, dim))
    both = np.concatenate([x, -x], axis=1)
    chosen = chosen_copies(generators, x)
    for generator in generators:
        assert np.allclose(chosen_copies(generators, both[:, generator]), chosen)
    assert np.allclose(np.sort(np.abs(chosen)), np.sort(np.abs(x)))
    if (generators % dim == np.arange(dim)).all() or len(generators) == 7:
        assert np.allclose(chosen.prod(axis=1), x.prod(axis=1))


@pytest.mark.parametrize("generators", [EXCHANGE, symmetry("rot90", (4, 4)).generators, even_signs(4)])
def test_small_groups_and_other_kinds_have_no_chosen_copy(generators):
    assert chosen_copies(generators, np.zeros((2, generators.shape[1]))) is None
