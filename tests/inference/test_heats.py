"""Which networks are trained side by side, and that a race which is resumed forms the same heats."""

from itertools import product

import pytest
from torch import nn

import invariantnet as inv
from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.heats import Heats
from invariantnet.inference.hypotheses import Hypothesis, all_hypotheses
from invariantnet.inference.models import CNNS, MLPS, NATIVE
from invariantnet.nn import Pretrained

SHAPE = (8, 8)
COMPARED = [
    Hypothesis(inv.symmetry(name, shape=SHAPE), model)
    for name, model in product(("trivial", "hflip", "vflip", "rot90", "rotation:30"), (MLPS[0], CNNS[0]))
]


def keys(networks=range(2), hypotheses=COMPARED):
    return [NetworkKey("", h.name, network, 0) for h in hypotheses for network in networks]


def names(heats):
    return [[(key.hypothesis.split(" · ")[0], key.network) for key in heat] for heat in heats if len(heat) > 1]


def test_networks_of_one_shape_share_a_heat():
    """Convolutions share statistics of batches, and every range draws copies of its own."""
    heats = Heats(COMPARED, 64, set()).plan(keys(), examples=100)
    assert names(heats) == [
        [("trivial", 0), ("trivial", 1)],
        [("hflip", 0), ("hflip", 1), ("vflip", 0), ("vflip", 1)],
        [("rot90", 0), ("rot90", 1)],
    ]
    assert sorted(map(repr, (key for heat in heats for key in heat))) == sorted(map(repr, keys()))


def test_heads_on_single_copies_share_a_heat_whatever_makes_the_copies():
    names_of = ("hflip", "vflip", "rotation:15", "rotation:30", "rot90")
    heads = [
        h
        for h in all_hypotheses([inv.symmetry(n, shape=SHAPE) for n in names_of], Pretrained(nn.Flatten()), SHAPE)
        if h.model.name == "linear head"
    ]
    heats = Heats(heads, 64 * 48, set())
    assert names(heats.plan(keys(hypotheses=heads), examples=100)) == [
        [("hflip", 0), ("hflip", 1), ("vflip", 0), ("vflip", 1)],
        [("rotation:15", 0), ("rotation:15", 1), ("rotation:30", 0), ("rotation:30", 1)],
        [("rot90", 0), ("rot90", 1)],
    ]
    assert heats.second_costs_little(heads[0], 100)
    assert heats.most(heads[0], 1000) == 2**24 // (1000 * 64 * 2)


def test_what_was_planned_is_not_planned_again_nor_in_a_later_race():
    planned = set()
    heats = Heats(COMPARED, 64, planned)
    first = heats.plan(keys(range(1)), examples=100)
    assert all(key.network == 1 for heat in heats.plan(keys(), examples=100) for key in heat)
    assert first
    assert heats.plan(keys(), examples=100) == []
    later = Heats(COMPARED, 64, planned).plan(keys(range(3)), examples=100)
    assert {key.network for heat in later for key in heat} == {2}


@pytest.mark.parametrize(("examples", "largest"), [(100, 4), (2**24 // 64 // 2 // 3, 3), (10**9, 1)])
def test_memory_bounds_a_heat(examples, largest):
    assert max(map(len, Heats(COMPARED, 64, set()).plan(keys(), examples))) == largest


@pytest.mark.parametrize(
    ("inputs", "examples", "expected"), [(64, 100, True), (784, 100, False), (100, 10**7, False)]
)
def test_second_networks_are_trained_at_once_only_where_they_cost_little(inputs, examples, expected):
    heats = Heats(COMPARED, inputs, set())
    assert heats.second_costs_little(COMPARED[0], examples) == expected


@pytest.mark.parametrize(
    "hypothesis",
    [
        Hypothesis(inv.symmetry("cyclic", shape=(40,)), NATIVE["cyclic"], inv.symmetry("cyclic", shape=(40,))),
        Hypothesis(inv.symmetry("permutations", shape=(7,)), MLPS[0]),
        Hypothesis(inv.symmetry("hflip", shape=SHAPE), MLPS[0].computing_in("bf16-mixed")),
    ],
    ids=["convolutions", "sampled elements", "16 bits"],
)
def test_convolutions_draws_and_16_bits_are_not_trained_side_by_side(hypothesis):
    assert not hypothesis.side_by_side
