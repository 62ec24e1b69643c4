import math
from collections import defaultdict

import numpy as np
import pytest
import torch
from strategies import rotation
from sympy.combinatorics import PermutationGroup

import invariantnet as inv
from invariantnet import Group
from invariantnet.symmetries import _closure, joins, lookup
from invariantnet.symmetries import group as group_module
from invariantnet.symmetries._closure import as_matrices


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
)
def test_act_keeps_dtype_and_leading_shape(dtype):
    group = inv.symmetry("d4", shape=(3, 3))
    for leading in [(), (4,), (2, 0, 5)]:
        moved = group.act(torch.ones(*leading, 9).to(dtype))
        assert moved.dtype == dtype
        assert moved.shape == (*leading, 8, 9)


def test_act_on_another_device():
    moved = inv.symmetry("sign", shape=(3,)).act(torch.empty(2, 3, device="meta"))
    assert moved.device.type == "meta"
    assert moved.shape == (2, 2, 3)


def test_act_refuses_what_it_cannot_transform():
    with pytest.raises(ValueError, match="acts on 9 inputs, x has 8"):
        inv.symmetry("d4", shape=(3, 3)).act(torch.ones(8))
    with pytest.raises(ValueError, match="no negative values"):
        inv.symmetry("sign", shape=(3,)).act(torch.ones(3, dtype=torch.uint8))
    with pytest.raises(ValueError, match="floating-point"):
        Group.from_matrices([rotation(2 * np.pi / 3)]).act(torch.ones(2, dtype=torch.int64))


def test_huge_group_works_from_its_generators():
    group = inv.symmetry("permutations", shape=(28, 2))
    assert group.order == math.factorial(28)
    assert len(group.orbits().unique()) == 2
    assert inv.invariant_basis(group).shape == (2, 56)
    assert inv.reynolds_operator(group)[0, 0] == pytest.approx(1 / 28)
    with pytest.raises(ValueError, match="too many to list"):
        _ = group.elements
    with pytest.raises(ValueError, match="too many to list"):
        group.act(torch.ones(56))
    assert group.generators[0] in group
    assert np.roll(np.arange(56), 1) not in group
    assert inv.symmetry("cyclic", shape=(28, 2)) <= group


def test_order_of_a_huge_join_is_exact():
    joined = inv.join(inv.symmetry("permutations", shape=(12,)), inv.symmetry("sign", shape=(12,)))
    assert joined.order == 2 * math.factorial(12)
    assert joined.name == "permutations+sign"


def test_subgroups_and_equality_are_those_of_sets():
    groups = {name: inv.symmetry(name, shape=(4, 4)) for name in ("trivial", "rot180", "rot90", "flips", "d4")}
    assert groups["trivial"] <= groups["rot180"] <= groups["rot90"] <= groups["d4"]
    assert groups["rot180"] <= groups["flips"] <= groups["d4"]
    assert not groups["rot90"] <= groups["flips"]
    other_generators = Group.from_permutations(groups["rot90"].elements[[3, 2]], name="backwards")
    assert other_generators == groups["rot90"]
    assert hash(other_generators) == hash(groups["rot90"])
    assert groups["rot90"] != groups["flips"]
    assert groups["rot90"] != inv.symmetry("rot90", shape=(3, 3))
    dense = Group.from_matrices(as_matrices(groups["d4"].generators) + 0.0)
    assert dense == groups["d4"]


def test_matrix_groups_compare_up_to_rounding():
    sixth = rotation(np.pi / 3)
    group = Group.from_matrices([sixth, np.diag([1.0, -1.0])], name="d6")
    assert group.order == 12
    assert Group.from_matrices([sixth @ sixth]) <= group
    assert np.linalg.matrix_power(sixth, 7) in group
    assert rotation(0.1) not in group
    assert Group.from_matrices([-np.eye(2)]) <= group, "index arrays and matrices compare too"


