"""Every symmetry has a name that needs no group theory."""

import pytest

from invariantnet.symmetries.catalogue import CATALOGUE
from invariantnet.symmetries.families import FAMILIES
from invariantnet.symmetries.lookup import symmetries_for
from invariantnet.symmetries.plain import both_names, plain_hypothesis, plain_name

JARGON = ("group", "orbit", "invarian", "permut", "cyclic", "transpos", "identity", "trivial")


@pytest.mark.parametrize("name", [*CATALOGUE, *FAMILIES])
def test_plain_names_are_plain(name):
    words = plain_name(name)
    assert words != name
    assert not any(word in words for word in JARGON)


def test_symmetries_that_are_compared_with_each_other_have_different_plain_names():
    for shape in ((3, 8, 8), (8, 8), (12,), (10, 2)):
        found = [plain_name(g.name) for g in symmetries_for(shape)]
        assert len(set(found)) == len(found)


def test_joins_are_named_by_their_generators():
    assert plain_name("rot180+sign") == "half turns and change of every sign"
    assert both_names("hflip+rotation:30").endswith("rotations up to 30° (hflip+rotation:30)")
    assert plain_hypothesis("trivial · deep mlp") == "no symmetry, deep mlp"


def test_symmetries_of_your_own_go_by_their_name():
    assert plain_name("swap") == both_names("swap") == "swap"
    assert plain_name("swap+sign") == "swap and change of every sign"
