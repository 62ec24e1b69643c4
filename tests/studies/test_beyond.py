"""Experiments whose truth is known: they run, they are summed up rightly, and the posterior finds the truth."""

import numpy as np
import pytest

import invariantnet as inv
from studies import calibration, figures, posterior, tables
from studies.calibration import FAMILIES, CalibrationRecipe, run_calibration, summary, synthetic
from studies.fits import FitRecipe, learned, load, run_fit, table_as_images
from studies.posterior import scores


@pytest.mark.parametrize(
    ("family", "truth"),
    [
        ("signs", "sign"),
        ("channels", "channels"),
        ("sets", "permutations"),
        ("sequences", "reversal"),
        ("sets", "trivial"),
    ],
)
def test_truth_is_found_on_every_kind_of_data(family, truth):
    record = run_calibration(CalibrationRecipe(family, truth, 300, "easy", seed=0))
    assert record["names"][int(np.argmax(record["probabilities"]))] == truth


def test_group_given_by_matrices_is_found():
    turn = np.array([[0.5, -(0.75**0.5)], [0.75**0.5, 0.5]])
    hexagon = inv.Group.from_matrices([turn], name="hexagon")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 2))
    angle = np.arctan2(x[:, 1], x[:, 0])
    clf = inv.InvariantClassifier(symmetries=[hexagon], hidden=32, epochs=5, random_state=0)
    for labels, truth in ((np.cos(6 * angle) > 0, "hexagon"), (x[:, 0] > 0, "trivial")):
        clf.fit(x, labels)
        assert clf.symmetry_.name == truth
        assert max(clf.posterior_.probabilities) > 0.95
    # From 600 points networks learn next to nothing of twelve sectors: a toss-up, and the posterior says so.
    few = clf.fit(x[:600], np.cos(6 * angle[:600]) > 0).posterior_
    assert few.strength == "inconclusive" or few.favourite == "hexagon"


def test_random_pairs_of_pixels_are_no_symmetry():
    """Tying them helps networks that overfit, as any regulariser does."""
    recipe = FitRecipe("mnist:permuted", 5000, 100, "trivial", groups=("hflip", "rot180"))
    x, y = learned(recipe, load(recipe.data, recipe.seed))
    clf = inv.InvariantClassifier(recipe.groups, (28, 28), joins=False, epochs=1, random_state=100).fit(x, y)
    assert clf.posterior_.favourite == "trivial"
    assert clf.posterior_.strength != "inconclusive"


def test_all_symmetries_of_the_square_are_not_taken_for_its_rotations():
    """Networks from other starts may differ more than the hypotheses do: two narrow ones were sure of rot90."""
    recipe = FitRecipe("mnist:d4", 5000, 136, "d4")
    x, y = learned(recipe, load(recipe.data, recipe.seed))
    clf = inv.InvariantClassifier(recipe.groups, (28, 28), epochs=1, random_state=136).fit(x, y)
    assert clf.posterior_.favourite == "d4"
    assert clf.posterior_.strength != "inconclusive"


def test_noisy_numbers_without_symmetry_have_none():
    rng = np.random.default_rng(100)
    x, w = rng.normal(size=(1000, 6)), rng.normal(size=6)
    y = np.tanh(x @ w) + 0.5 * x[:, 0] * x[:, 1]
    noisy = y / y.std() + rng.normal(size=1000) / 2
    reg = inv.InvariantRegressor(["reversal", "sign"], hidden=64, epochs=1, random_state=100).fit(x, noisy)
    assert reg.posterior_.favourite == "trivial"
    assert reg.posterior_.strength != "inconclusive"


def test_suite_has_every_family_truth_size_and_difficulty():
    recipes = calibration.calibration(0)
    assert len({r.key for r in recipes}) == len(recipes) == 84
    assert {r.family for r in recipes} == set(FAMILIES)
    assert {r.truth for r in recipes if r.family == "images"} == {"trivial", "rot90", "flips", "d4"}


def test_synthetic_data_is_reproducible_and_balanced():
    recipe = CalibrationRecipe("images", "d4", 1000, "hard", seed=3)
    x, y = synthetic(recipe)
    again, labels = synthetic(recipe)
    np.testing.assert_array_equal(x, again)
    np.testing.assert_array_equal(y, labels)
    assert 0.4 < y.mean() < 0.6


def test_summary_counts_confident_verdicts_and_false_claims():
    rows = [
        ("a", "a", 0.95),
        ("a", "b", 0.95),
        ("trivial", "a", 0.99),
        ("trivial", "trivial", 0.6),
        ("a", "a", 0.5),
    ]
    records = [
        {"family": "f", "n": 1, "truth": t, "favourite": f, "probability": p, "difficulty": "easy", "seed": 0}
        for t, f, p in rows
    ]
    found = summary(records)
    assert found["confident"] == 3
    assert found["right among confident"] == pytest.approx(1 / 3)
    assert found["false claims"] == 0.5
    assert "| of these right | 33.3 % |" in tables.calibration(records)


@pytest.mark.parametrize(("name", "side", "classes"), [("breast_cancer", 6, 2), ("wine", 4, 3)])
def test_tables_forced_into_images(name, side, classes):
    data = table_as_images(name, seed=0)
    assert data.shape == (side, side)
    assert len(data.class_names) == classes
    assert (data.x_train[:, -1] == 0).all(), "padded with zeros"


def test_posterior_run_and_its_summary(tmp_path):
    recipe = FitRecipe("table:wine", 200, 0, "trivial", epochs=5)
    flat = posterior.flatten([recipe], [run_fit(recipe)])
    assert {"method", "data", "n", "seed", "names", "probabilities", "log_evidence", "truth"} <= set(flat[0])
    (row,) = scores(flat)
    assert row["favourite"] == "1 of 1"
    assert row["lowest"] > 0.5
    assert "| table:wine | 200 | rot90, flips | trivial | evidence, MLP | 1 of 1 |" in tables.posterior(flat)
    png, _ = figures.posterior(flat, tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
