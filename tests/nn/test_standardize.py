"""Inputs in any units: standardised without breaking any symmetry, and folded into the first layer."""

import numpy as np
import pytest
import torch
from strategies import CATALOGUE_GROUPS, label

import invariantnet as inv
from invariantnet.nn import Symmetrized, mlp
from invariantnet.nn.standardize import InputStatistics, Standardize, pools_of
from invariantnet.symmetries.group import transform


def draw(n, dim, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("group", CATALOGUE_GROUPS, ids=label)
def test_standardising_commutes_with_every_group(group):
    x = draw(50, group.dim) * torch.linspace(1, 5, group.dim) + torch.linspace(-9, 9, group.dim)
    standardize = InputStatistics.of(x, [group], group.shape).for_symmetry(group)
    for generator in torch.from_numpy(group.generators):
        moved = transform(x, generator)
        torch.testing.assert_close(standardize(moved), transform(standardize(x), generator), atol=1e-5, rtol=1e-5)


def test_standardising_commutes_with_matrices():
    turn = np.array([[0.5, -np.sqrt(0.75), 0], [np.sqrt(0.75), 0.5, 0], [0, 0, 1]])
    group = inv.Group.from_matrices([turn])
    x = draw(100, 3) * torch.tensor([1.0, 1.0, 5.0]) + torch.tensor([10.0, 20.0, 30.0])
    standardize = InputStatistics.of(x, [group], (3,)).for_symmetry(group)
    matrix = torch.from_numpy(turn).float()
    torch.testing.assert_close(standardize(x @ matrix.mT), standardize(x) @ matrix.mT, atol=1e-4, rtol=1e-4)
    assert float(standardize(x)[:, 2].mean().abs()) < 1e-5, "what the group leaves alone is centred"


def test_channels_features_and_columns_have_statistics_of_their_own():
    assert len(np.unique(pools_of((3, 4, 4), []))) == 3
    assert len(np.unique(pools_of((4, 4), []))) == 1
    assert len(np.unique(pools_of((20, 3), []))) == 3
    assert len(np.unique(pools_of((7,), []))) == 7
    assert len(np.unique(pools_of((7,), [inv.symmetry("reversal", shape=(7,))]))) == 4
    assert len(np.unique(pools_of((3, 4, 4), [inv.symmetry("channels", shape=(3, 4, 4))]))) == 1


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, -1e4])
def test_units_do_not_matter(factor, offset):
    x = draw(200, 6)
    statistics = InputStatistics.of(x, [], (6,))
    moved = factor * (x + offset)
    other = InputStatistics.of(moved, [], (6,))
    expected = (x - statistics.mean) / statistics.scale
    torch.testing.assert_close((moved - other.mean) / other.scale, expected, atol=2e-3, rtol=1e-3)


def test_constants_and_outliers_survive():
    x = draw(500, 3)
    x[:, 1] = 7.0
    x[0, 2], x[1, 2] = 1e9, 1e4
    statistics = InputStatistics.of(x, [], (3,))
    standardised = (x - statistics.mean) / statistics.scale
    assert standardised.isfinite().all()
    assert not standardised[:, 1].any()
    assert float(standardised[2:, 2].std()) == pytest.approx(1, rel=0.05), (
        "two wild values do not flatten the rest"
    )
    rare = torch.zeros(500, 1)
    rare[7] = 3.0
    assert float(InputStatistics.of(rare, [], (1,)).scale[0]) > 0, "a value that seldom differs is no outlier"


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("name", ["rot90", "sign", "trivial"])
def test_folding_absorbs_units_and_calibration(pool, units, name):
    group = inv.symmetry(name, shape=(4, 4))
    x = 5 * draw(30, 16) + 40
    standardize = InputStatistics.of(x, [group], (4, 4)).for_symmetry(group)
    module = mlp((4, 4), 3, 6, units=units, pool=pool)
    network = Symmetrized(module, [group], pool=pool, standardize=standardize, outputs=3)
    network.calibrate.scale.copy_(torch.tensor([0.5, 2.0, 1.0]))
    network.calibrate.shift.copy_(torch.tensor([1.0, -1.0, 0.0]))
    torch.testing.assert_close(network.fold()(x), network(x), atol=1e-4, rtol=1e-4)


def test_statistics_are_stored_with_the_weights():
    group = inv.symmetry("rot90", shape=(4, 4))
    x = 3 * draw(30, 16) + 2
    fitted = InputStatistics.of(x, [group], (4, 4)).for_symmetry(group)
    network = Symmetrized(mlp((4, 4), 3, 6), [group], standardize=fitted, outputs=3)
    empty = Symmetrized(mlp((4, 4), 3, 6), [group], standardize=Standardize.identity(16), outputs=3)
    empty.load_state_dict(network.state_dict())
    torch.testing.assert_close(empty(x), network(x))


def test_one_standardisation_can_commute_with_several_groups():
    turns, sign = (inv.symmetry(name, shape=(4, 4)) for name in ("rot90", "sign"))
    x = draw(50, 16) + 7
    statistics = InputStatistics.of(x, [turns, sign], (4, 4))
    for groups in ([turns, sign], [sign, turns], [turns]):
        standardize = statistics.for_all(groups)
        for group in groups:
            for generator in torch.from_numpy(group.generators):
                moved = transform(standardize(x), generator)
                torch.testing.assert_close(standardize(transform(x, generator)), moved, atol=1e-5, rtol=1e-5)
    assert float(statistics.for_all([turns])(x).mean().abs()) < 1e-4
