"""The picture of orbits."""

import re
import xml.etree.ElementTree as ET

import pytest

import invariantnet as inv
from invariantnet.report.orbits import orbits_svg


def fills(svg):
    root = ET.fromstring(svg)
    return [rect.get("fill") for rect in root.iter("{http://www.w3.org/2000/svg}rect")]


def test_inputs_of_one_orbit_have_one_color():
    group = inv.symmetry("rot90", (4, 4))
    colors = fills(orbits_svg(group, (4, 4)))
    orbits = group.orbits().tolist()
    assert len(colors) == 16
    assert len(set(zip(orbits, colors, strict=True))) == len(set(orbits)) == len(set(colors))


def test_inputs_that_nothing_moves_are_white_and_unseen_ones_crossed():
    svg = orbits_svg(inv.Group.from_permutations([[1, 0, 2, 3]]), (4,), set_aside=(3,))
    assert fills(svg)[2:] == ["#fff", "#fff"]
    assert len(re.findall("<path", svg)) == 1


def test_signs_do_not_matter_for_colors():
    colors = fills(orbits_svg(inv.Group.from_permutations([[3, 2, 1, 0], [4, 1, 2, 3]]), (4,)))
    assert colors[0] == colors[3] != colors[1]


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match="its own shape"):
        orbits_svg(inv.symmetry("rot90", (4, 4)), (5, 5))
