"""Exchanges of two images: their effect against a slow reference, and what they reach."""

import numpy as np
import pytest

from invariantnet.discovery._matching import Moments
from invariantnet.discovery._tabu import ALLOWED, Tabu
from invariantnet.symmetries.lookup import symmetry


def random_moments(dim, seed):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(3, dim, dim))
    return Moments(rng.normal(size=(2, dim)), rng.normal(size=(1, dim)), pairs + pairs.transpose(0, 2, 1))


def objective(moments, index):
    moving = int((index != np.arange(moments.dim)).sum())
    touched = moments.dim**2 - (moments.dim - moving) ** 2
    return moments.loss(index) - ALLOWED * len(moments.pairs) * touched


def test_changes_are_those_of_the_objective():
    moments, rng = random_moments(7, seed=0), np.random.default_rng(1)
    index = rng.permutation(7)
    index[[2, int(np.flatnonzero(index == 2)[0])]] = index[[int(np.flatnonzero(index == 2)[0]), 2]]
    changes, moving = Tabu(moments, rng).changes(index)
    for i in range(7):
        for j in range(i):
            other = index.copy()
            other[[i, j]] = other[[j, i]]
            slow = objective(moments, other) - objective(moments, index)
            assert changes[i, j] == pytest.approx(slow, abs=1e-3)
            assert moving[i, j] == (other != np.arange(7)).sum()


def test_a_half_right_turn_becomes_a_whole_one():
    turn = symmetry("rot90", (5, 5)).generators[0]
    moments = random_moments(25, seed=2).averaged(symmetry("rot90", (5, 5)).elements.numpy())
    rng = np.random.default_rng(3)
    noisy, wrong = turn.copy(), rng.permutation(25)[:12]
    noisy[wrong] = noisy[rng.permutation(wrong)]
    found = Tabu(moments, rng).improved(noisy, 100)
    assert moments.loss(found) == pytest.approx(0, abs=1e-9)
    assert not np.array_equal(found, np.arange(25))
