import numpy as np
import pytest
import torch
from strategies import groups, rotation

import invariantnet as inv
from invariantnet import Group
from invariantnet.symmetries._closure import random_products
from invariantnet.symmetries.measure import Measure


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
        random_products(group.generators, 5000, np.random.default_rng(0)),
    ):
        _, counts = np.unique(elements[1:], axis=0, return_counts=True)
        assert len(counts) == 24
        assert counts.min() > 120
        assert counts.max() < 320


def test_matrices_that_differ_by_rounding_are_one_element():
    """The half turn, as the third power of a sixth, and as index array."""
    sixth, half = Group.from_matrices([rotation(np.pi / 3)]), Group.from_matrices([-np.eye(2)])
    assert not half.is_matrix_group
    assert not any((member == -np.eye(2)).all() for member in sixth.elements.numpy())
    for pair in ([sixth, half], [half, sixth]):
        measure = Measure.of(pair)
        assert measure.elements.shape == (6, 2, 2)
        torch.testing.assert_close(measure.elements[0], torch.eye(2, dtype=torch.float64))
        assert sorted(measure.haar.sum(1).tolist()) == pytest.approx([1 / 6] * 4 + [2 / 3] * 2)


@pytest.mark.parametrize("placement", ["features", "outputs"])
def test_a_mixture_of_matrices_and_index_arrays(placement):
    from invariantnet.nn import Symmetrized, mlp

    third = Group.from_matrices([rotation(2 * np.pi / 3)])
    network = Symmetrized(mlp((2,), 3, 4), [*groups("trivial", shape=(2,)), third], placement).double()
    x, one_hot = torch.rand(5, 2).double(), torch.tensor([0.0, 1.0]).double()
    plain, moved = (network(t, one_hot) for t in (x, x @ torch.from_numpy(rotation(2 * np.pi / 3)).T))
    torch.testing.assert_close(plain, moved, atol=1e-6, rtol=1e-6)
    assert not torch.allclose(network(x), plain)
