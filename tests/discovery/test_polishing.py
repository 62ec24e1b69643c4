"""Many inputs: versions of one element, wrong places, and inputs whose places cannot be told."""

import numpy as np
import pytest

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.copies import joint_symmetry_of
from invariantnet.discovery.judging import inputs_against
from invariantnet.discovery.moment_fit import exchange_loses, group_fit
from invariantnet.discovery.moments import inputs_that_hardly_vary, inputs_that_vary
from invariantnet.discovery.neighbours import conjugate, narrowed, same_group
from invariantnet.discovery.polishing import outliers, polished, unresolved
from invariantnet.discovery.ranking import without_versions
from invariantnet.symmetries.lookup import symmetry

TURN = symmetry("rot90", (6, 6)).generators[0]
DIM = 36


def exchange(a, b, dim=DIM):
    index = np.arange(dim)
    index[[a, b]] = b, a
    return index


def moments_of(group, noise, seed=0, signs=False):
    """Numbers that a group leaves alone but for noise."""
    rng = np.random.default_rng(seed)
    pairs = 10 * rng.normal(size=(3, DIM, DIM))
    exact = Moments(
        10 * rng.normal(size=(2, DIM)), 10 * rng.normal(size=(1, DIM)), pairs + pairs.transpose(0, 2, 1)
    )
    exact = exact.averaged(joint_symmetry_of(group).elements)
    error = noise * rng.normal(size=(3, DIM, DIM)) / np.sqrt(2)
    return Moments(exact.even, exact.odd, exact.pairs + error + error.transpose(0, 2, 1), int(signs))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("pair", [(0, 5), (0, 1), (14, 20)])
def test_what_an_exchange_loses_is_the_difference_of_two_fits(pair, signed):
    group = TURN[None].copy()
    if signed:
        group = group + DIM
    moments = moments_of(TURN[None], 1.0, signs=signed)
    other = np.stack([conjugate(g, exchange(*pair)) for g in group])
    slow = group_fit(moments, joint_symmetry_of(group)) - group_fit(moments, joint_symmetry_of(other))
    assert exchange_loses(moments, joint_symmetry_of(group), pair) == pytest.approx(slow, rel=1e-9, abs=1e-9)


def with_small_orbits(moments, inputs, size):
    """Make all numbers of the orbits of some inputs smaller, so that they look alike."""
    orbits = joint_symmetry_of(TURN[None]).elements[:, inputs].ravel()
    scale = np.ones(DIM)
    scale[orbits] = size
    return Moments(moments.even * scale, moments.odd * scale, moments.pairs * np.outer(scale, scale)), orbits


def test_exchanged_inputs_are_brought_back():
    noisy = conjugate(TURN, exchange(0, 9))
    assert not same_group(noisy[None], TURN[None])
    moments, _ = with_small_orbits(moments_of(TURN[None], 0.0), [0, 9], 0.2)
    assert same_group(polished(noisy[None], moments), TURN[None])


def test_inputs_that_look_alike_are_unresolved_with_their_orbits():
    moments, alike = with_small_orbits(moments_of(TURN[None], 0.0), [0, 1], 0.001)
    bad, gaps = unresolved(TURN[None], moments)
    assert set(np.flatnonzero(bad)) == set(alike.tolist())
    assert all(gap > 3 for gap in gaps)
    assert not unresolved(TURN[None], moments_of(TURN[None], 0.5))[0].any()


def test_an_orbit_that_does_not_belong_is_an_outlier():
    moments = moments_of(TURN[None], 1.0)
    moments.pairs[:, 0, 10:] += 300.0
    moments.pairs[:, 10:, 0] += 300.0
    found = outliers(TURN[None], moments)
    assert set(joint_symmetry_of(TURN[None]).elements[:, 0].tolist()) <= set(np.flatnonzero(found).tolist())
    assert found.sum() < DIM / 2


def test_versions_of_one_element_and_of_its_powers_are_one():
    noisy = TURN[exchange(0, 9)]
    back, mirror = np.argsort(TURN), symmetry("hflip", (6, 6)).generators[0]
    kept = without_versions([(1.0, TURN), (1.1, noisy), (1.2, back), (1.3, TURN[TURN]), (2.0, mirror)])
    assert [misfit for misfit, _ in kept] == [1.0, 2.0]
    assert len(without_versions([(1.0, TURN[TURN]), (1.1, TURN)])) == 2, "a turn is no power of its square"


def counted(often, n=1000):
    x = np.zeros((n, len(often)))
    for k, count in enumerate(often):
        x[:count, k] = 1.0 + np.arange(count)
    return x


def test_without_a_gap_inputs_just_above_the_border_are_in_doubt():
    x = counted([5, *range(11, 60), 400])
    used, hardly = inputs_that_vary(x), inputs_that_hardly_vary(x)
    assert hardly.any()
    assert (used | ~hardly).all(), "those below the border are out anyway"
    assert not hardly[-1]
    gap = counted([5, 8, 40, 45, 50, 400])
    assert not inputs_that_hardly_vary(gap).any()
    assert inputs_that_vary(gap).tolist() == [False, False, True, True, True, True]


def test_inputs_that_were_set_aside_do_not_speak_against_a_symmetry():
    """A mirror of four numbers; the middle two were set aside, so that the group leaves them alone."""
    left, right = np.random.default_rng(0).normal(size=(2, 600, 2)) @ np.array([[1.0, 0.9], [0.0, 0.5]])
    x = np.concatenate([left, right[:, ::-1]], axis=1)
    ends, kept = np.array([[3, 1, 2, 0]]), np.array([True, False, False, True])
    assert inputs_against(joint_symmetry_of(ends), x, 300) > 3
    assert inputs_against(joint_symmetry_of(narrowed(ends, kept)), x[:, kept], 300) < 3
