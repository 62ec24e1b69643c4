"""Studies whose truth is known: they run, they are summed up correctly, and the posterior finds the truth."""

from dataclasses import replace

import numpy as np
import pytest

import invariantnet as inv
from studies.datasets import SHIFTS, draw_examples, load, table_as_images
from studies.inference import (
    calibration,
    fits,
    learning,
    mixture,
    posterior,
    second_opinion,
    uncertainty,
)
from studies.inference.calibration import FAMILIES, CalibrationRecipe, summarise, synthetic
from studies.inference.fits import FitRecipe, run_fit

# Long trainings, whose shapes other tests check.
pytestmark = pytest.mark.usefixtures("annotations_unchecked")


@pytest.mark.parametrize(
    ("family", "truth", "n"),
    [
        ("signs", "sign", 600),
        ("channels", "channels", 1000),
        ("sets", "permutations", 600),
        ("sequences", "reversal", 1500),
        ("sets", "trivial", 600),
    ],
)
def test_truth_is_found_on_every_kind_of_data(family, truth, n):
    (record,) = calibration.run(CalibrationRecipe(family, truth, n, "easy", seed=0))
    assert record.favourite == truth
    assert record.probability > calibration.SURE


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
    # From 600 points networks learn next to nothing about twelve sectors: a toss-up, and the posterior says so.
    few = clf.fit(x[:600], np.cos(6 * angle[:600]) > 0).posterior_
    assert few.strength == "inconclusive" or few.favourite == "hexagon"


@pytest.mark.parametrize(
    ("recipe", "joins", "backbone"),
    [
        # Tying random pairs of pixels helps networks that overfit, as any regulariser does.
        (FitRecipe("mnist:permuted", 5000, 100, "trivial", symmetries=("hflip", "rot180")), False, "auto"),
        # Networks may vary by more than the hypotheses differ: two narrow MLPs were sure of rot90.
        (FitRecipe("mnist:d4", 5000, 136, "d4"), True, "mlp"),
    ],
    ids=["random pairs of pixels are no symmetry", "all of the square is not taken for its rotations"],
)
def test_truth_is_found_in_thousands_of_images(recipe, joins, backbone):
    x, y = draw_examples(load(recipe.data, recipe.seed), recipe.n, recipe.seed)
    clf = inv.InvariantClassifier(
        recipe.symmetries, (28, 28), joins=joins, backbone=backbone, random_state=recipe.seed
    )
    found = clf.compare(x, y)
    assert found.favourite == recipe.truth
    # Permuted images hardly refute anything: with 5,000 of them the gap is 3 to 25 nats, networks differ by 60.
    assert found.strength != "inconclusive" or recipe.truth == "trivial"


def test_noisy_numbers_without_symmetry_have_none():
    rng = np.random.default_rng(100)
    x, w = rng.normal(size=(1000, 6)), rng.normal(size=6)
    y = np.tanh(x @ w) + 0.5 * x[:, 0] * x[:, 1]
    noisy = y / y.std() + rng.normal(size=1000) / 2
    reg = inv.InvariantRegressor(["reversal", "sign"], hidden=64, epochs=1, random_state=100).fit(x, noisy)
    assert reg.posterior_.favourite == "trivial"
    assert reg.posterior_.strength != "inconclusive"


def test_suite_has_every_family_truth_size_and_difficulty():
    recipes = calibration.recipes(0)
    assert len(set(recipes)) == len(recipes) == 84
    assert {r.family for r in recipes} == set(FAMILIES)
    assert {r.truth for r in recipes if r.family == "images"} == {"trivial", "rot90", "flips", "d4"}


def test_synthetic_data_is_reproducible_balanced_and_never_shared():
    recipe = CalibrationRecipe("images", "d4", 1000, "hard", seed=3)
    x, y = synthetic(recipe)
    again, labels = synthetic(recipe)
    np.testing.assert_array_equal(x, again)
    np.testing.assert_array_equal(y, labels)
    assert 0.4 < y.mean() < 0.6
    seen = [synthetic(r)[0].tobytes() for r in calibration.recipes(0)]
    assert len(set(seen)) == len(seen)


def verdict(truth, favourite, probability, laplace="a", n=100):
    return calibration.Record("f", n, truth, favourite, probability, "easy", 0, laplace, (2.0, 1.0))


VERDICTS = [
    verdict("a", "a", 0.95),
    verdict("a", "b", 0.95),
    verdict("trivial", "a", 0.99),
    verdict("trivial", "trivial", 0.6),
    verdict("a", "a", 0.5),
]


def test_summary_counts_confident_verdicts_and_false_claims():
    found = summarise(VERDICTS)
    assert found.confident == 3
    assert found.right_if_confident == pytest.approx(1 / 3)
    assert found.false_claims == 0.5
    assert "| of these right | 33.3 % |" in calibration.table(VERDICTS)
    assert not calibration.claims(VERDICTS)["honest"].holds


def test_the_picture_of_calibration_shows_also_what_was_never_right():
    (axis,) = calibration.draw([verdict("trivial", "rot90", 0.4)] * 9).axes
    assert axis.get_ylim()[0] < 0 < axis.get_ylim()[1]
    assert [line.get_ydata()[0] for line in axis.lines if line.get_marker() == "o"] == [0]


