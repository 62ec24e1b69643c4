"""Networks leave for programs that have torch but not this package, whatever their placement."""

import pytest
import torch

import invariantnet as inv
from invariantnet.nn import Symmetrized, mlp
from invariantnet.nn.architectures import convnet
from invariantnet.nn.native import native_network
from invariantnet.nn.standardize import Standardize

SHAPE = (8, 8)
NETWORKS = {
    "weights": (lambda: mlp(SHAPE, 3, 4), "rot90", {}),
    "features": (lambda: mlp(SHAPE, 3, 4), "rot90", {"pool": "max"}),
    "features of convolutions": (lambda: convnet(SHAPE, 3, 4), "d4", {"pool": "max"}),
    "features with signs": (lambda: mlp(SHAPE, 3, 4), "sign", {"pool": "mean"}),
    "outputs": (lambda: convnet(SHAPE, 3, 4), "rot90", {}),
    "outputs of a set network": (lambda: native_network("permutations", SHAPE, 3, 4), "hflip", {}),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_every_placement_is_exported(case):
    make, name, options = NETWORKS[case]
    torch.manual_seed(0)
    symmetry, units = inv.symmetry(name, shape=SHAPE), Standardize(torch.full((64,), 0.5), torch.full((64,), 2.0))
    network = Symmetrized(make(), [symmetry], case.split()[0], standardize=units, outputs=3, **options).eval()
    x = torch.rand(5, 64)
    # The sums over orbits of `weights` are sparse, which torch does not export; folded, they are a plain layer.
    plain = network.fold() if case == "weights" else network
    program = torch.export.export(plain, (x[:2],), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.testing.assert_close(program.module()(x), network(x), atol=1e-5, rtol=1e-4)
