"""A linear function competes on tables, where there is often nothing else to learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeCV

import invariantnet as inv
from invariantnet import InvariantRegressor
from invariantnet.inference.models import LINEAR, models_for

pytestmark = pytest.mark.usefixtures("module_unchecked")


def test_a_linear_function_wins_on_linear_numbers_and_predicts_as_well_as_ridge_regression():
    rng = np.random.default_rng(1000)
    x = rng.normal(size=(700, 6)) * np.logspace(-2, 2, 6)
    function = (x / np.logspace(-2, 2, 6)) @ rng.normal(size=6)
    y = function + function.std() * rng.normal(size=700)
    model = InvariantRegressor(["reversal"], n_networks=1, random_state=0).fit(x[:200], y[:200])
    assert model.posterior_.models[0].name == "linear"
    assert model.posterior_.favourite == "trivial"
    ridge = RidgeCV(np.logspace(-2, 2, 9)).fit(x[:200] / x.std(0), y[:200]).score(x[200:] / x.std(0), y[200:])
    assert model.score(x[200:], y[200:]) > ridge - 0.03


@pytest.mark.parametrize("name", ["reversal", "cyclic", "permutations", "sign"])
def test_a_linear_network_is_a_linear_function_of_orbit_means(name):
    assert LINEAR.make is not None
    group = inv.symmetry(name, shape=(4,))
    module = LINEAR.make((4,), 2)
    torch.nn.init.normal_(module.weight, generator=torch.Generator().manual_seed(0))
    network = inv.nn.Symmetrized(module, [group], "weights")
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(network(x), module(x @ inv.reynolds_operator(group).float().mT))


def test_only_rows_of_numbers_have_a_linear_model():
    assert models_for("auto", (9,))[0] is LINEAR
    assert all(LINEAR not in models_for("auto", shape) for shape in ((8, 8), (100,), (12, 3)))
    assert models_for("linear", (8, 8)) == (LINEAR,)


def test_the_symmetry_of_a_sum_is_found_although_a_linear_function_learns_it_without():
    x = np.random.default_rng(1000).integers(0, 10, size=(160, 6))
    found = InvariantRegressor(["permutations", "cyclic"], n_networks=1, random_state=0).compare(x, x.sum(1))
    assert found.favourite == "permutations"
    assert found.models[0].name == "linear"
