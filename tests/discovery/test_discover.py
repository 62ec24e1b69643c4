"""Discovery as a user sees it."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

import invariantnet as inv
from invariantnet.discovery import evidence
from invariantnet.discovery.columns import Columns
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
    assert "At least this group holds." in replace(found, exact_probability=0.99, room=True).verdict
    sure = replace(found, exact_probability=0.99, room=False)
    assert "Among the groups that were proposed, it is exactly this one" in sure.verdict
    assert "a larger one that no proposal contained may hold too" in sure.verdict
    assert "It is exactly this group with probability 0.990." in replace(sure, test="all labels").verdict


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


def test_constant_columns_are_set_aside_and_repeated_ones_count_once():
    x, y = exchangeable(200, 4, seed=1)
    wide = np.column_stack([np.zeros(200), x, x[:, 3]])
    found, plain = inv.discover(wide, y, random_state=0), inv.discover(x, y, random_state=0)
    assert found.set_aside == (0,)
    assert found.repeated == (5,)
    assert found.log_e_value == plain.log_e_value
    assert found.group == inv.Group.from_permutations([[0, 2, 1, 3, 4, 5], [0, 2, 3, 1, 4, 5]])
    assert "1 of 6 inputs repeat earlier ones" in found.verdict


def test_exchanges_of_equal_inputs_are_no_discovery():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    found = inv.discover(x[:, [0, 0, 1, 2]], x @ [3.0, -1.0, 1.0] + 0.1 * rng.normal(size=200), random_state=0)
    assert not found.found
    assert found.repeated == (1,)


def test_copies_follow_their_inputs():
    x, y = exchangeable(200, 4, seed=1)
    found = inv.discover(np.column_stack([x, x]), y, random_state=0)
    assert found.group == inv.Group.from_permutations([[1, 0, 2, 3, 5, 4, 6, 7], [1, 2, 0, 3, 5, 6, 4, 7]])


def test_copies_stay_where_others_have_none():
    columns = Columns(np.array([0, 1, 0, 3]), np.ones(4, bool), np.zeros(4, bool))
    assert columns.widen(np.array([[1, 0, 2], [0, 1, 5]])).tolist() == [[1, 0, 2, 3], [0, 1, 2, 7]]


def test_whole_numbers_are_classes_unless_the_task_says_otherwise():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, size=(100, 2)).astype(float)
    y = x[:, 0] + x[:, 1]
    as_numbers = inv.discover(x, y, task="numbers", random_state=0)
    assert as_numbers.log_e_value == inv.discover(x, y + 0.25, random_state=0).log_e_value
    as_classes = inv.discover(x, y, task="classes", random_state=0)
    assert as_classes.log_e_value == inv.discover(x, y.astype(int), random_state=0).log_e_value
    assert as_classes.log_e_value != as_numbers.log_e_value


@pytest.mark.usefixtures("annotations_unchecked")
@pytest.mark.parametrize(
    ("y", "task", "words"),
    [
        (np.arange(50), "auto", "task='numbers'"),
        (np.array(["a", "b"] * 25), "numbers", "task='classes'"),
        (np.arange(50) % 2, "regression", "choose among auto, classes, numbers"),
    ],
)
def test_a_task_that_does_not_suit_the_labels_is_told(y, task, words):
    with pytest.raises(ValueError, match=words):
        inv.discover(np.zeros((50, 3)), y, task=task)


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


def test_memory_does_not_grow_with_the_square_of_the_examples(monkeypatch):
    monkeypatch.setattr(evidence, "MOST_EXAMPLES", 200)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 2))
    y = (x[:, 0] + x[:, 1]) ** 2 + 0.5 * rng.normal(size=len(x))

    tracemalloc.start()
    found = inv.discover(x, y, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found.found
    assert peak < 50e6  # one matrix of all examples would take 3 GB


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
