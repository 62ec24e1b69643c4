"""Groups against slow, obvious ways to the same results: sympy, dense matrices, and listing all elements."""

import numpy as np
import pytest
import torch
from hypothesis import given
from strategies import any_group, index_group, matrices, permutation_groups
from sympy.combinatorics import Permutation, PermutationGroup

from invariantnet import Group, symmetry
from invariantnet.symmetries._unlisted import UnlistedGroup


@given(permutation_groups())
def test_order_and_orbits_agree_with_sympy(group):
    oracle = PermutationGroup([Permutation(g.tolist()) for g in group.generators])
    assert group.order == oracle.order()
    labels = group.orbits().numpy()
    ours = {frozenset(np.flatnonzero(labels == k).tolist()) for k in range(labels.max() + 1)}
    theirs = {frozenset(orbit) for orbit in oracle.orbits()}
    assert {o for o in ours if len(o) > 1} == {o for o in theirs if len(o) > 1}
    assert sum(map(len, ours)) == group.dim


@given(any_group)
def test_act_equals_the_matrices(group):
    x = torch.randn(2, 3, group.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = np.einsum("gij,abj->abgi", matrices(group), x.numpy())
    np.testing.assert_allclose(group.act(x).numpy(), expected, atol=1e-9)


@given(index_group)
def test_lazy_order_equals_the_enumerated_one(group):
    assert Group.from_permutations(group.generators, max_order=None).order == group.order


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_groups_of_all_permutations_are_told_from_their_generators(dim):
    every = np.stack([np.roll(np.arange(dim), 1), np.r_[1, 0, np.arange(2, dim)]])
    odd = np.array([Permutation(g.tolist()).signature() < 0 for g in every])
    for generators in (
        every,
        np.concatenate([every, np.arange(dim, 2 * dim)[None]]),
        np.where(odd[:, None], every + dim, every),
        np.where(odd[:, None], every, every + dim),
        np.concatenate([every, np.r_[dim, np.arange(1, dim)][None]]),
    ):
        unlisted, listed = UnlistedGroup(generators), Group.from_permutations(generators)
        assert unlisted.order == listed.order
        assert all(element in unlisted for element in listed.elements.numpy()[:20])
        for signs in (np.zeros(dim, int), np.full(dim, dim), np.r_[dim, np.zeros(dim - 1, int)]):
            assert ((np.arange(dim) + signs) in unlisted) == ((np.arange(dim) + signs) in listed)


@given(index_group, permutation_groups())
def test_members_of_unlisted_groups_are_those_of_the_list(group, other):
    unlisted = UnlistedGroup(group.generators)
    members = group.elements.numpy()[:10]
    assert all(element in unlisted for element in members)
    strangers = [e for e in other.elements.numpy()[:10] if other.dim == group.dim]
    strangers += [np.roll(members[-1], 1), members[-1][::-1]]
    for element in strangers:
        assert (element in unlisted) == (element in group)


def test_large_abelian_groups_refuse_strangers_without_listing_anything(monkeypatch):
    """Sympy takes minutes for shifts of 3×128×128."""
    shifts, channels = (symmetry(name, (3, 32, 32)) for name in ("shifts", "channels"))
    unlisted = UnlistedGroup(shifts.generators)
    monkeypatch.setattr(UnlistedGroup, "_sympy", None)
    for name in ("hflip", "rot90", "transpose"):
        assert symmetry(name, (3, 32, 32)).generators[0] not in unlisted
    assert channels.generators[0] not in unlisted, "it leaves the orbits"
    assert all(g in unlisted for g in (*shifts.generators, np.arange(shifts.dim)))
