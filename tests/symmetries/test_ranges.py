import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

import invariantnet as inv
from invariantnet.symmetries._affine import Affine
from invariantnet.symmetries._lattice import lattice
from invariantnet.symmetries.families import FAMILIES
from invariantnet.symmetries.named import ladders_for
from invariantnet.symmetries.ranges import MOST_COPIES, Range

IMAGES = [(5, 5), (7, 4), (3, 8, 8)]
SEQUENCES = [(12,), (9, 3)]
CASES = [(name, shape) for shape in [*IMAGES, *SEQUENCES] for name in ladders_for(shape)]


def random_inputs(shape, n=3, dtype=torch.float64):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(1), dtype=dtype).flatten(1)


def rungs(name, shape):
    return inv.ladder(name, shape)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_laws_of_every_ladder(name, shape):
    x = random_inputs(shape)
    ladder = rungs(name, shape)
    assert all(a.copies <= b.copies for a, b in pairwise(ladder))
    units = {round(ladder[-1].copies / rung.copies) * rung.copies for rung in ladder}
    assert min(units) >= 0.8 * max(units), "untied units make up for fewer copies"
    assert all(a <= b and not b <= a and a.size < b.size for a, b in pairwise(ladder))
    for rung in (ladder[0], ladder[-1]):
        copies = rung.act(x)
        assert copies.shape == (len(x), rung.copies, x.shape[1])
        assert torch.equal(copies[:, 0], x), "the first copy is the input, bit for bit"
        assert not any(torch.equal(copy, x) for copy in copies.unbind(1)[1:])
        assert inv.symmetry(rung.name, shape) == rung
        torch.testing.assert_close(rung.act(7 + 3 * x), 7 + 3 * copies, msg="units do not matter")


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_constant_input_stays_constant(name, shape):
    constant = torch.full((1, int(np.prod(shape))), 0.3, dtype=torch.float64)
    copies = rungs(name, shape)[-1].act(constant)
    torch.testing.assert_close(copies, constant.expand_as(copies[0]).expand_as(copies), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_zero_range_is_no_symmetry_bit_for_bit(name, shape):
    none = Range((replace(rungs(name, shape)[0].extents[0], value=FAMILIES[name].none),), shape)
    trivial = inv.symmetry("trivial", shape)
    x = random_inputs(shape, dtype=torch.float32)
    assert torch.equal(none.act(x), trivial.act(x))
    assert none.exact
    assert none <= trivial
    assert trivial <= none
    assert none <= rungs(name, shape)[0]


def scipy_affine(image, matrix, shift):
    centre = (np.array(image.shape) - 1) / 2
    offset = centre - matrix @ centre + shift
    return ndimage.affine_transform(image, matrix, offset, order=1, mode="nearest")


@given(
    height=st.integers(5, 64),
    width=st.integers(5, 64),
    degrees=st.floats(-180, 180),
    factor=st.floats(0.4, 2.5),
    down=st.floats(-5, 5),
)
def test_interpolation_is_that_of_scipy(height, width, degrees, factor, down):
    image = np.random.default_rng(height * width).random((height, width))
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = np.array([[c, s], [-s, c]])
    shift = np.array([-down, 0.5])
    smaller = Affine(((1 / factor, 0.0), (0.0, 1 / factor)))
    affine = Affine.rotation(degrees).then(smaller).then(Affine(shift=(-down, 0.5)))
    indices, shares = affine.corners(height, width)
    ours = (image.ravel()[indices] * shares).sum(1).reshape(height, width)
    np.testing.assert_allclose(ours, scipy_affine(image, turn / factor, turn @ shift / factor), atol=1e-9)


def test_turning_a_picture_by_hand():
    image = torch.zeros(9, 9)
    image[4, 7] = 1
    turned = inv.symmetry("rotation:90", (9, 9)).move(image.flatten(), [1.0]).reshape(9, 9)
    assert turned[1, 4] == 1, "anticlockwise, as rot90"
    larger = inv.symmetry("scaling:2", (9, 9)).move(image.flatten(), [0.5]).reshape(9, 9)
    assert larger[4].argmax() == 8
    shifted = inv.symmetry("translation:2", (9, 9)).move(image.flatten(), [1.0, 0.5]).reshape(9, 9)
    assert torch.equal(shifted.nonzero(), torch.tensor([[6, 8]]))
    assert not inv.symmetry("translation:2", (9, 9)).move(image.flatten(), [0.0, 1.0]).reshape(9, 9)[4, :8].any()


def test_shifting_and_stretching_a_sequence_by_hand():
    x = torch.tensor([[0.0, 10], [1, 20], [2, 30], [3, 40], [4, 50]])
    later = inv.symmetry("time-shift:2", (5, 2)).move(x.flatten(), [1.0]).reshape(5, 2)
    assert torch.equal(later, x[[0, 0, 0, 1, 2]])
    slower = inv.symmetry("time-scale:2", (5, 2)).move(x.flatten(), [1.0]).reshape(5, 2)
    torch.testing.assert_close(slower[:, 0], torch.tensor([1.0, 1.5, 2, 2.5, 3]))
    louder = inv.symmetry("amplitude:2", (5, 2)).move(x.flatten(), [1.0]).reshape(5, 2)
    torch.testing.assert_close(louder[:, 0], torch.tensor([-2.0, 0, 2, 4, 6]))
    higher = inv.symmetry("offset:1", (5, 2)).move(x.flatten(), [1.0]).reshape(5, 2)
    torch.testing.assert_close(
        higher - x, torch.tensor([2.0, 20]).sqrt() * torch.tensor([1, 10**0.5]).expand(5, 2)
    )


@pytest.mark.parametrize("shape", [(5, 5), (6, 6), (33, 33), (64, 64), (3, 8, 8)])
def test_quarter_turns_of_the_circle_are_those_of_the_group(shape):
    circle, group = inv.symmetry("rotation:180", shape), inv.symmetry("rot90", shape)
    x = random_inputs(shape, dtype=torch.float32)
    assert torch.equal(circle.act(x)[:, ::4], group.act(x))
    # Copies of a turned input are the same copies in another order, so a network that pools is exactly invariant.
    turned = group.act(x)[:, 1]
    assert torch.equal(circle.act(turned), circle.act(x).roll(-4, 1))
    assert group <= circle
    assert inv.join(group, circle) is circle
    assert not group <= inv.symmetry("rotation:135", shape)


def test_half_turn_of_an_oblong_image_is_exact():
    x = random_inputs((6, 9))
    assert torch.equal(inv.symmetry("rotation:180", (6, 9)).act(x)[:, 8], x.flip(-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_any_type_and_any_batch(dtype):
    turns = inv.symmetry("rotation:30", (6, 6))
    x = torch.rand(2, 3, 36).to(dtype)
    copies = turns.act(x)
    assert copies.dtype == dtype
    torch.testing.assert_close(copies[1, 2], turns.act(x[1, 2]))
    assert turns.act(x[:0]).shape == (0, 3, turns.copies, 36)


def test_gradients_pass_through_the_copies():
    turns = inv.symmetry("rotation:30", (4, 4))
    x = torch.rand(2, 16, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(turns.act, (x,))
    torch.testing.assert_close(turns.act(x).detach(), turns.act(x.detach()))


def test_copies_are_spread_evenly():
    for n, d in ((3, 1), (15, 1), (16, 1), (5, 2), (45, 2), (45, 3), (45, 4)):
        nodes = lattice(n, d)
        assert not nodes[0].any()
        first = -1 if n % 2 == 0 else -1 + 1 / n
        for coordinate in nodes.T:
            np.testing.assert_allclose(np.sort(coordinate), first + 2 * np.arange(n) / n, atol=1e-12)
    # No two of 45 shifts are closer than neighbours in a square grid of as many, by more than a tenth.
    gaps = np.abs(lattice(45, 2)[:, None] - lattice(45, 2)[None])
    distance = np.hypot(*np.minimum(gaps, 2 - gaps).transpose(2, 0, 1))
    assert distance[distance > 0].min() > 0.9 * 2 / np.sqrt(45)


def test_copies_of_a_larger_range_lie_as_close_together():
    copies = {r.value: r.copies for r in inv.ladder("rotation", (28, 28))}
    assert copies == {15: 3, 30: 3, 45: 5, 60: 5, 90: 7, 135: 13, 180: 16}
    assert all(2 * value / n <= 26 for value, n in copies.items())
    assert replace(inv.symmetry("rotation:30", (28, 28)), nodes=9).act(torch.rand(784)).shape == (9, 784)


def test_products_apply_one_after_the_other_and_interpolate_once():
    both = inv.symmetry("rotation:90+translation:2", (8, 8))
    assert both.copies == 45
    x = random_inputs((8, 8))
    turn, shift = inv.symmetry("rotation:90", (8, 8)), inv.symmetry("translation:2", (8, 8))
    assert torch.equal(both.move(x, [1.0, 0.0, 0.0]), turn.move(x, [1.0]))
    assert torch.equal(both.move(x, [0.0, 1.0, 0.0]), shift.move(x, [1.0, 0.0]))
    # A whole number of pixels is not interpolated, so here the two ways agree, away from the border.
    apart = shift.move(turn.move(x, [0.7]), [0.0, 0.5]).reshape(-1, 8, 8)
    torch.testing.assert_close(both.move(x, [0.7, 0.0, 0.5]).reshape(-1, 8, 8)[:, :, 1:], apart[:, :, 1:])
    assert turn <= both
    assert not both <= turn
    assert inv.join(turn, both) is both


def test_join_with_a_group_is_exactly_invariant_to_the_group():
    mirrored = inv.symmetry("hflip+rotation:30", (8, 8))
    assert (mirrored.family, mirrored.value, mirrored.unit) == ("hflip+rotation", 30, "°")
    x = random_inputs((8, 8))
    flipped = inv.symmetry("hflip", (8, 8)).act(x)[:, 1]
    assert torch.equal(mirrored.act(flipped).roll(3, 1), mirrored.act(x))
    assert inv.symmetry("hflip", (8, 8)) <= mirrored
    assert inv.symmetry("rotation:20", (8, 8)) <= mirrored
    assert [rung.name for rung in inv.ladder("hflip+shear", (8, 8))][:2] == ["hflip+shear:5", "hflip+shear:10"]
    assert inv.join(inv.symmetry("rotation:20", (8, 8)), mirrored) is mirrored
    assert inv.symmetry("d4+rotation:20", (8, 8)).copies == 24
    assert inv.symmetry("d4+rotation:180", (8, 8)).copies == MOST_COPIES


@pytest.mark.parametrize(
    ("name", "shape", "remedy"),
    [
        ("rotation:-3", (8, 8), "takes degrees of at least 0"),
        ("rotation:200", (8, 8), "goes up to 180"),
        ("rotation:nan", (8, 8), "takes degrees of at least 0"),
        ("rotation:inf", (8, 8), "takes degrees of at least 0"),
        ("rotation:", (8, 8), "such as rotation:15"),
        ("rotation:30rad", (8, 8), "counts in degrees: write a number alone, such as rotation:15"),
        ("scaling:0.5", (8, 8), "takes factors of at least 1"),
        ("scaling:9", (8, 8), "goes up to 8"),
        ("translation:9", (8, 8), "goes up to 8"),
        ("rotation", (8, 8), "name one rung, such as rotation:15"),
        ("rotation:30", (64,), r"acts on inputs of shape \(H, W\), \(C, H, W\), got \(64,\)"),
        ("time-shift:3", (3, 8, 8), r"acts on inputs of shape \(length,\)"),
        ("rotatoin:30", (8, 8), "choose among rotation, translation"),
        ("rot90:30", (8, 8), "a group, which has no value"),
        ("rotation:30+", (8, 8), "choose among trivial, rot90"),
        ("shifts+rotation:30", (8, 8), "more than 64 copies.*at most 21 elements"),
    ],
)
def test_bad_values_name_the_remedy(name, shape, remedy):
    with pytest.raises(ValueError, match=remedy) as error:
        inv.symmetry(name, shape)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["rot90", "rotation:30", "rotation+translation", "nonsense"])
def test_ladder_names_one_family(name):
    with pytest.raises(ValueError, match="is no ladder"):
        inv.ladder(name, (8, 8))


def test_wrong_inputs_are_refused():
    turns = inv.symmetry("rotation:30", (8, 8))
    with pytest.raises(ValueError, match="acts on 64 inputs, x has 63"):
        turns.act(torch.rand(2, 63))
    with pytest.raises(ValueError, match=r"use x\.float\(\)"):
        turns.act(torch.zeros(2, 64, dtype=torch.int64))
    with pytest.raises(ValueError, match="different lengths"):
        inv.join(turns, inv.symmetry("rotation:30", (9, 9)))


def test_a_group_cannot_take_the_name_of_a_range():
    with pytest.raises(ValueError, match="exists already"):
        inv.register_symmetry("rotation", lambda shape: inv.symmetry("rot90", shape))
    with pytest.raises(ValueError, match="leave out"):
        inv.register_symmetry("turn:30", lambda shape: inv.symmetry("rot90", shape))


def test_larger_groups_are_outside_of_ranges():
    assert not inv.symmetry("shifts", (28, 28)) <= inv.symmetry("translation:8", (28, 28))
    assert not inv.symmetry("permutations", (64,)) <= inv.symmetry("time-shift:2", (64,))
    assert not inv.symmetry("rotation:30", (8, 8)) <= inv.symmetry("d4", (8, 8))


def test_ladder_of_shifts_suits_the_size():
    assert [r.value for r in inv.ladder("translation", (5, 5))] == [1]
    assert [r.value for r in inv.ladder("translation", (28, 28))] == [1, 2, 3, 4, 6, 8]
    assert [r.value for r in inv.ladder("translation", (3, 224, 224))] == [8, 12, 16, 24, 32, 48, 64]
    assert [r.value for r in inv.ladder("time-shift", (1,))] == [1]


def halved(x, value):
    return torch.where(torch.arange(x.shape[1]) % 2 == 0, x + value, x)


@pytest.fixture
def own_range():
    inv.register_range("lift", halved, ladder=(1.0, 2.0, 4.0), unit="metres")
    yield
    del FAMILIES["lift"]


def test_own_range(own_range):
    lift = inv.symmetry("lift:2", (4,))
    copies = lift.act(torch.zeros(4))
    assert torch.equal(copies[0], torch.zeros(4))
    assert torch.equal(copies[:, 1], torch.zeros(7))
    np.testing.assert_allclose(sorted(copies[:, 0].tolist()), (np.arange(7) - 3) * 4 / 7, atol=1e-6)
    assert [r.name for r in inv.ladder("lift", (4,))] == ["lift:1", "lift:2", "lift:4"]
    assert lift.words == "lift up to 2 metres"
    assert torch.equal(pickle.loads(pickle.dumps(lift)).act(torch.ones(4)), lift.act(torch.ones(4)))
    with pytest.raises(ValueError, match="exists already"):
        inv.register_range("lift", halved, ladder=(1.0,))


@pytest.mark.parametrize(
    ("name", "ladder", "remedy"),
    [
        ("a:b", (1.0,), "leave out"),
        ("hflip", (1.0,), "exists"),
        ("x", (), "ascending"),
        ("x", (2.0, 1.0), "ascending"),
    ],
)
def test_own_range_that_cannot_be(name, ladder, remedy):
    with pytest.raises(ValueError, match=remedy):
        inv.register_range(name, halved, ladder=ladder)


def test_own_function_that_changes_the_shape_is_refused():
    inv.register_range("crop", lambda x, value: x[:, 1:], ladder=(1.0,))
    try:
        with pytest.raises(ValueError, match="return the shape"):
            inv.symmetry("crop:1", (4,)).act(torch.zeros(4))
    finally:
        del FAMILIES["crop"]


def test_ranges_can_be_sent_to_other_processes_and_say_what_they_are():
    for name in FAMILIES:
        shape = (6, 6)
        rung = inv.ladder(name, shape)[0]
        assert pickle.loads(pickle.dumps(rung)) == rung
        assert str(rung.value) in rung.words.replace(f"{rung.value:g}", str(rung.value))
    assert inv.symmetry("rotation:30", (6, 6)).words == "rotations up to 30°"
    assert inv.symmetry("scaling:1.5", (6, 6)).words == "changes of size up to 1.5-fold"


def test_large_photographs_need_little_memory():
    photographs = torch.rand(1, 3 * 224 * 224)
    moved = inv.symmetry("rotation:30", (3, 224, 224)).move(photographs, [0.5])
    assert moved.shape == photographs.shape
