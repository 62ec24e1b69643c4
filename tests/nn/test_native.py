"""Networks that are invariant by construction, to groups too large to list."""

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet.nn import Symmetrized
from invariantnet.nn.native import native_network, sorted_mlp
from invariantnet.symmetries.cosets import contains_generators, coset_representatives

CASES = [
    ("permutations", "permutations", (9, 2), 1),
    ("permutations+sign", "permutations", (9, 2), 2),
    ("cyclic", "cyclic", (70,), 1),
    ("reversal+cyclic", "cyclic", (70,), 2),
    ("reversal+cyclic", "cyclic", (5, 3), 2),
    ("shifts", "shifts", (9, 8), 1),
    ("d4+shifts", "shifts", (2, 9, 9), 8),
]


@pytest.mark.parametrize(("name", "native", "shape", "cosets"), CASES)
def test_a_network_averaged_over_cosets_is_exactly_invariant(name, native, shape, cosets):
    group, part = inv.symmetry(name, shape=shape), inv.symmetry(native, shape=shape)
    assert contains_generators(group, part)
    torch.manual_seed(0)
    module = native_network(native, shape, 3, 8, units=2).eval()
    network = Symmetrized(module, [group], pool="max", native=part).eval()
    assert network.exact
    assert network.placement.copies(network.module) == cosets
    x = torch.randn(6, group.dim)
    with torch.no_grad():
        assert inv.check_invariance(network, group, x) < 1e-5
        assert float(network(x).std(0).max()) > 1e-3, "it is not constant"


@pytest.mark.parametrize(("name", "part"), [("reversal+cyclic", "cyclic"), ("permutations", "permutations")])
def test_cosets_cover_the_group_once(name, part):
    group, subgroup = inv.symmetry(name, shape=(5,)), inv.symmetry(part, shape=(5,))
    found = coset_representatives(group, subgroup, 64)
    assert len(found) * subgroup.order == group.order
    products = {tuple(t[h]) for t in found for h in subgroup.elements.numpy()}
    assert products == {tuple(g) for g in group.elements.numpy()}


def test_too_many_cosets_are_not_listed():
    group = inv.join(inv.symmetry("permutations", shape=(6,)), inv.symmetry("cyclic", shape=(6,)))
    assert coset_representatives(group, inv.symmetry("cyclic", shape=(6,)), 64) is None


def test_a_set_network_ignores_order_but_not_values():
    torch.manual_seed(1)
    network = native_network("permutations", (12, 2), 2, 8).eval()
    x = torch.randn(4, 12, 2)
    order = torch.from_numpy(np.random.default_rng(0).permutation(12))
    with torch.no_grad():
        torch.testing.assert_close(network(x[:, order].flatten(1)), network(x.flatten(1)))
        assert not torch.allclose(network((x + 1).flatten(1)), network(x.flatten(1)))


@pytest.mark.parametrize("depth", [1, 2])
def test_an_mlp_of_sorted_numbers_is_exactly_invariant(depth):
    group = inv.symmetry("permutations+sign", shape=(9,))
    torch.manual_seed(0)
    module = sorted_mlp((9,), 3, 8, depth=depth, units=2).eval()
    network = Symmetrized(module, [group], pool="max", native=inv.symmetry("permutations", shape=(9,))).eval()
    x = torch.randn(6, 9)
    with torch.no_grad():
        assert inv.check_invariance(network, group, x) < 1e-5
        assert float(network(x).std(0).max()) > 1e-3, "it is not constant"
