"""Ranges from candidates to a fitted network, its files and its export."""

import numpy as np
import onnxruntime
import pytest
import torch

import invariantnet as inv
from invariantnet import InvariantClassifier
from invariantnet.app.cli.models import _invariance as cli_words
from invariantnet.estimator import restoring
from invariantnet.inference.hypotheses import candidates
from invariantnet.report.posterior_charts import range_charts
from invariantnet.report.wording import invariance as page_words
from invariantnet.symmetries.families import FAMILIES

SHAPE = (8, 8)
DIGITS = inv.datasets.load("digits:rotation:45", seed=0)
X, Y = DIGITS.x_train[:120], DIGITS.y_train[:120]
SMALL = {"input_shape": SHAPE, "hidden": 12, "n_networks": 1, "epochs": 3, "random_state": 0}
pytestmark = pytest.mark.usefixtures("module_unchecked")


def names(asked, *, shape=SHAPE, joins=True):
    return [s.name for s in candidates(asked, shape, joins=joins)]


def certain_of(name):
    """A classifier whose prior leaves no doubt."""
    asked = ["hflip", "rotation:45"]
    order = names(asked)
    return InvariantClassifier(asked, prior=[1e6 if n == name else 1e-6 for n in order], **SMALL)


@pytest.fixture(scope="module")
def fitted(module_unchecked):
    from problems import quickly_compared

    with quickly_compared():
        return certain_of("hflip+rotation:45").fit(X, Y)


def test_a_family_is_its_whole_ladder_and_joins_with_groups():
    rungs = [r.name for r in inv.ladder("rotation", shape=SHAPE)]
    assert names("rotation") == ["trivial", *rungs]
    assert names(["hflip", "rotation"]) == ["trivial", "hflip", *rungs, *(f"hflip+{r}" for r in rungs)]
    assert names(["hflip", "rotation"], joins=False) == ["trivial", "hflip", *rungs]
    assert names("hflip+rotation") == ["trivial", *(f"hflip+{r}" for r in rungs)]


def test_single_rungs_objects_and_ranges_of_no_extent():
    turn = inv.symmetry("rotation:30", shape=SHAPE)
    assert names([turn, "rotation:60"]) == ["trivial", "rotation:30", "rotation:60"]
    assert names(["rotation:0", "hflip+rotation:0"]) == ["trivial", "hflip"]
    assert names(["rot90", "rotation:180"]) == ["trivial", "rot90", "rotation:180"], "quarter turns are inside"
    assert "flips+rotation:30" in names(["hflip", "vflip", turn])


def test_too_many_ranges_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"more than 32 symmetries.*rotation:30.*joins=False"):
        candidates(["rotation", "translation"], (28, 28), joins=True)
    assert len(candidates(["rotation", "translation"], (28, 28), joins=False)) == 14
    with pytest.raises(ValueError, match="is for shape"):
        candidates([inv.symmetry("time-shift:1", shape=(64,))], SHAPE, joins=True)


def test_the_network_is_averaged_over_the_chosen_range(fitted):
    assert fitted.symmetry_.name == "hflip+rotation:45"
    assert not fitted.network_.exact
    flip = inv.symmetry("hflip", shape=SHAPE)
    assert inv.check_invariance(fitted.network_, flip, torch.from_numpy(X[:5])) < 1e-5
    assert 0 < fitted.deviation_.mean <= fitted.deviation_.largest <= 1


def test_the_posterior_says_how_far_the_range_reaches(fitted):
    (turns,) = fitted.posterior_.ranges.values()
    assert (turns.family, turns.unit, turns.values) == ("rotation", "°", (0.0, 45.0))
    assert sum(turns.probabilities) == pytest.approx(1)
    assert turns.median == pytest.approx(45, abs=0.01)
    assert "(hflip+rotation), up to about 45°" in fitted.posterior_.verdict


def test_what_is_saved_comes_back(fitted, tmp_path):
    fitted.save(tmp_path)
    again = InvariantClassifier.load(tmp_path)
    np.testing.assert_array_equal(again.predict_proba(DIGITS.x_test), fitted.predict_proba(DIGITS.x_test))
    assert again.posterior_.ranges == fitted.posterior_.ranges
    assert again.symmetry_ == fitted.symmetry_
    assert again.deviation_ == fitted.deviation_
    assert again.posterior_.verdict == fitted.posterior_.verdict


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_the_exported_network_makes_the_copies_itself(fitted, tmp_path):
    fitted.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for n in (1, 7):
        (ours,) = session.run(None, {"x": DIGITS.x_test[:n].reshape(n, *SHAPE)})
        np.testing.assert_allclose(ours, fitted.predict_proba(DIGITS.x_test[:n]), atol=1e-4)
    assert session.get_modelmeta().custom_metadata_map["invariantnet.exact"] == "false"


def test_a_network_for_a_range_does_not_fold(fitted):
    with pytest.raises(ValueError, match="fold into plain layers"):
        fitted.network_.fold()


@pytest.mark.parametrize("option", [{"method": "heldout"}, {"method": "paper"}, {"placement": "weights"}])
def test_methods_for_groups_refuse_ranges(option):
    with pytest.raises(ValueError, match="for groups, not for ranges: leave out the ranges"):
        InvariantClassifier(["rotation:30"], **SMALL, **option).fit(X, Y)


@pytest.mark.usefixtures("quick_comparison")
def test_a_range_of_ones_own_has_to_be_registered_again(tmp_path):
    inv.register_range("gain", _gain, ladder=(0.1, 0.2))
    try:
        clf = InvariantClassifier(["gain:0.2"], prior=[1e-6, 1e6], **SMALL).fit(X, Y)
        clf.save(tmp_path)
        expected = InvariantClassifier.load(tmp_path).predict_proba(X[:3])
        del FAMILIES["gain"]
        with pytest.raises(restoring.NotRegisteredError, match=r"register_range\('gain', …\) first"):
            InvariantClassifier.load(tmp_path)
        inv.register_range("gain", _gain, ladder=(0.1, 0.2))
        np.testing.assert_array_equal(InvariantClassifier.load(tmp_path).predict_proba(X[:3]), expected)
    finally:
        FAMILIES.pop("gain", None)


def _gain(x, value):
    return x * (1 + value)


@pytest.mark.usefixtures("quick_comparison")
def test_tolerance_asks_for_the_largest_affordable_rung():
    asked = ["rotation:30", "rotation:45", "rotation:60"]
    clf = InvariantClassifier(asked, tolerance=1e6, **SMALL).fit(X, Y)
    assert clf.symmetry_.name == "rotation:60"
    orders = {p.name: (p.order, p.size) for p in clf.posterior_.prices}
    assert orders["rotation:30"] < orders["rotation:45"] < orders["rotation:60"]
    assert set(clf.posterior_.prices[0].accuracy) == {"trivial", *asked}


def test_the_deviation_is_stated_with_the_network(fitted):
    record = fitted._to_record()
    stated = f"{record.deviation.mean:.2g} for a typical input"
    assert stated in cli_words(record)
    assert stated in page_words(record)
    (chart,) = range_charts(fitted.posterior_)
    assert chart[0].startswith("rotation: up to about 45°")
    assert "none" in chart[1]
