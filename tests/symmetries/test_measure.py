import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import CATALOGUE_GROUPS, matrix_groups

import invariantnet as inv
from invariantnet import Group
from invariantnet.inference.hypotheses import hypotheses
from invariantnet.symmetries import measure as measures
from invariantnet.symmetries.lookup import join, symmetries_for
from invariantnet.symmetries.measure import Measure


def names(candidates, **options):
    return [g.name for g in hypotheses(candidates, **options)]


def groups(*which, shape=(4, 4)):
    return [inv.symmetry(name, shape=shape) for name in which]


def test_candidates_are_closed_under_joins():
    assert names(groups("rot90", "flips")) == ["trivial", "flips", "rot90", "d4"]
    assert names(groups("rot90", "flips"), closed=False) == ["trivial", "flips", "rot90"]
    assert names(groups("hflip", "vflip", "transpose")) == [
        "trivial",
        "hflip",
        "transpose",
        "vflip",
        "flips",
        "d4",
    ]
    assert names(groups("trivial")) == ["trivial"]


def test_order_of_candidates_does_not_matter():
    which = ["rot90", "sign", "hflip", "transpose"]
    assert names(groups(*which)) == names(groups(*reversed(which)))


@given(
    st.lists(
        st.sampled_from([g for g in CATALOGUE_GROUPS if g.shape == (4, 4) and g.order < 20]),
        min_size=1,
        max_size=3,
    )
)
def test_closure_contains_every_join_once(candidates):
    found = hypotheses(candidates)
    assert found[0].order == 1
    for a in found:
        assert sum(a == b for b in found) == 1
        for b in found:
            assert any(inv.join(a, b) == c for c in found)


def test_equal_groups_are_merged():
    assert names(groups("hflip", "rot180", "flips", shape=(1, 5))) == ["trivial", "flips"]
    assert names(groups("vflip", "hflip", shape=(1, 1))) == ["trivial"]


def test_as_many_hypotheses_as_are_promised():
    swaps = [[0, *range(1, 40)] for _ in range(32)]
    for i, swap in enumerate(swaps, 1):
        swap[0], swap[i] = i, 0
    candidates = [Group.from_permutations([swap], name=f"swap{i}") for i, swap in enumerate(swaps)]
    assert len(hypotheses(candidates[:31], closed=False)) == 32
    with pytest.raises(ValueError, match="more than 32 hypotheses"):
        hypotheses(candidates, closed=False)


def test_of_equal_groups_the_plainer_name_stays():
    (flips,) = groups("flips")
    joined = Group("a+z", flips.generators, flips.shape, known_order=4)
    for candidates in ([joined, flips], [flips, joined]):
        assert names(candidates) == ["trivial", "flips"]


def test_too_many_and_ill_fitting_candidates():
    with pytest.raises(ValueError, match="more than 4 hypotheses"):
        hypotheses(groups("hflip", "vflip", "transpose"), limit=4)
    with pytest.raises(ValueError, match="at least one"):
        hypotheses([])
    with pytest.raises(ValueError, match="candidates on inputs of different lengths"):
        hypotheses([*groups("rot90"), *groups("rot90", shape=(3, 3))])


@given(
    st.lists(st.sampled_from([g for g in CATALOGUE_GROUPS if g.shape == (2, 3, 3)]), min_size=1, max_size=3),
    st.integers(0, 99),
)
def test_weights_are_those_of_the_mixture(candidates, seed):
    pi = torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(len(candidates)))).float()
    measure = Measure.of(candidates)
    weights = measure.weights(pi)
    assert float(weights.sum()) == pytest.approx(1, abs=1e-5)
    x = torch.randn(18, generator=torch.Generator().manual_seed(seed))
    mean = (weights[:, None] * inv.groups.transform(x, measure.elements)).sum(0)
    expected = sum(p * g.act(x).mean(0) for p, g in zip(pi, candidates, strict=True))
    torch.testing.assert_close(mean, expected, atol=1e-5, rtol=1e-4)
    assert len(measure.elements.unique(dim=0)) == len(measure.elements)