def test_roundings_of_large_entries_are_large():
    stretch = np.diag([1e4, 1.0])
    turn = stretch @ rotation(2 * np.pi / 5) @ np.linalg.inv(stretch)
    group = Group.from_matrices([turn], name="fifth of a stretched turn")
    assert group.order == 5
    assert turn * (1 + 1e-9) in group
    assert turn * (1 + 1e-3) not in group


@pytest.mark.parametrize(
    ("generator", "fault"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], "singular"),
        ([[1.0, 1.0], [0.0, 1.0]], "infinite order"),
        ([[2.0, 0.0], [0.0, 0.5]], "eigenvalue has modulus"),
        (rotation(1.0).tolist(), "infinite order"),
        ([[np.nan, 0.0], [0.0, 1.0]], "not finite"),
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "square matrices"),
        ([[1.0, 0.0], [0.0]], "square matrices of one size"),
        (inv.lift([[0, -1], [1, 0]], points=3), "is a symmetry already: pass it as it is"),
    ],
)
def test_matrices_that_generate_no_finite_group(generator, fault):
    with pytest.raises(ValueError, match=fault):
        Group.from_matrices([generator], max_order=500)


def test_two_mirrors_at_an_irrational_angle_are_infinite():
    mirror = np.diag([1.0, -1.0])
    with pytest.raises(ValueError, match=r"more than 300 elements, or infinitely many: check .* raise max_order"):
        Group.from_matrices([mirror, rotation(1.0) @ mirror @ rotation(-1.0)], max_order=300)


@pytest.mark.parametrize(
    ("generators", "fault"),
    [
        ([[0, 0, 1]], "not a permutation"),
        ([[0, 1, 7]], "not a permutation"),
        ([[-1, 1, 2]], "not a permutation"),
        ([0, 1, 2], "list of index arrays"),
        ([], "list of index arrays"),
        ([[0.5, 1.0]], "integers"),
    ],
)
def test_arrays_that_are_no_permutations(generators, fault):
    with pytest.raises(ValueError, match=fault):
        Group.from_permutations(generators)


def cycles(*lengths, still=0):
    """One permutation with cycles of these lengths, and inputs that it leaves where they are."""
    starts = np.cumsum([0, *lengths])
    turned = [start + np.roll(np.arange(n), 1) for start, n in zip(starts[:-1], lengths, strict=True)]
    return np.concatenate([*turned, starts[-1] + np.arange(still)])


FIFTEEN_THOUSAND = (3, 5, 7, 11, 13)
"""Cycle lengths of a permutation of order 15,015."""


def test_raising_max_order_lists_more_elements():
    generators = [cycles(*FIFTEEN_THOUSAND)]
    with pytest.raises(ValueError, match=r"more than 10,000 elements: .*raise max_order \(up to 2,564,102 can"):
        Group.from_permutations(generators)
    raised = Group.from_permutations(generators, max_order=15_015)
    assert raised.order == 15_015
    assert raised.can_list_elements
    assert raised.elements.shape == (15_015, 39)
    lazy = Group.from_permutations(generators, max_order=None)
    assert lazy.order == 15_015
    with pytest.raises(ValueError, match=r"too many to list: .*max_order=15015"):
        _ = lazy.elements


@pytest.mark.parametrize("max_order", [10_000, 20_000])
def test_raising_max_order_is_not_advised_where_memory_is_the_limit(max_order, monkeypatch):
    monkeypatch.setattr(_closure, "MAX_ENTRIES", 9_000 * 39)
    generators = [cycles(*FIFTEEN_THOUSAND)]
    with pytest.raises(ValueError, match="more than 9,000 elements") as error:
        Group.from_permutations(generators, max_order=max_order)
    assert "raise" not in str(error.value)
    assert "max_order=None" in str(error.value)
    assert Group.from_permutations(generators, max_order=None).order == 15_015
    for angle in (1.0, 2 * np.pi / 15_015):
        monkeypatch.setattr(_closure, "MAX_ENTRIES", 100 * 4)
        with pytest.raises(ValueError, match="no power up to 100 ") as error:
            Group.from_matrices([rotation(angle)], max_order=max_order)
        assert "raise" not in str(error.value)
    mirror = np.diag([1.0, -1.0])
    with pytest.raises(ValueError, match="more than 100 elements, or infinitely many") as error:
        Group.from_matrices([mirror, rotation(1.0) @ mirror @ rotation(-1.0)], max_order=max_order)
    assert "raise" not in str(error.value)


