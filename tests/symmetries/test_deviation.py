from itertools import product

import numpy as np
import pytest
import torch

import invariantnet as inv

SHAPE = (7, 7)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(49, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3), torch.nn.Softmax(-1)
    )


def brute_force(network, name, positions, group_elements=(None,)):
    """Largest change of every input, with one input, one transformation at a time."""
    symmetry, x = inv.symmetry(name, SHAPE), inputs()
    worst = np.zeros(len(x))
    with torch.no_grad():
        for i, one in enumerate(x):
            for element, position in product(group_elements, positions):
                moved = symmetry.move(one if element is None else one[element], position)
                worst[i] = max(worst[i], float((network(moved) - network(one)).abs().max()))
    return worst


def inputs():
    return torch.rand(4, 49, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(("name", "parameters"), [("rotation:40", 1), ("translation:1.5", 2)])
def test_deviation_is_the_brute_force_maximum(network, name, parameters):
    grid = np.linspace(-1, 1, 9)
    found = inv.deviation(network, inv.symmetry(name, SHAPE), inputs(), positions=9)
    worst = brute_force(network, name, list(product(grid, repeat=parameters)))
    assert found.largest == pytest.approx(worst.max(), abs=1e-6)
    assert found.mean == pytest.approx(worst.mean(), abs=1e-6)
    again = brute_force(network, name, [found.position])
    assert again.max() == pytest.approx(found.largest, abs=1e-6)


def test_deviation_includes_the_group(network):
    flip = inv.symmetry("hflip", SHAPE).elements
    grid = [(t,) for t in np.linspace(-1, 1, 5)]
    found = inv.deviation(network, inv.symmetry("hflip+rotation:20", SHAPE), inputs(), positions=5)
    assert found.largest == pytest.approx(brute_force(network, "rotation:20", grid, flip).max(), abs=1e-6)


def test_deviation_of_an_invariant_function_is_zero():
    def total(x):
        return x.sum(-1, keepdim=True)

    shifts = inv.symmetry("brightness:0", SHAPE)
    assert inv.deviation(total, shifts, inputs()).largest == 0
    means = inv.symmetry("contrast:2", SHAPE)
    assert inv.check_invariance(total, means, inputs()) < 1e-4


def test_pooling_over_copies_deviates_less(network):
    turns = inv.symmetry("rotation:180", SHAPE)

    def pooled(x):
        return network(turns.act(x)).mean(-2)

    assert inv.deviation(pooled, turns, inputs()).mean < 0.2 * inv.deviation(network, turns, inputs()).mean
    assert inv.check_invariance(pooled, inv.symmetry("rot90", SHAPE), inputs()) < 1e-6


def test_a_finer_grid_finds_no_less(network):
    turns = inv.symmetry("rotation:90", SHAPE)
    coarse, fine = (inv.deviation(network, turns, inputs(), positions=n).largest for n in (5, 9))
    assert coarse <= fine
