"""With `auto`, the favourite is joined with other candidates where all joins at once would be too many."""

from dataclasses import replace

import numpy as np
import pytest

from invariantnet import InvariantClassifier
from invariantnet.estimator import fitting
from invariantnet.inference import SymmetryPosterior, climbing

pytestmark = pytest.mark.usefixtures("module_unchecked")
X = np.random.default_rng(0).normal(size=(40, 9 * 9))
Y = np.arange(40) % 2


class Judge:
    """Stands for a comparison: evidence by name, and a note of what was compared."""

    def __init__(self, evidence, learned=True):
        self.evidence, self.learned, self.compared = evidence, learned, []

    def __call__(self, make_network, hypotheses, examples, **_):
        groups = list(dict.fromkeys(h.symmetry for h in hypotheses))
        self.compared.append({g.name for g in groups})
        values = [self.evidence.get(g.name, -100.0) for g in groups]
        probabilities = np.exp(values) / np.exp(values).sum()
        orders, spread = tuple(g.order for g in groups), (0.0,) * len(groups)
        names = tuple(g.name for g in groups)
        found = SymmetryPosterior(names, orders, tuple(probabilities), tuple(values), spread, 30)
        return replace(found, learned=self.learned)


def compare(monkeypatch, judge, **options):
    monkeypatch.setattr(fitting, "gather_evidence", judge)
    clf = InvariantClassifier("auto", input_shape=(9, 9), random_state=0, **options)
    clf.compare(X, Y)
    return clf


def test_the_favourite_is_joined_until_no_join_is_favoured(monkeypatch):
    judge = Judge({"shifts": -50.0, "shifts+hflip": -40.0, "shifts+flips": -30.0})
    clf = compare(monkeypatch, judge)
    assert clf.posterior_.favourite == "shifts+flips"
    assert "shifts+hflip" not in judge.compared[0]
    assert {"shifts+hflip", "shifts+d4"} <= judge.compared[1]
    assert judge.compared[0] < judge.compared[1] < judge.compared[-1]
    assert clf.posterior_.names == tuple(g.name for g in clf.candidates_)


def test_joins_that_cost_too_much_are_named_with_a_remedy(monkeypatch):
    monkeypatch.setattr(climbing, "MOST_JOINED", 8)
    judge = Judge({"shifts": -50.0, "vflip": -150.0, "flips": -150.0, "rot180": -150.0, "d4": -150.0})
    found = compare(monkeypatch, judge).posterior_
    assert len(judge.compared) == 1
    assert "shifts+hflip" in found.left_out
    assert "shifts+vflip" not in found.left_out, "refuted"
    said = found.left_out_words
    named = "shifts of pixels that wrap around and left-right mirror images (shifts+hflip)"
    assert said.startswith(f"Not compared: {named}, ")
    assert ", which would take long on inputs of this size;" in said
    assert "To ask for shifts+hflip, pass symmetries=['shifts', 'hflip'], or --symmetries shifts,hflip." in said
    assert "shifts+hflip" not in compare(monkeypatch, judge, joins=False).posterior_.left_out


def test_a_refuted_candidate_is_not_joined(monkeypatch):
    judge = Judge({"shifts": -50.0, "hflip": -150.0, "flips": -150.0, "d4": -150.0})
    compare(monkeypatch, judge)
    joined = judge.compared[1] - judge.compared[0]
    assert "shifts+vflip" in joined
    assert not {"shifts+hflip", "shifts+flips", "shifts+d4"} & joined


@pytest.mark.parametrize(
    ("judge", "options"),
    [
        (Judge({"trivial": 0.0}), {}),
        (Judge({"shifts": 0.0}, learned=False), {}),
        (Judge({"shifts": 0.0}), {"joins": False}),
    ],
    ids=["no symmetry", "nothing learned", "no joins"],
)
def test_without_a_reason_to_go_on_there_is_one_comparison(monkeypatch, judge, options):
    compare(monkeypatch, judge, **options)
    assert len(judge.compared) == 1