@given(matrix_groups())
def test_matrix_elements_are_shared(group):
    assert len(Measure.of([group, group]).elements) == group.order


def test_huge_groups_are_sampled():
    group = inv.symmetry("permutations", shape=(20, 2))
    measure = Measure.of([group], sampled=100)
    assert measure.elements.shape == (100, 40)
    assert torch.equal(measure.elements[0], torch.arange(40))
    assert all(element in group for element in measure.elements[:10])


def test_what_can_be_listed_within_the_limit_is_not_sampled():
    (d4,) = groups("d4")
    assert torch.equal(Measure.of([d4], sampled=8).haar, torch.full((8, 1), 1 / 8))
    assert len(Measure.of([d4], sampled=3).elements) <= 3


def test_sampled_elements_are_the_same_every_time():
    (group,) = groups("permutations", shape=(20, 2))
    drawn = Measure.of([group], sampled=10).elements
    assert torch.equal(drawn, Measure.of([group], sampled=10, seed=0).elements)
    assert not torch.equal(drawn, Measure.of([group], sampled=10, seed=1).elements)


def test_sampled_elements_are_nearly_uniform():
    group = Group.from_permutations([[1, 0, 2, 3], [1, 2, 3, 0]])
    for elements in (
        group.sample(5000, seed=0),
        inv.closure.random_products(group.generators, 5000, np.random.default_rng(0)),
    ):
        _, counts = np.unique(elements[1:], axis=0, return_counts=True)
        assert len(counts) == 24
        assert counts.min() > 120
        assert counts.max() < 320


def turn(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_matrices_that_differ_by_rounding_are_one_element():
    """The half turn, as the third power of a sixth, and as index array."""
    sixth, half = Group.from_matrices([turn(np.pi / 3)]), Group.from_matrices([-np.eye(2)])
    assert not half.is_matrix_group
    assert not any((member == -np.eye(2)).all() for member in sixth.elements.numpy())
    for groups in ([sixth, half], [half, sixth]):
        measure = Measure.of(groups)
        assert measure.elements.shape == (6, 2, 2)
        torch.testing.assert_close(measure.elements[0], torch.eye(2, dtype=torch.float64))
        assert sorted(measure.haar.sum(1).tolist()) == pytest.approx([1 / 6] * 4 + [2 / 3] * 2)


@pytest.mark.parametrize("placement", ["features", "outputs"])
def test_a_mixture_of_matrices_and_index_arrays(placement):
    from invariantnet.nn import Symmetrized, mlp

    third = Group.from_matrices([turn(2 * np.pi / 3)])
    network = Symmetrized(mlp((2,), 3, 4), [*groups("trivial", shape=(2,)), third], placement).double()
    x, one_hot = torch.rand(5, 2).double(), torch.tensor([0.0, 1.0]).double()
    plain, moved = (network(t, one_hot) for t in (x, x @ torch.from_numpy(turn(2 * np.pi / 3)).T))
    torch.testing.assert_close(plain, moved, atol=1e-6, rtol=1e-6)
    assert not torch.allclose(network(x), plain)


def test_two_groups_of_one_name_are_not_told_apart_so_they_are_refused():
    ours = [Group.from_permutations([swap]) for swap in ([1, 0, 2, 3], [0, 1, 3, 2])]
    with pytest.raises(ValueError, match="two different groups are called 'custom'"):
        hypotheses(ours)
    with pytest.raises(ValueError, match="are called 'trivial'"):
        hypotheses([Group.from_permutations([[1, 0, 2, 3]], name="trivial")])
    assert len(hypotheses([ours[0], Group.from_permutations([[1, 0, 2, 3]])])) == 2, "equal groups are merged"


@pytest.mark.parametrize("shape", [(28, 28), (3, 16, 16)])
def test_too_many_joins_are_told_before_those_of_large_groups_are_made(shape, monkeypatch):
    joined = []
    monkeypatch.setattr(measures, "join", lambda a, b: joined.append((a, b)) or join(a, b))
    with pytest.raises(ValueError, match="more than 32 hypotheses"):
        hypotheses(symmetries_for(shape))
    assert all(g.can_list_elements for pair in joined for g in pair)
