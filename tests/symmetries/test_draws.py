"""Random copies along a range: inside it, spread over all of it, and the same for the same seed."""

import pytest
import torch

import invariantnet as inv
from invariantnet.symmetries._lattice import lattice
from invariantnet.symmetries.draws import POSITIONS, drawn_copies

SHAPE = (6, 6)
X = torch.rand(40, 36, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def drawn(name, x=X, count=3, seed=0):
    torch.manual_seed(seed)
    return drawn_copies(inv.symmetry(name, shape=SHAPE), x, count)


@pytest.mark.parametrize("name", ["rotation:40", "translation:2", "contrast:2", "hflip+shear:10"])
def test_every_copy_is_a_transformation_of_the_range(name):
    found = inv.symmetry(name, shape=SHAPE)
    x = X[:1]
    allowed = torch.cat(
        [
            found.move(element, position)
            for position in lattice(POSITIONS, found.parameters)
            for element in ([x] if found.group is None else found.group.act(x).unbind(1))
        ]
    )
    copies = drawn(name, x.expand(40, -1)).flatten(0, 1)
    nearest = torch.cdist(copies, allowed).min(1)
    assert float(nearest.values.max()) < 1e-5
    assert len(nearest.indices.unique()) > 5, "different transformations are drawn"


def test_draws_follow_the_seed():
    assert torch.equal(drawn("rotation:40"), drawn("rotation:40"))
    assert not torch.equal(drawn("rotation:40"), drawn("rotation:40", seed=1))


def test_copies_of_few_inputs_and_of_several_axes():
    assert drawn("rotation:40", X[:1], count=1).shape == (1, 1, 36)
    assert drawn("rotation:40", X[:4].reshape(2, 2, 36), count=2).shape == (2, 2, 2, 36)