def test_sampling_does_not_depend_on_whether_elements_were_listed():
    """A model that is stored keeps generators only, and must draw the same elements when it is loaded."""
    generators = [cycles(*FIFTEEN_THOUSAND)]
    listed, lazy = (Group.from_permutations(generators, max_order=limit) for limit in (20_000, None))
    np.testing.assert_array_equal(listed.sample(5, seed=0), lazy.sample(5, seed=0))


@pytest.fixture
def closed(monkeypatch):
    """Names of the groups all of whose elements are listed, one entry for each time, in sets of equal elements."""
    lookup._kept.cache_clear()
    names = defaultdict(list)

    def counting(close):
        def counted(generators, most, name):
            elements = close(generators, most, name)
            names[frozenset(element.tobytes() for element in elements)].append(name)
            return elements

        return counted

    for module in (group_module, joins):
        for function in ("close_indices", "close_matrices"):
            monkeypatch.setattr(module, function, counting(getattr(_closure, function)), raising=False)
    return names


def test_elements_are_listed_once(closed):
    d4 = inv.symmetry("d4", shape=(4, 4))
    assert len(d4.elements) == d4.order == 8
    assert [*closed.values()] == [["d4"]]
    sixth = Group.from_matrices([rotation(np.pi / 3)], name="sixth")
    assert len(sixth.elements) == sixth.order == 6
    assert [*closed.values()] == [["d4"], ["sixth"]]


def test_elements_of_a_join_are_listed_once(closed):
    joined = inv.join(inv.symmetry("rot90", shape=(4, 4)), inv.symmetry("sign", shape=(4, 4)))
    assert len(joined.elements) == joined.order == 8
    assert [*closed.values()].count(["rot90+sign"]) == 1
    sixth = Group.from_matrices([rotation(np.pi / 3)], name="sixth")
    mirror = Group.from_matrices([np.diag([1.0, -1.0])], name="mirror")
    joined = inv.join(sixth, mirror)
    assert len(joined.elements) == joined.order == 12
    assert [*closed.values()].count(["sixth+mirror"]) == 1


@pytest.mark.parametrize("symmetries", [("rot90", "flips"), "auto"])
def test_a_fit_lists_the_elements_of_each_group_once(closed, symmetries, brief_comparison):
    x = np.random.default_rng(0).normal(size=(40, 16))
    inv.InvariantClassifier(symmetries, (4, 4), hidden=2, n_networks=1, epochs=1).fit(x, x[:, 0] > 0)
    # Of images, reading rows backwards is a mirror image by another name: both are in the catalogue.
    assert all(len(listed) == 1 or sorted(listed) == ["reversal", "vflip"] for listed in closed.values())
    assert {("rot90",), ("flips",), ("d4",)} <= {tuple(listed) for listed in closed.values()}


def noisy(index):
    """The matrix of a permutation, with the rounding errors of a computation."""
    return as_matrices(np.asarray(index)[None])[0] + 1e-13 * np.sin(np.arange(len(index) ** 2)).reshape(
        -1, len(index)
    )


def in_the_first_plane(matrix, dim=12):
    whole = np.eye(dim)
    whole[:2, :2] = matrix
    return whole


def test_matrix_groups_compare_with_permutations_that_cannot_be_listed():
    every = inv.symmetry("permutations", shape=(12,))
    turn = Group.from_matrices([in_the_first_plane(rotation(2 * np.pi / 3))], name="turn")
    assert not turn <= every
    assert not every <= turn
    assert turn != every
    cycle = Group.from_matrices([noisy(np.roll(np.arange(12), 1))], name="cycle")
    assert cycle.is_matrix_group
    assert cycle <= every
    assert inv.join(cycle, every) is every
    assert inv.join(every, cycle) is every


