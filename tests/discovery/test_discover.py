"""Discovery as a user sees it."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import invariantnet as inv
from invariantnet.discovery.structure import describe


def scrambled_digits(name, n, seed):
    rng = np.random.default_rng(seed)
    x, y = load_digits(return_X_y=True)
    chosen = rng.permutation(len(x))[:n]
    elements = inv.symmetry(name, (8, 8)).elements.numpy()
    x = np.take_along_axis(x[chosen], elements[rng.integers(len(elements), size=n)], axis=1)
    places = rng.permutation(64)
    return x[:, places], y[chosen], {tuple(np.argsort(places)[e[places]]) for e in elements}


def exchangeable(n, dim, seed):
    """Labels that depend on the sum of three inputs, and on the others one by one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim))
    return x, (x[:, :3].sum(axis=1)) ** 2 - 2 * x[:, 3:] @ np.arange(1, dim - 2) + 0.1 * rng.normal(size=n)


def test_the_turn_behind_scrambled_digits_is_found():
    x, y, elements = scrambled_digits("rot90", 300, seed=1)
    found = inv.discover(x, y, random_state=0)
    kept = np.setdiff1d(np.arange(64), found.set_aside)
    own = {tuple(e[kept]) for e in found.group.elements.numpy()}
    assert own == {tuple(np.array(e)[kept]) for e in elements}
    assert found.log_e_value > 10
    assert found.of_inputs
    assert "cyclic of order 4" in str(found)


def test_nothing_is_found_where_there_is_nothing():
    x, y = load_digits(return_X_y=True)
    found = inv.discover(x[:150], y[:150], random_state=0)
    assert not found.found
    assert found.group.order == 1
    assert found.exact_probability == 0
    assert "No symmetry found" in found.verdict


def test_exchangeable_inputs_are_found():
    x, y = exchangeable(300, 5, seed=0)
    found = inv.discover(x, y, random_state=3)
    assert found.group == inv.Group.from_permutations([[1, 0, 2, 3, 4], [1, 2, 0, 3, 4]])
    assert any(t.accepted for t in found.tested)


def test_equal_seeds_give_equal_results():
    x, y = exchangeable(100, 4, seed=2)
    found, again = (inv.discover(x, y, random_state=3) for _ in range(2))
    assert np.array_equal(found.generators, again.generators)
    assert [t.log_e_value for t in found.tested] == [t.log_e_value for t in again.tested]


def test_constant_and_repeated_columns_do_no_harm():
    x, y = exchangeable(200, 4, seed=1)
    wide = np.column_stack([np.zeros(200), x, x[:, 3]])
    found = inv.discover(wide, y, random_state=0)
    assert 0 in found.set_aside
    assert found.group.dim == 6


@pytest.mark.parametrize("dim", [1, 2])
def test_few_inputs_are_enough(dim):
    rng = np.random.default_rng(dim)
    x = rng.normal(size=(120, dim))
    found = inv.discover(x, x.sum(axis=1) ** 2 + 0.1 * rng.normal(size=120), random_state=0)
    assert found.group.dim == dim


def test_images_keep_their_pixels_in_order():
    x, y = load_digits(return_X_y=True)
    flat, shaped = (inv.discover(v[:50], y[:50], random_state=0) for v in (x, x.reshape(-1, 8, 8)))
    assert [t.log_e_value for t in flat.tested] == [t.log_e_value for t in shaped.tested]


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.random.default_rng(0).normal(size=(60, 5000)), np.arange(60) % 2, "at most 2,000"),
        (np.full((50, 3), np.nan), np.arange(50) % 2, "NaN"),
        (np.zeros((50, 3)), np.zeros(49), "one label per input"),
        (np.zeros(50), np.zeros(50), "no matrix"),
        (np.array([["a"]] * 50), np.zeros(50), "no matrix"),
    ],
)
def test_data_that_cannot_be_used_is_told_in_one_line(x, y, words):
    with pytest.raises(ValueError, match=words):
        inv.discover(x, y)


def test_alpha_is_a_level():
    with pytest.raises(ValueError, match=r"0\.05"):
        inv.discover(np.zeros((50, 3)), np.arange(50) % 2, alpha=5.0)


def test_too_few_examples_find_nothing():
    assert not inv.discover(np.random.default_rng(0).normal(size=(10, 3)), np.arange(10) % 2).found


@pytest.mark.parametrize(
    ("generators", "words"),
    [
        ([[0, 1, 2, 3]], "trivial"),
        ([[1, 2, 3, 0]], "cyclic of order 4"),
        ([[1, 2, 3, 0], [3, 2, 1, 0]], "dihedral of order 8"),
        ([[1, 2, 3, 0], [1, 0, 2, 3]], "all 24 permutations of 4 inputs"),
        ([[1, 0, 2, 3], [0, 1, 3, 2]], "all permutations within parts of 2 and 2 inputs"),
        ([[1, 0, 3, 2], [2, 3, 0, 1]], "2 independent exchanges, order 4"),
        ([[4, 1, 2, 3]], "cyclic of order 2"),
    ],
)
def test_groups_are_described(generators, words):
    assert describe(inv.Group.from_permutations(generators)) == words
