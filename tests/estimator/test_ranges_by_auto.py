"""With `auto`, a verdict on groups is followed by ranges where inputs look as if they were moved already."""

import numpy as np
import pytest

from invariantnet import InvariantClassifier
from invariantnet.estimator import fitting
from invariantnet.inference.findings import Price
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.range_posterior import range_posteriors

pytestmark = pytest.mark.usefixtures("module_unchecked")
SIDE = 12
X = np.random.default_rng(0).normal(size=(40, SIDE * SIDE))
Y = np.arange(40) % 2


class Judge:
    """Stands for a comparison: evidence by name, how well moved inputs are predicted, and what was compared."""

    def __init__(self, evidence, strain):
        self.evidence, self.strain, self.compared, self.models = evidence, strain, [], []

    def __call__(self, make_network, hypotheses, examples, *, records, **_):
        self.probes = [probe.name for probe in records.probes]
        symmetries = list(dict.fromkeys(h.symmetry for h in hypotheses))
        names = tuple(s.name for s in symmetries)
        self.compared.append(names)
        self.models.append({h.model.name for h in hypotheses})
        evidence = tuple(self.evidence.get(name, -100.0) for name in names)
        p = tuple((np.exp(evidence) / np.exp(evidence).sum()).tolist())
        orders, prices = tuple(s.copies for s in symmetries), tuple(Price(n, 1, 0.0, {}) for n in names)
        return SymmetryPosterior(
            names,
            orders,
            p,
            evidence,
            (0.0,) * len(names),
            30,
            prices=prices,
            best_models=("plain cnn",) * len(names),
            ranges=range_posteriors(symmetries, p, evidence),
            strain=self.strain,
        )


def compare(monkeypatch, judge, **options):
    monkeypatch.setattr(fitting, "gather_evidence", judge)
    clf = InvariantClassifier("auto", input_shape=(SIDE, SIDE), random_state=0, **options)
    clf.compare(X, Y)
    return clf


def test_a_ladder_follows_where_turned_inputs_are_predicted_as_well(monkeypatch):
    judge = Judge({"rot90": -50.0, "rotation:90": -30.0}, {"rotation:20": 0.1, "translation:0.8571428571": 2.0})
    clf = compare(monkeypatch, judge)
    assert judge.probes == list(judge.strain)
    assert judge.compared[-1][:3] == ("trivial", "rot90", "rotation:15")
    assert judge.models[-1] == {"plain cnn"}
    found = clf.posterior_
    assert found.names == tuple(s.name for s in clf.candidates_)
    assert found.favourite == "rotation:90"
    assert found.ranges["rotation"].probabilities[5] == pytest.approx(1, abs=1e-6)
    assert "rotation" not in found.left_out
    assert "translation" in found.left_out
    chosen = clf.hypothesis_of(next(s for s in clf.candidates_ if s.name == "rotation:90"))
    assert chosen.model.name == "plain cnn"


def test_what_auto_added_is_saved_and_comes_back(monkeypatch, tmp_path):
    judge = Judge({"rot90": -50.0, "rotation:90": -30.0}, {"rotation:20": 0.1})
    monkeypatch.setattr(fitting, "gather_evidence", judge)
    clf = InvariantClassifier("auto", input_shape=(SIDE, SIDE), random_state=0, epochs=1).fit(X, Y)
    assert clf.symmetry_.name == "rotation:90"
    clf.save(tmp_path)
    again = InvariantClassifier.load(tmp_path)
    assert [s.name for s in again.candidates_] == [s.name for s in clf.candidates_]
    assert again.posterior_.ranges == clf.posterior_.ranges
    np.testing.assert_array_equal(again.predict_proba(X[:3]), clf.predict_proba(X[:3]))


@pytest.mark.parametrize("options", [{}, {"joins": False}], ids=["sensitive to turns", "no joins"])
def test_otherwise_ranges_are_left_out_and_named(monkeypatch, options):
    strain = {"rotation:20": 0.1 if options else 1.0}
    judge = Judge({"rot90": -50.0}, strain)
    found = compare(monkeypatch, judge, **options).posterior_
    assert found.ranges == {}
    assert "rotation" in found.left_out
    assert "pass symmetries=['rot90', 'rotation']" in found.left_out_words
