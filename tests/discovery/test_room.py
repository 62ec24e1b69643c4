"""A group is not called exact where a larger one may hold, and not claimed where only few examples gain."""

from dataclasses import replace

import numpy as np
import pytest

import invariantnet as inv
from invariantnet.discovery import result
from invariantnet.discovery._matching import Moments
from invariantnet.discovery.judging import Judge
from invariantnet.discovery.maximality import leave_room, look_alike
from invariantnet.discovery.moments import moments_given_labels
from invariantnet.discovery.neighbours import contains
from invariantnet.discovery.result import Discovery
from invariantnet.symmetries.lookup import symmetry

SPINS = np.arange(16).reshape(4, 4)
SHIFTS = np.stack([np.roll(SPINS, 1, 0).ravel(), np.roll(SPINS, 1, 1).ravel()])


def noisy_moments(generators, seed, noise=0.3):
    """Random moments with a symmetry, and noise of size 1 after differences are taken."""
    rng = np.random.default_rng(seed)
    dim = generators.shape[1]
    pairs = 5 * rng.normal(size=(3, dim, dim))
    elements = inv.Group.from_permutations(generators).elements.numpy()
    exact = Moments(5 * rng.normal(size=(1, dim)), np.zeros((1, dim)), pairs + pairs.transpose(0, 2, 1))
    exact = exact.averaged(elements)
    errors = noise * rng.normal(size=pairs.shape)
    return Moments(exact.even, exact.odd, exact.pairs + errors + errors.transpose(0, 2, 1))


def test_all_signs_leave_room_on_a_torus_where_all_spins_look_alike():
    moments = noisy_moments(SHIFTS, seed=0)
    assert leave_room(moments, np.arange(16)[None] + 16)
    assert leave_room(moments, SHIFTS[:1])
    assert not leave_room(moments, SHIFTS)


def test_half_turns_leave_room_for_quarter_turns():
    quarter = symmetry("rot90", (5, 5)).generators
    moments = noisy_moments(quarter, seed=1)
    assert leave_room(moments, quarter[:, quarter[0]])
    assert not leave_room(moments, quarter)
    assert not look_alike(moments, quarter)[12]


def found_with(**changes):
    group = inv.Group.from_permutations([[1, 0, 2]])
    plain = Discovery(group, (), "unseen labels", 9.0, 0.99, True, 0.0, (), (), 100, 50, 0.05)
    return replace(plain, **changes)


def test_a_verdict_with_room_is_not_exact():
    with_room = found_with(tested=inv.discover(np.zeros((5, 3)), np.arange(5) % 2).tested, room=True)
    assert not with_room.exact
    assert found_with().exact


def test_proposals_that_predict_better_without_a_group_are_explained():
    smoothing = result.Tested(np.array([[1, 0, 2]]), "inputs", "permutation", 0.0, 50.0, accepted=True)
    nothing = found_with(group=inv.Group.from_permutations([[0, 1, 2]]), tested=(smoothing,))
    assert not nothing.found
    assert nothing.verdict.startswith("No symmetry found: 1 of 1 proposals predict unseen labels better")
    assert "their cycles are irregular" in nothing.verdict


class Learned(Judge):
    """Gains from few and from most examples, as told."""

    def __init__(self, few, most):
        self.told = np.stack([few, most])

    def gains(self, generators):
        return self.told


@pytest.mark.parametrize(("most", "true"), [(0.2, True), (0.0, False), (-0.2, False)])
def test_a_constraint_that_helps_few_examples_only_is_no_symmetry(most, true):
    noise = np.random.default_rng(0).normal(size=400)
    noise -= noise.mean()
    assert (Learned(0.5 + noise, most + noise).p_value_from_most(SHIFTS) < 0.05) is true


def test_squares_of_inputs_do_not_change_their_sign():
    rng = np.random.default_rng(2)
    x = rng.integers(-1, 2, size=(300, 4)).astype(float)
    moments = moments_given_labels(x, [np.arange(150), np.arange(150, 300)])
    assert moments.squares == 1
    flip = np.array([4, 1, 2, 3])
    moved = moments.moved_pairs(flip)
    assert np.array_equal(moved[0], moments.pairs[0])
    assert np.array_equal(moved[1, 0, 1:], -moments.pairs[1, 0, 1:])
    assert moments_given_labels(x + rng.normal(size=x.shape), [np.arange(300)]).squares == 0


def test_a_group_contains_its_elements():
    assert contains(SHIFTS, SHIFTS[:1][:, SHIFTS[1]])
    assert not contains(SHIFTS, np.arange(16)[None] + 16)
    assert not contains(SHIFTS, np.arange(16)[None] + 16, most=3)
