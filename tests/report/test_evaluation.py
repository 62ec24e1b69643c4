"""The final network is compared with the same network without the symmetry, on all test data that can be used."""

import json

import numpy as np
import pytest
import torch

from invariantnet import InvariantClassifier
from invariantnet import data as datasets
from invariantnet._system.words import with_article
from invariantnet.app.record import Settings, read_run
from invariantnet.app.runs import fit
from invariantnet.report import evaluation
from invariantnet.report.baseline import fit_baseline, other_kind, restore_baseline
from invariantnet.report.evaluation import evaluate

pytestmark = pytest.mark.usefixtures("brief_comparison")
DIGITS = datasets.load("digits:rotated", seed=0)
X, Y = DIGITS.x_train[:120], DIGITS.y_train[:120]
X_TEST, Y_TEST = DIGITS.x_test[:60], DIGITS.y_test[:60]
TINY = {"input_shape": (8, 8), "hidden": 4, "n_networks": 1, "epochs": 1, "random_state": 0}
CASES = {
    "mlp": {},
    "cnn": {"backbone": "cnn"},
    "ensemble": {"uncertainty": "ensemble"},
    "outputs": {"placement": "outputs"},
}


@pytest.mark.parametrize("case", CASES)
def test_the_baseline_is_the_same_network_without_the_symmetry(case):
    """It is what the classifier trains in the end if no symmetry is far more probable beforehand."""
    x, y = np.concatenate([X, X[:20]]), np.concatenate([Y, Y[:20]])  # some examples are there twice
    options = {**TINY, **CASES[case]}
    clf = InvariantClassifier(["rot90"], tolerance=9.0, **options).fit(x, y)
    assert clf.symmetry_.name == "rot90"
    baseline = fit_baseline(clf, x, y)
    without = InvariantClassifier(["rot90"], prior=[1e200, 1.0], **options).fit(x, y)
    assert without.symmetry_.name == "trivial"
    without = without.network_.state_dict()
    assert baseline.state_dict().keys() == without.keys()
    for name, value in baseline.state_dict().items():
        torch.testing.assert_close(value, without[name], rtol=0, atol=0)
    again = restore_baseline(clf, baseline.state_dict())
    inputs = torch.from_numpy(X_TEST)
    with torch.no_grad():
        assert torch.equal(again(inputs), baseline.eval()(inputs))


def test_a_network_without_symmetry_is_its_own_baseline():
    clf = InvariantClassifier(["trivial"], **TINY).fit(X, Y)
    assert fit_baseline(clf, X, Y) is clf.network_


def test_a_network_that_always_has_its_symmetry_is_compared_with_another_kind(tmp_path, capfd):
    x = np.random.default_rng(0).normal(size=(80, 5)).astype(np.float32)
    y = np.where(x.max(1) - x.min(1) > 2.3, "wide", "narrow")
    np.savez(tmp_path / "d.npz", x=x, y=y)
    options = {"hidden": 4, "n_networks": 1, "epochs": 1, "tolerance": 9.0}
    fit(Settings(str(tmp_path / "d.npz"), ("permutations",), **options), tmp_path / "run")
    clf = InvariantClassifier.load(tmp_path / "run")
    assert other_kind(clf) == clf.without_symmetry().model.name
    ours, other = clf.hypothesis_of(clf.symmetry_).model.name, clf.without_symmetry().model.name
    assert ours != other
    said = (tmp_path / "run/report.html").read_text()
    assert f"{with_article(other)} without the symmetry, trained on the same examples" in said
    assert f"because {with_article(ours)} always has the symmetry" in said
    assert "same network" not in said
    assert f"training {with_article(other)} without the symmetry, to compare with" in capfd.readouterr().err


def test_test_examples_of_unknown_classes_are_counted_and_named(tmp_path, capfd):
    x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    y = np.array([*["a", "b"] * 29, "rare", "odd"])
    np.savez(tmp_path / "d.npz", x=x, y=y, x_test=x, y_test=y)
    # With this seed, the few examples to learn from have neither of the two.
    settings = Settings(str(tmp_path / "d.npz"), ("sign",), hidden=4, n_networks=1, epochs=1, examples=16)
    fit(settings, tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert record.evaluation.unknown == {"odd": 1, "rare": 1}
    assert record.evaluation.test_examples == 58
    said = "2 examples are left out, because no training example has the class: odd (1), rare (1)"
    assert [line for line in capfd.readouterr().err.splitlines() if said in line] == [f"of the test data, {said}"]
    assert said in (tmp_path / "run/report.html").read_text()
    assert json.loads((tmp_path / "run/run.json").read_text())["evaluation"]["unknown"] == {"odd": 1, "rare": 1}


def test_nothing_to_test_on_is_no_number():
    clf = InvariantClassifier(["rot90"], **TINY).fit(X, Y)
    evaluated, shown = evaluate(clf, clf.network_, X_TEST, np.full(len(X_TEST), 99))
    assert evaluated.test_examples == 0
    assert evaluated.unknown == {"99": len(X_TEST)}
    assert evaluated.scores == {}
    assert not evaluated.examples
    assert not len(shown.examples)
    assert not len(shown.doubtful)


def test_few_of_many_test_inputs_are_moved_and_from_all_of_them(monkeypatch):
    """Test data sorted by class: its first inputs are of one class."""
    order = np.argsort(Y_TEST, kind="stable")
    x, y = X_TEST[order], Y_TEST[order]
    clf = InvariantClassifier(["rot90"], tolerance=9.0, **TINY).fit(X, Y)
    baseline = fit_baseline(clf, X, Y)
    all_moved, _ = evaluate(clf, baseline, x, y)
    monkeypatch.setattr(evaluation, "PREDICTED_IN_ALL", 0)
    monkeypatch.setattr(evaluation, "FEWEST_MOVED", 20)
    asked = []
    plain = evaluation.score_moved
    monkeypatch.setattr(
        evaluation, "score_moved", lambda c, n, g, few, labels: asked.append(labels) or plain(c, n, g, few, labels)
    )
    found, _ = evaluate(clf, baseline, x, y)
    assert {len(labels) for labels in asked} == {len(y), 20}
    assert all(len(set(labels.tolist())) > 5 for labels in asked)
    for name in ("chosen", "baseline"):
        scores, before = getattr(found.accuracy, name), getattr(all_moved.accuracy, name)
        assert scores["trivial"] == before["trivial"], "on all of them"
        assert scores["rot90"] == pytest.approx(before["rot90"], abs=0.25)
    assert found.accuracy.chosen["rot90"] == found.accuracy.chosen["trivial"], "it is exactly invariant"
