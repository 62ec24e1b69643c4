"""Laws of groups and of their joins, over the catalogue and over random groups."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import CATALOGUE_GROUPS, any_group, matrices, permutation_groups

import invariantnet as inv
from invariantnet.inference.hypotheses import with_joins

on_four_points = permutation_groups(st.just(4))


@given(any_group)
def test_elements_form_a_group(group):
    elements = matrices(group)
    np.testing.assert_allclose(elements[0], np.eye(group.dim), atol=1e-9)
    assert len(elements) == group.order
    some = elements[:: max(1, len(elements) // 12)]
    for a in some:
        assert np.abs(elements - np.linalg.inv(a)).max(axis=(1, 2)).min() < 1e-7, "an inverse is missing"
        for b in some:
            distance = np.abs(elements - a @ b).max(axis=(1, 2))
            assert (distance < 1e-7).sum() == 1, "a product is missing, or listed twice"


@given(on_four_points, on_four_points)
def test_a_join_is_the_smallest_group_with_both(a, b):
    joined = inv.join(a, b)
    assert a <= joined
    assert b <= joined
    assert joined == inv.join(b, a)
    assert (joined == a) == (b <= a)
    both = inv.Group.from_permutations([*a.elements, *b.elements])
    assert both == joined, "every element is a product of elements of the two"


@given(
    st.lists(
        st.sampled_from([g for g in CATALOGUE_GROUPS if g.shape == (4, 4) and g.order < 20]),
        min_size=1,
        max_size=3,
    )
)
def test_closure_contains_every_join_once(candidates):
    found = with_joins(candidates)
    assert found[0].order == 1
    for a in found:
        assert sum(a == b for b in found) == 1
        for b in found:
            assert any(inv.join(a, b) == c for c in found)
