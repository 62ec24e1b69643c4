import numpy as np
import pytest
import torch
from scipy.linalg import orth
from strategies import rotation

import invariantnet as inv
from invariantnet import Group


def test_operator_of_a_skew_representation_is_not_symmetric_and_the_basis_holds_left_vectors():
    skew = np.array([[1.0, 0.7], [0.0, 1.0]])
    group = Group.from_matrices([np.linalg.inv(skew) @ np.diag([1.0, -1.0]) @ skew])
    operator = inv.reynolds_operator(group, dtype=torch.float64)
    assert not torch.allclose(operator, operator.mT)
    basis = inv.invariant_basis(group, dtype=torch.float64)
    torch.testing.assert_close(basis @ operator, basis)
    assert not torch.allclose(operator @ basis[0], basis[0])
    x = torch.randn(7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert inv.check_invariance(lambda x: x @ basis[0], group, x) < 1e-12


def test_known_numbers_of_orbits():
    assert len(inv.symmetry("d4", shape=(28, 28)).orbits().unique()) == 105
    assert len(inv.symmetry("rot90", shape=(28, 28)).orbits().unique()) == 196
    assert len(inv.symmetry("flips", shape=(28, 28)).orbits().unique()) == 196


def test_large_images_need_no_square_matrix():
    basis = inv.invariant_basis(inv.symmetry("d4", shape=(3, 224, 224)))
    assert basis.shape == (3 * 112 * 113 // 2, 150_528)
    assert len(basis.values()) == 150_528


def test_check_invariance_measures_the_largest_deviation():
    x = torch.tensor([[1.0, 2.0], [3.0, 7.0]])
    swap = inv.symmetry("reversal", shape=(2,))
    assert inv.check_invariance(lambda x: x[:, 0], swap, x) == 4.0
    assert inv.check_invariance(lambda x: x.sum(1), swap, x) == 0.0
    module = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(module.weight, 0.5)
    assert inv.check_invariance(module, swap, x) == 0.0
    linear = torch.nn.Linear(x.shape[-1], 1)
    assert inv.check_invariance(linear, swap, x.double().numpy()) > 0, "arrays of 64 bits are converted"
    everything = inv.symmetry("permutations", shape=(30,))
    assert inv.check_invariance(lambda x: x.max(-1).values, everything, torch.rand(4, 30)) == 0.0
    assert (
        inv.check_invariance(lambda x: x[..., 3], inv.symmetry("cyclic", shape=(30,)), torch.arange(30.0)) == 26.0
    )


@pytest.mark.parametrize("symmetry", ["reversal", "time-shift:1"])
def test_check_invariance_takes_functions_that_give_arrays(symmetry):
    """Such as `predict_proba` of an estimator."""
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    symmetry = inv.symmetry(symmetry, shape=(4,))
    found = inv.check_invariance(lambda x: np.asarray(x)[:, :2] ** 2, symmetry, x)
    assert found == pytest.approx(inv.check_invariance(lambda x: x[:, :2] ** 2, symmetry, x))
    assert found > 0


def test_check_invariance_takes_what_estimators_take():
    """Arrays, and inputs in their shape."""
    turns, network = inv.symmetry("rot90", shape=(2, 2)), torch.nn.Linear(4, 1)
    images = np.random.default_rng(0).random((3, 2, 2), np.float32)
    found = inv.check_invariance(network, turns, torch.from_numpy(images.reshape(3, 4)))
    assert found > 0
    assert inv.check_invariance(network, turns, images) == found
    assert inv.check_invariance(network, turns, images.reshape(3, 4)) == found


def test_square_roots_of_unity_leave_nothing_but_the_axis():
    group = Group.from_matrices([np.block([[rotation(2 * np.pi / 5), np.zeros((2, 1))], [np.zeros((1, 2)), 1.0]])])
    np.testing.assert_allclose(
        np.abs(inv.invariant_basis(group, dtype=torch.float64).numpy()), [[0, 0, 1]], atol=1e-9
    )
    assert orth(inv.reynolds_operator(group, dtype=torch.float64).numpy()).shape[1] == 1


def test_what_is_not_a_number_is_not_invariant():
    found = inv.check_invariance(
        lambda x: x[..., 0].log(), inv.symmetry("reversal", (2,)), torch.tensor([[1.0, -1.0]])
    )
    assert np.isnan(found)


@pytest.mark.parametrize("ratio", [2.0, 1e3, 3e4, 1e6])
def test_units_of_the_coordinates_do_not_change_what_is_invariant(ratio):
    turn = inv.Group.from_matrices([[[0, -1 / ratio], [ratio, 0]]])
    assert inv.invariant_basis(turn).shape == (0, 2)
    swap = inv.Group.from_matrices([[[0, 1 / ratio], [ratio, 0]]])
    (row,) = inv.invariant_basis(swap).numpy()
    np.testing.assert_allclose(row / row[0], [1, 1 / ratio], rtol=1e-6)
