"""What the experiments beyond the paper would run, and what they would commit; nothing is trained here."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from studies import beside, calibration, figures, fits, learning, posterior, schemes, uncertainty
from studies.recipes import SIX_AND_NINE
from studies.run import load_without, shifted_test_sets

FULL, FEWER = 0, 9


@pytest.mark.parametrize(
    "plan",
    [posterior.posterior, calibration.calibration, schemes.schemes, learning.learning, uncertainty.uncertainty],
)
def test_every_run_has_a_name_of_its_own_and_later_seeds_leave_out_what_takes_long(plan):
    first, later = plan(FULL), plan(FEWER)
    keys = [r.key for r in (*first, *later)]
    assert len(set(keys)) == len(keys)
    assert len(later) <= len(first)
    assert {r.seed for r in later} == {FEWER}


def test_truths_are_among_the_hypotheses():
    for recipe in posterior.posterior(FULL):
        assert recipe.truth in (*recipe.groups, "trivial", "d4")


def test_ours_beside_the_paper():
    assert {r.n for r in beside.figure1("heldout", 0)} == {beside.HELD_OUT}
    assert {r.n for r in beside.figure1("evidence", 0)} == {60_000}
    assert "mnist:plain" not in {r.data for r in beside.figure2("evidence", 0)}
    assert beside.table1("heldout", 0) == []
    names = [beside.model_name(r) for r in beside.table1("evidence", 0)]
    assert names == [
        "ours (MLP, d4)",
        "ours (CNN, d4)",
        "ours (MLP, d4, all ten digits)",
    ]
    assert [beside.model_name(r) for r in beside.table1("evidence", FEWER)] == names[:2]


@pytest.mark.parametrize("what", ["figure1", "figure2", "table1"])
def test_records_beside_the_paper_have_its_fields(what):
    plan = {"figure1": beside.figure1, "figure2": beside.figure2, "table1": beside.table1}[what]
    recipes = plan("evidence", 0)
    accuracy = dict.fromkeys(("own", "plain", "rotated", "flipped"), 97.0)
    record = {"names": ["trivial"], "trajectory": [[1.0]], "predicted": [5], "accuracy": accuracy}
    record |= {"chosen": "d4", "confused": [["6", "9", 0.5]]}
    for row in beside.flatten(what, recipes, [record] * len(recipes)):
        fields = {
            "figure1": {"data", "trajectory"},
            "figure2": {"data", "accuracy"},
            "table1": {"plain", "chosen", "confused"},
        }
        assert fields[what] | {"method", "seed"} <= set(row)


def test_the_most_confused_pairs_are_named_with_their_share_of_the_errors():
    truth = np.array([0, 0, 1, 2, 2, 2])
    data = replace(fits.load("table:wine", 0), y_test=truth, class_names=("a", "b", "c"))
    assert fits.confused(data, np.array([0, 2, 1, 0, 1, 2])) == [("a", "c", 0.6667), ("b", "c", 0.3333)]
    assert fits.confused(data, truth) == []


def test_calibration_is_flattened_and_drawn(tmp_path):
    recipes = calibration.calibration(0)[:40]
    record = {
        "names": ["trivial", "other"],
        "probabilities": [0.97, 0.03],
        "laplace": "trivial",
        "seconds": [1, 2],
    }
    rows = calibration.flatten(recipes, [record] * len(recipes))
    assert {r["favourite"] for r in rows} == {"trivial"}
    found = calibration.summary(rows)
    assert found["confident"] == len(rows)
    assert found["right among confident"] == pytest.approx(sum(r.truth == "trivial" for r in recipes) / len(rows))
    assert all(path.exists() for path in figures.calibration(rows, tmp_path))


def test_tables_of_scikit_learn_are_squares():
    data = fits.load("table:wine", 0)
    assert data.shape == (4, 4)
    assert len(data.x_train) + len(data.x_test) == 178


def test_rotated_test_images_are_those_of_the_data_whichever_digits_it_has():
    ten, eight = (load_without("mnist:plain", 3, without) for without in ((), SIX_AND_NINE))
    images, labels = shifted_test_sets(ten, 3)["rotated"]
    np.testing.assert_array_equal(labels, ten.y_test)
    assert not np.array_equal(images, ten.x_test)
    images, labels = shifted_test_sets(eight, 3)["rotated"]
    rotated = load_without("mnist:rotated", 3, ())
    np.testing.assert_array_equal(images, rotated.x_test)
    np.testing.assert_array_equal(labels, rotated.y_test)


def test_no_two_synthetic_data_sets_share_their_inputs():
    seen = [calibration.synthetic(recipe)[0].tobytes() for recipe in calibration.calibration(0)]
    assert len(set(seen)) == len(seen)


def test_records_of_two_kinds_have_two_names():
    fit = schemes.schemes(0)[0]
    assert fits.FitRecipe(**asdict(fit)).key != fit.key


def test_the_picture_of_calibration_shows_also_what_was_never_right(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, *_: drawn.append(figure) or [])
    figures.calibration([{"probability": 0.4, "favourite": "rot90", "truth": "trivial"}] * 9, tmp_path)
    (axis,) = drawn[0].axes
    assert axis.get_ylim()[0] < 0 < axis.get_ylim()[1]
    assert [line.get_ydata()[0] for line in axis.lines if line.get_marker() == "o"] == [0]
