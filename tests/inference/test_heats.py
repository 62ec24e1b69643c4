"""Which networks are trained side by side, and that a race which is resumed forms the same heats."""

from itertools import product

import pytest

import invariantnet as inv
from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.heats import Heats
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.models import CNNS, MLPS

SHAPE = (8, 8)
COMPARED = [
    Hypothesis(inv.symmetry(name, shape=SHAPE), model)
    for name, model in product(("trivial", "hflip", "vflip", "rot90", "rotation:30"), (MLPS[0], CNNS[0]))
]


def keys(networks=range(2), hypotheses=COMPARED):
    return [NetworkKey("", h.name, network, 0) for h in hypotheses for network in networks]


def names(heats):
    return [[(key.hypothesis.split(" · ")[0], key.network) for key in heat] for heat in heats if len(heat) > 1]


def test_networks_of_one_shape_keep_company():
    """Convolutions share statistics of batches, and every range draws copies of its own."""
    heats = Heats(COMPARED).plan(keys(), examples=100)
    assert names(heats) == [
        [("trivial", 0), ("trivial", 1)],
        [("hflip", 0), ("hflip", 1), ("vflip", 0), ("vflip", 1)],
        [("rot90", 0), ("rot90", 1)],
    ]
    assert sorted(map(repr, (key for heat in heats for key in heat))) == sorted(map(repr, keys()))


def test_what_was_planned_is_not_planned_again():
    heats = Heats(COMPARED)
    first = heats.plan(keys(range(1)), examples=100)
    assert all(key.network == 1 for heat in heats.plan(keys(), examples=100) for key in heat)
    assert first
    assert heats.plan(keys(), examples=100) == []


@pytest.mark.parametrize(("examples", "largest"), [(100, 4), (2**24 // 64 // 2 // 3, 3), (10**9, 1)])
def test_memory_bounds_a_heat(examples, largest):
    assert max(map(len, Heats(COMPARED).plan(keys(), examples))) == largest


def test_new_hypotheses_keep_apart_from_those_that_the_cache_may_know():
    earlier = {h.name for h in COMPARED if h.symmetry.name == "hflip"}
    assert [("vflip", 0), ("vflip", 1)] in names(Heats(COMPARED, earlier).plan(keys(), examples=100))
