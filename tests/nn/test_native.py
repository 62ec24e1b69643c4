"""Networks that are invariant by construction, to groups too large to list."""

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet.inference.models import native_models, native_part
from invariantnet.nn import Symmetrized
from invariantnet.nn.native import CircularConv2d, native_network, sorted_mlp
from invariantnet.symmetries.cosets import contains_generators, coset_representatives, exchanges_freely

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
    module = sorted_mlp([range(9)], (9,), 3, 8, depth=depth, units=2).eval()
    network = Symmetrized(module, [group], pool="max", native=inv.symmetry("permutations", shape=(9,))).eval()
    x = torch.randn(6, 9)
    with torch.no_grad():
        assert inv.check_invariance(network, group, x) < 1e-5
        assert float(network(x).std(0).max()) > 1e-3, "it is not constant"


def exchanging(*orbits, dim=8):
    """The group that reorders some inputs freely, orbit by orbit."""
    generators = []
    for orbit in orbits:
        for new in ([orbit[1], orbit[0], *orbit[2:]], [*orbit[1:], orbit[0]]):
            generators.append(np.arange(dim))
            generators[-1][list(orbit)] = new
    return inv.Group.from_permutations(generators, name="exchanges", max_order=None)


@pytest.mark.parametrize("orbits", [[(0, 2, 4, 6)], [(0, 1, 2, 3), (4, 5, 7)], [tuple(range(8))]])
def test_numbers_are_exchanged_freely_within_orbits(orbits):
    group = exchanging(*orbits)
    assert exchanges_freely(group)
    assert native_part(group, (8,)) == group
    x = torch.randn(6, 8)
    seen = set()
    for model in native_models(group):
        torch.manual_seed(0)
        module = model.make((8,), 3, 8, units=2, pool="max")
        network = Symmetrized(module, [group], pool="max", native=group).eval()
        assert network.exact
        assert network.placement.copies(network.module) == 1
        seen.add(model.name)
        with torch.no_grad():
            assert inv.check_invariance(network, group, x) < 1e-5
            for i in range(8):
                changed = x.clone()
                changed[:, i] += 3
                assert not torch.allclose(network(changed), network(x)), f"input {i} of {model.name}"
    assert len(seen) == 4


def test_a_part_of_the_exchanges_is_no_free_exchange():
    turn, sign = [1, 2, 3, 4, 0, 5], [6, 1, 2, 3, 4, 5]
    assert not exchanges_freely(inv.Group.from_permutations([turn]))
    assert not exchanges_freely(inv.Group.from_permutations([sign]))
    assert native_part(inv.symmetry("shifts", shape=(5, 5)), (5, 5)).name == "shifts"
    two_at_once = inv.Group.from_permutations([[1, 0, 2, 4, 3, 5], [1, 2, 0, 4, 5, 3]])
    assert two_at_once.order == 6
    assert not exchanges_freely(two_at_once)


@pytest.mark.parametrize(("kernel", "dilation", "size"), [(3, 1, (6, 5)), (3, 2, (8, 8)), ((1, 3), 1, (1, 4))])
def test_a_circular_convolution_is_that_of_torch(kernel, dilation, size):
    torch.manual_seed(0)
    padding = tuple(dilation * (k - 1) // 2 for k in (kernel if isinstance(kernel, tuple) else (kernel, kernel)))
    settings = {"padding": padding, "dilation": dilation, "padding_mode": "circular"}
    slow, quick = torch.nn.Conv2d(2, 3, kernel, **settings), CircularConv2d(2, 3, kernel, **settings)
    quick.load_state_dict(slow.state_dict())
    x = torch.randn(4, 2, *size)
    torch.testing.assert_close(quick(x), slow(x))
