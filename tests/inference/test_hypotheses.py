import math

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet import Group
from invariantnet.inference import hypotheses as hypotheses_module
from invariantnet.inference.hypotheses import with_joins
from invariantnet.inference.support import Support
from invariantnet.symmetries.lookup import join, symmetries_for


def names(candidates, **options):
    return [g.name for g in with_joins(candidates, **options)]


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


def test_equal_groups_are_merged():
    assert names(groups("hflip", "rot180", "flips", shape=(1, 5))) == ["trivial", "flips"]
    assert names(groups("vflip", "hflip", shape=(1, 1))) == ["trivial"]


def test_the_limit_on_the_number_of_hypotheses():
    swaps = [[0, *range(1, 40)] for _ in range(32)]
    for i, swap in enumerate(swaps, 1):
        swap[0], swap[i] = i, 0
    candidates = [Group.from_permutations([swap], name=f"swap{i}") for i, swap in enumerate(swaps)]
    assert len(with_joins(candidates[:31], closed=False)) == 32
    with pytest.raises(ValueError, match="more than 32 symmetries"):
        with_joins(candidates, closed=False)


def test_of_equal_groups_the_plainer_name_stays():
    (flips,) = groups("flips")
    joined = Group("a+z", flips.generators, flips.shape, known_order=4)
    for candidates in ([joined, flips], [flips, joined]):
        assert names(candidates) == ["trivial", "flips"]


def test_too_many_or_mismatched_candidates():
    with pytest.raises(ValueError, match="more than 4 symmetries"):
        with_joins(groups("hflip", "vflip", "transpose"), limit=4)
    with pytest.raises(ValueError, match="at least one"):
        with_joins([])
    with pytest.raises(ValueError, match="candidates on inputs of different lengths"):
        with_joins([*groups("rot90"), *groups("rot90", shape=(3, 3))])


def test_two_different_groups_of_one_name_are_refused():
    ours = [Group.from_permutations([swap]) for swap in ([1, 0, 2, 3], [0, 1, 3, 2])]
    with pytest.raises(ValueError, match="two different symmetries are called 'custom'"):
        with_joins(ours)
    with pytest.raises(ValueError, match="are called 'trivial'"):
        with_joins([Group.from_permutations([[1, 0, 2, 3]], name="trivial")])
    assert len(with_joins([ours[0], Group.from_permutations([[1, 0, 2, 3]])])) == 2, "equal groups are merged"


@pytest.mark.parametrize("shape", [(28, 28), (3, 16, 16)])
def test_too_many_joins_are_refused_before_large_groups_are_joined(shape, monkeypatch):
    joined = []
    monkeypatch.setattr(hypotheses_module, "join", lambda a, b, known: joined.append((a, b)) or join(a, b, known))
    with pytest.raises(ValueError, match="more than 32 symmetries"):
        with_joins(symmetries_for(shape))
    assert all(g.can_list_elements for pair in joined for g in pair)


def test_huge_groups_are_joined_without_listing_their_elements():
    found = with_joins(symmetries_for((200,)))
    assert found[-1].order == 2 * math.factorial(200)


@pytest.mark.parametrize(
    ("shape", "some", "joined"),
    [
        ((6,), {"sign", "reversal", "permutations"}, True),
        ((100_000,), {"sign", "reversal", "permutations"}, False),
        ((224, 224), {"rot90", "flips", "d4", "shifts"}, False),
        ((3, 64, 64), {"rot90", "flips", "channels"}, False),
        ((20, 3), {"reversal", "permutations"}, True),
    ],
)
def test_auto_takes_what_suits_the_shape_and_looks_for_joins_where_that_is_quick(shape, some, joined):
    found = [g.name for g in hypotheses_module.candidates("auto", shape, joins=True)]
    assert some <= set(found)
    assert any("+" in name for name in found) == joined
    assert len(found) <= hypotheses_module.MAX_HYPOTHESES
    images, sequences = {"hflip", "vflip", "flips", "shifts"} & set(found), {"reversal", "cyclic"} & set(found)
    assert bool(images) != bool(sequences), "images have no reading direction, points no mirror image"


def proposed(x, asked="auto", shape=None):
    shape = shape or x.shape[1:]
    support = Support.of(torch.from_numpy(x), shape)
    return {g.name for g in hypotheses_module.candidates(asked, shape, joins=True, support=support)}


def test_auto_asks_about_signs_only_if_examples_can_tell():
    x = np.random.default_rng(0).normal(size=(100, 6))
    assert {"sign", "reversal+sign"} <= proposed(x)
    assert not any("sign" in name for name in proposed(np.abs(x)))
    assert not any("sign" in name for name in proposed(x + np.array([0, 0, 0, 0, 0, 3.0])))
    assert proposed(np.abs(x), ["sign"]) == {"trivial", "sign"}, "what is asked for is compared"


def test_auto_asks_about_signs_of_images_only_if_dark_and_bright_are_alike():
    """Noise on both sides of zero does not make a bright shape one that may be dark."""
    x = np.random.default_rng(0).normal(size=(50, 8, 8))
    assert "sign" in proposed(x.reshape(50, 64), shape=(8, 8))
    x[:, 3:5, 3] += 6.0
    assert "sign" not in proposed(x.reshape(50, 64), shape=(8, 8))


def test_auto_asks_about_an_exchange_of_columns_only_if_they_may_have_one_unit():
    x = np.abs(np.random.default_rng(0).normal(size=(100, 6)))
    assert {"reversal", "cyclic", "permutations"} <= proposed(x)
    grams_and_metres = x * [1.0, 1.0, 1000.0, 1000.0, 1.0, 1.0]
    assert proposed(grams_and_metres) == {"trivial", "reversal"}, "reversal exchanges only columns of one unit"
    assert proposed(x + np.array([0.0, 100.0, 0.0, 0.0, 0.0, 0.0])) == {"trivial"}
    assert {"cyclic", "permutations"} <= proposed(grams_and_metres, ["cyclic", "permutations"])


def test_auto_takes_a_row_whose_neighbours_are_alike_for_a_sequence():
    walks = np.random.default_rng(0).normal(size=(100, 60)).cumsum(1) + 5.0
    assert walks[:, -1].std() > 5 * walks[:, 0].std()
    assert {"reversal", "cyclic"} <= proposed(walks)