def test_joins_of_matrix_groups_and_permutations_that_cannot_be_listed():
    every = inv.symmetry("permutations", shape=(12,))
    negative = Group.from_matrices([-noisy(np.roll(np.arange(12), 1))], name="negative")
    assert negative.is_matrix_group
    assert not negative <= every
    assert inv.join(negative, every).order == 2 * math.factorial(12)
    turn = Group.from_matrices([in_the_first_plane(rotation(2 * np.pi / 3))], name="turn")
    for pair in ((turn, every), (every, turn)):
        with pytest.raises(ValueError, match=r"has at least 479,001,600 elements.*joins=False") as error:
            inv.join(*pair)
        assert "\n" not in str(error.value)
        assert "max_order" not in str(error.value)


def test_a_join_that_is_infinite_advises_no_max_order(monkeypatch):
    monkeypatch.setattr(joins, "MAX_ORDER", 500)
    turn = Group.from_matrices([in_the_first_plane(rotation(2 * np.pi / 3), dim=4)], name="turn")
    with pytest.raises(ValueError, match=r"turn\+cyclic .* or infinitely many.*joins=False") as error:
        inv.join(turn, inv.symmetry("cyclic", shape=(4,)))
    assert "max_order" not in str(error.value)


def test_sign_changes_have_no_orbits():
    with pytest.raises(ValueError, match="use invariant_basis"):
        inv.symmetry("sign", shape=(3,)).orbits()


def test_what_is_no_element():
    d4, every = inv.symmetry("d4", shape=(3, 3)), inv.symmetry("permutations", shape=(20, 2))
    assert np.arange(9) in d4
    assert np.arange(5) not in d4
    assert np.eye(9) not in d4
    third = Group.from_matrices([rotation(2 * np.pi / 3)])
    assert rotation(4 * np.pi / 3) in third
    assert -rotation(4 * np.pi / 3) not in third
    negated = np.arange(40)
    assert negated in every
    negated[0] = 40
    assert negated not in every, "it changes a sign"


@pytest.mark.parametrize("name", ["d4", "permutations"])
def test_as_many_are_sampled_as_are_asked_for(name):
    group = inv.symmetry(name, shape=(20, 20))
    assert group.can_list_elements == (name == "d4")
    drawn = group.sample(5, seed=0)
    assert drawn.shape == (5, 400)
    assert (drawn[0] == np.arange(400)).all()


def test_which_groups_are_listed(monkeypatch):
    def listed(order, entries):
        monkeypatch.setattr(group_module, "MAX_ORDER", order)
        monkeypatch.setattr(_closure, "MAX_ENTRIES", entries)
        return Group("d4", generators, known_order=8).can_list_elements

    generators = inv.symmetry("d4", shape=(3, 3)).generators

    assert listed(8, 8 * 9)
    assert not listed(7, 8 * 9)
    assert not listed(8, 8 * 9 - 1)


def test_more_matrices_than_usual_can_be_listed_where_they_were_asked_for():
    turns = Group.from_matrices([rotation(2 * np.pi / 12_000)], max_order=12_000)
    assert turns.can_list_elements
    assert turns.sample(3, seed=0).shape == (3, 2, 2)


def test_no_chance_leads_to_a_listing_of_all_permutations(monkeypatch):
    def lists(*_, **__):
        raise AssertionError("this takes hours for larger ones")

    monkeypatch.setattr(PermutationGroup, "_eval_is_alt_sym_naive", lists)
    generators = inv.symmetry("permutations", shape=(30,)).generators
    for _ in range(100):
        assert Group("every", generators).order == math.factorial(30)
    assert Group("turns", inv.symmetry("cyclic", shape=(30,)).generators).order == 30


@pytest.mark.parametrize("name", ["cyclic", "permutations", "sign"])
@pytest.mark.parametrize("dim", [3, 12])
def test_what_is_no_element_is_in_no_group(name, dim):
    group = inv.symmetry(name, shape=(dim,))
    assert np.arange(dim) in group
    for wrong in (np.arange(dim) + 0.4, np.zeros(dim, int), -np.arange(1, dim + 1), np.arange(dim) * 5):
        assert wrong not in group
