"""Predictors in closed form: exactly invariant, and equal to slow references."""

import numpy as np
import pytest

from invariantnet.discovery._ridge import fit_features, fit_kernel
from invariantnet.discovery.copies import LISTED, nothing, symmetry_of
from invariantnet.discovery.predictors import (
    KernelPredictor,
    Labelled,
    Monomials,
    PolynomialPredictor,
    choose,
    standardise,
)
from invariantnet.symmetries.lookup import symmetry

DIM = 4
GROUPS = {
    "turns": symmetry("rot90", (2, 2)).generators,
    "signs": np.array([[4, 1, 2, 3]]),
    "all": symmetry("permutations", (DIM,)).generators,
}


def examples(n, seed=0, classes=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, DIM)) * [1, 1, 2, 2] + 0.5
    y = x.sum(axis=1) + 0.1 * rng.normal(size=n)
    return Labelled(x, y if classes is None else (y > 2).astype(int), classes)


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("scaling", ["orbit", "all"])
@pytest.mark.parametrize("make", [lambda s: KernelPredictor(1.0, s), lambda s: PolynomialPredictor(2, s)])
def test_predictions_are_invariant(name, scaling, make):
    group = symmetry_of(GROUPS[name])
    _, function = make(scaling).fit(group, examples(60))
    x = examples(20, seed=1).x
    both = np.concatenate([x, -x], axis=1)
    for element in group.elements:
        assert np.allclose(function(both[:, element]), function(x), atol=1e-3)


@pytest.mark.parametrize("name", GROUPS)
def test_invariant_monomials_are_the_averaged_polynomial_kernel(name):
    group = symmetry_of(GROUPS[name])
    x = np.random.default_rng(2).normal(size=(6, DIM))
    monomials = Monomials(DIM, 3)
    features = monomials(x) @ monomials.invariant(group)
    both = np.concatenate([x, -x], axis=1)
    slow = np.mean([(1 + x @ both[:, e].T / DIM) ** 3 - 1 for e in group.elements], axis=0)
    assert np.allclose(features @ features.T, slow)


@pytest.mark.parametrize("classes", [None, 2])
def test_features_and_kernel_give_the_same_fit_and_leave_one_out_is_what_it_says(classes):
    given = examples(25, classes=classes)
    ridge = (0.3,)
    by_features = fit_features(given.x, given.y, classes, ridge)
    by_kernel = fit_kernel(given.x @ given.x.T, given.y, classes, ridge)
    assert np.allclose(given.x.T @ by_kernel.coefficients, by_features.coefficients)
    assert by_kernel.score == pytest.approx(by_features.score)


def test_leaving_one_out_is_fitting_without_it():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    targets = y - y.mean()
    slow = []
    for i in range(12):
        rest = np.arange(12) != i
        weights = np.linalg.solve(x[rest].T @ x[rest] + 0.5 * np.eye(3), x[rest].T @ targets[rest])
        slow.append(x[i] @ weights)
    found = fit_features(x, y, None, (0.5,))
    assert found.score == pytest.approx(found.calibration.log_prob(np.array(slow)[:, None], y).sum())


def test_standardised_inputs_commute_with_the_group():
    group = symmetry_of(GROUPS["turns"])
    standard = standardise(examples(40).x, group, "orbit")
    x = examples(5, seed=1).x
    for element in group.elements:
        assert np.allclose(standard(x[:, element]), standard(x)[:, element])


def test_large_groups_are_averaged_over_some_elements():
    rng = np.random.default_rng(4)
    single = symmetry_of(np.concatenate([np.roll(np.arange(a), 1) + o for a, o in ((11, 0), (13, 11))])[None])
    several = symmetry_of(symmetry("permutations", (12,)).generators)
    for group in (single, several):
        assert len(group.elements) <= LISTED
        assert group.weights.sum() == pytest.approx(1)
        x = rng.normal(size=(30, group.dim))
        kernel = KernelPredictor(1.0, "all").kernel(group, x, x)
        assert np.linalg.eigvalsh((kernel + kernel.T) / 2).min() > -1e-5


def test_one_penalty_gives_what_its_eigenvectors_give():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, DIM))
    kernel = KernelPredictor(1.0, "all").kernel(nothing(DIM), x, x)
    for y, classes in ((rng.integers(0, 3, size=40), 3), (rng.normal(size=40), None)):
        fast, slow = fit_kernel(kernel, y, classes, (0.01,)), fit_kernel(kernel, y, classes, (0.01, 0.01))
        assert np.allclose(fast.coefficients, slow.coefficients, rtol=1e-5, atol=1e-6)
        assert fast.score == pytest.approx(slow.score, abs=1e-4)


def test_a_kernel_that_rounding_made_indefinite_is_still_fitted():
    kernel, y = np.ones((6, 6)) - 1e-7 * np.eye(6), np.arange(6.0)
    assert np.isfinite(fit_kernel(kernel, y, None, (1e-8,)).coefficients).all()


def test_a_suitable_predictor_is_chosen():
    given = examples(120)
    chosen = choose(given)
    scores = chosen.score(nothing(DIM), given[:80], given[80:])
    guess = np.mean((given.y[80:] - given.y[:80].mean()) ** 2)
    assert scores.mean() > -0.5 * np.log(2 * np.pi * np.e * guess)
