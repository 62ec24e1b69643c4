import math

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet.symmetries import lookup as catalogue

IMAGE = torch.arange(18.0).reshape(2, 3, 3)
SEQUENCE = torch.arange(12.0).reshape(4, 3)

# What each group must do to an input, written with torch's own operations.
EXAMPLES = {
    "rot90": [torch.rot90(IMAGE, k, (-2, -1)) for k in range(4)],
    "rot180": [IMAGE, IMAGE.flip(-1, -2)],
    "hflip": [IMAGE, IMAGE.flip(-1)],
    "vflip": [IMAGE, IMAGE.flip(-2)],
    "flips": [IMAGE, IMAGE.flip(-1), IMAGE.flip(-2), IMAGE.flip(-1, -2)],
    "transpose": [IMAGE, IMAGE.mT],
    "d4": [m for k in range(4) for m in (torch.rot90(IMAGE, k, (-2, -1)), torch.rot90(IMAGE.mT, k, (-2, -1)))],
    "shifts": [IMAGE.roll((a, b), (-2, -1)) for a in range(3) for b in range(3)],
    "channels": [IMAGE, IMAGE.flip(0)],
    "reversal": [SEQUENCE, SEQUENCE.flip(0)],
    "cyclic": [SEQUENCE.roll(k, 0) for k in range(4)],
    "sign": [IMAGE, -IMAGE],
    "trivial": [IMAGE],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_group_does_what_its_name_says(name):
    copies = EXAMPLES[name]
    moved = inv.symmetry(name, shape=tuple(copies[0].shape)).act(copies[0].flatten())
    expected = {tuple(c.flatten().tolist()) for c in copies}
    assert {tuple(m.tolist()) for m in moved} == expected
    assert len(moved) == len(expected)


def test_permutations_are_all_orders_of_the_rows():
    moved = inv.symmetry("permutations", shape=(4, 3)).act(SEQUENCE.flatten())
    assert len({tuple(m.tolist()) for m in moved}) == math.factorial(4)
    for m in moved.reshape(-1, 4, 3):
        assert sorted(m.tolist()) == SEQUENCE.tolist()


@pytest.mark.parametrize(
    ("name", "shape", "remedy"),
    [
        ("rot90", (28, 20), "pad them to a square, or use 'flips'"),
        ("d4", (28, 20), "pad them to a square"),
        ("transpose", (3, 28, 20), "pad them to a square"),
        ("rot90", (784,), r"pass \(H, W\) or \(C, H, W\)"),
        ("channels", (28, 28), r"pass \(C, H, W\)"),
        ("reversal", (3, 28, 28), "length"),
        ("nonsense", (4,), "choose among trivial, rot90"),
        ("rot90", (0, 0), "sizes ≥ 1"),
        ("rot90", (2, 2, 2, 2), r"pass \(D,\)"),
    ],
)
def test_group_that_cannot_act_names_the_remedy(name, shape, remedy):
    with pytest.raises(ValueError, match=remedy):
        inv.symmetry(name, shape=shape)


def test_joins_take_catalogue_names():
    shape = (28, 28)
    rot90, flips, hflip = (inv.symmetry(n, shape=shape) for n in ("rot90", "flips", "hflip"))
    assert inv.join(rot90, flips).name == "d4"
    assert inv.join(flips, rot90).order == 8
    assert inv.join(hflip, inv.symmetry("vflip", shape=shape)).name == "flips"
    assert inv.join(rot90, inv.symmetry("trivial", shape=shape)) is rot90
    assert inv.join(hflip, flips) is flips
    assert inv.join(rot90, inv.symmetry("sign", shape=shape)).name == "rot90+sign"
    assert inv.symmetry("rot90+flips", shape=shape).name == "d4"
    assert inv.symmetry("reversal+cyclic", shape=(5,)).order == 10


def test_joins_of_other_representations_and_their_errors():
    turn = inv.Group.from_matrices([[[0.0, -1.0], [1.0, 0.0]]], name="turn")
    third = inv.Group.from_matrices([[[-0.5, -(0.75**0.5)], [0.75**0.5, -0.5]]], name="third")
    assert inv.join(turn, third).order == 12
    with pytest.raises(ValueError, match="different lengths"):
        inv.join(turn, inv.symmetry("sign", shape=(3,)))


def test_registered_group_is_found_by_name_and_joined_by_name():
    def odd_even(shape):
        n = math.prod(shape)
        return inv.Group.from_permutations([[i ^ 1 if i ^ 1 < n else i for i in range(n)]])

    inv.register_symmetry("neighbours", odd_even)
    try:
        found = inv.symmetry("neighbours", shape=(2, 2))
        assert found.name == "neighbours"
        assert found.shape == (2, 2)
        np.testing.assert_array_equal(found.orbits(), [0, 0, 1, 1])
        assert inv.join(inv.symmetry("hflip", shape=(2, 2)), found).order == 2
        with pytest.raises(ValueError, match="exists already"):
            inv.register_symmetry("neighbours", odd_even)
    finally:
        del catalogue.REGISTERED["neighbours"]
    with pytest.raises(ValueError, match="cannot name"):
        inv.register_symmetry("a+b", odd_even)


def test_registered_group_of_another_size_is_refused():
    inv.register_symmetry("three", lambda shape: inv.Group.from_permutations([[1, 2, 0]]))
    try:
        with pytest.raises(ValueError, match="made for 3 inputs"):
            inv.symmetry("three", shape=(4,))
    finally:
        del catalogue.REGISTERED["three"]
