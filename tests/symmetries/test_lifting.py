"""A matrix that moves one point, lifted to sets of points."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import invariantnet as inv


@given(order=st.integers(1, 8), points=st.integers(1, 5))
def test_every_point_is_moved_alike(order, points):
    angle = 2 * np.pi / order
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    group = inv.lift(turn, points=points)
    assert (group.order, group.shape) == (order, (points, 2))
    x = torch.randn(points, 2, dtype=torch.float64)
    copies = group.act(x.flatten()).unflatten(-1, (points, 2))
    turned = {tuple(np.round(x.numpy() @ np.linalg.matrix_power(turn, k).T, 6).flatten()) for k in range(order)}
    assert {tuple(np.round(copy.numpy(), 6).flatten() + 0.0) for copy in copies} == {
        tuple(np.array(t) + 0.0) for t in turned
    }


def test_a_lifted_group_joins_with_the_order_of_the_points():
    mirror = inv.lift([[-1, 0], [0, 1]], points=3, name="mirror")
    both = inv.join(mirror, inv.symmetry("permutations", shape=(3, 2)))
    assert both.order == 12
    turn = inv.lift(np.array([[0.5, -(3**0.5) / 2], [3**0.5 / 2, 0.5]]), points=12, name="sixths")
    with pytest.raises(ValueError, match=r"joins=False.*not found"):
        inv.join(turn, inv.symmetry("permutations", shape=(12, 2)))


@pytest.mark.parametrize(
    ("matrix", "points", "fault"),
    [
        ([[1, 0], [0, 1]], 0, "no number of points"),
        ([[1, 0, 0], [0, 1, 0]], 3, "does not act on points"),
        ([1, 0], 3, "does not act on points"),
        ([[1, 0], [0, 0]], 3, "invertible"),
        ([["a", "b"], ["c", "d"]], 3, "something else than numbers"),
        ([[1, 1], [0, 1]], 3, "infinite"),
    ],
)
def test_what_cannot_be_lifted(matrix, points, fault):
    with pytest.raises(ValueError, match=fault):
        inv.lift(matrix, points=points)