def test_opinions_are_compared_where_both_were_asked():
    (found,) = second_opinion.compare(VERDICTS)
    assert (found.data, found.n, found.data_sets) == ("calibration", 100, 5)
    assert (found.right, found.laplace_right, found.agreed, found.right_if_agreed) == (3, 3, 3, 2)
    assert "| calibration | 100 | 3 of 5 | 3 of 5 | 2 of 3 | 2.0 | 1.0 |" in second_opinion.table(VERDICTS)


@pytest.mark.parametrize(("name", "side", "classes"), [("breast_cancer", 6, 2), ("wine", 4, 3)])
def test_tables_forced_into_images(name, side, classes):
    data = table_as_images(name, seed=0)
    assert data.shape == (side, side)
    assert len(data.class_names) == classes
    assert (data.x_train[:, -1] == 0).all(), "padded with zeros"
    assert len(data.x_train) == posterior.TABLE_ROWS[name]


def test_a_fit_and_its_record():
    recipe = FitRecipe("table:wine", 200, 0, "trivial", epochs=5)
    (record,) = posterior.keep(recipe, run_fit(recipe))
    assert record.favourite == "trivial"
    assert record.of_truth > 0.5
    assert "| table:wine | 200 | rot90, flips | trivial | evidence, auto | 1 of 1 |" in posterior.table([record])
    claims = posterior.claims([record, replace(record, probabilities=(0.0, 1.0, 0.0, 0.0))])
    assert "in 1 of 2 runs" in claims["named"].sentence
    assert not claims["tables"].holds


def test_truths_are_among_the_hypotheses():
    for recipe in posterior.STUDY.plan(1):
        assert recipe.truth in (*recipe.symmetries, "trivial", "d4")


def test_the_most_confused_pairs_are_named_with_their_share_of_the_errors():
    truth = np.array([0, 0, 1, 2, 2, 2])
    data = replace(load("table:wine", 0), y_test=truth, class_names=("a", "b", "c"))
    assert fits.most_confused(data, np.array([0, 2, 1, 0, 1, 2])) == (("a", "c", 0.6667), ("b", "c", 0.3333))
    assert fits.most_confused(data, truth) == ()


@pytest.mark.parametrize("model", ["BMLP", "InvariantNet"])
def test_models_are_scored_on_every_test_set(model):
    (record,) = uncertainty.run(uncertainty.UncertaintyRecipe(model, seed=0, n=300, epochs=2))
    assert record.plain.accuracy > 0.3
    assert 0 < record.auroc < 1
    if model == "InvariantNet":
        plain, turned = (vars(getattr(record, shift)) for shift in SHIFTS[:2])
        assert plain == pytest.approx(turned, abs=1e-4), "invariant to turns: the same images, the same scores"
    assert f"| {model} |" in uncertainty.table([record])


def curve(model, accuracies):
    sizes = (100, 1000, 10_000)
    return [learning.Record(model, n, 0, a, -1.0, 0.0, None) for n, a in zip(sizes, accuracies, strict=True)]


def test_examples_needed_are_read_off_the_curve():
    found = curve("MLP", (0.5, 0.85, 0.95)) + curve("CNN", (0.92, 0.95, 0.99))
    found += curve("InvariantNet", (0.1, 0.2, 0.3))
    assert learning.examples_for(found, "MLP") == pytest.approx(10**3.5)
    assert learning.examples_for(found, "CNN") == 100
    assert learning.examples_for(found, "InvariantNet") == np.inf
    table = learning.table(found)
    assert "| MLP | 50.0 | 85.0 | 95.0 | 3,200 |" in table
    assert "| InvariantNet | 10.0 | 20.0 | 30.0 | – |" in table
    assert not learning.claims(found)["fewest"].holds


@pytest.mark.parametrize("model", ["MLP", "MLP, augmented by hand"])
def test_learning_runs(model):
    (record,) = learning.run(learning.LearningRecipe(model, 100, 0))
    assert record.accuracy > 0.3
    assert record.chosen is None, "only ours chooses"


def test_the_posterior_over_pi(monkeypatch):
    monkeypatch.setattr("invariantnet.inference.mixture_posterior.SAMPLES", 100)
    monkeypatch.setattr(mixture, "PRIORS", {"uniform": 1.0})  # the one under which every method is asked
    recipe = mixture.MixtureRecipe("digits:rotated", 300, 0, "rot90", symmetries=("rot90",), epochs=1, hidden=16)
    found = mixture.run(recipe)
    every = {(prior, method) for prior in mixture.PRIORS for method in ("variational", "neurons")}
    assert {(r.prior, r.method) for r in found} == every | {("uniform", "nuts")}
    for record in found:
        mean, low, high = record.of_truth
        assert 0 <= low < mean < high <= 1
        # Sixteen features say less than 300 labels do.
        assert (mean if record.method == "neurons" else low) > 0.5
    assert "| rotated | rot90 | uniform | nuts | 0 |" in mixture.table(found)


def test_recipes_of_different_studies_are_never_equal():
    recipe = mixture.recipes(0)[0]
    same = FitRecipe(recipe.data, recipe.n, recipe.seed, recipe.truth, epochs=recipe.epochs)
    assert recipe != same
