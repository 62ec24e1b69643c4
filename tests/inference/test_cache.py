"""Stored scores are used again for the same data, settings and version, and for nothing else."""

from dataclasses import replace

import pytest
from problems import BRIEF, ONE, corner_problem, hypotheses, make_network, quickly_compared

from invariantnet import InvariantClassifier
from invariantnet.data.examples import Examples
from invariantnet.inference import evidence, gather_evidence
from invariantnet.inference.evidence import Records

pytestmark = pytest.mark.usefixtures("module_unchecked")
X, Y = corner_problem(80, 0, symmetric=True)
COMPARED = hypotheses("rot90", model=BRIEF)
NO_SYMMETRY, MIRROR = hypotheses("hflip", model=BRIEF)
OTHER_MODEL = replace(BRIEF, training=replace(BRIEF.training, weight_decay=0.2))
SETTINGS = {"input_shape": (3, 3), "hidden": 4, "n_networks": 1, "epochs": 1, "random_state": 0}


def compare(cache, x=X, y=Y, *, compared=COMPARED, config=ONE, seed=0):
    records = Records(cache=cache)
    gather_evidence(make_network, compared, Examples(x, y), config=config, seed=seed, records=records)


def fit(cache, x=X, y=Y, **options):
    with quickly_compared():
        InvariantClassifier(["rot90"], **{**SETTINGS, **options}).fit_with(x, y, cache=cache)


@pytest.fixture(scope="module")
def scores(module_unchecked):
    """The scores of both comparisons."""
    found = {comparison: {} for comparison in (compare, fit)}
    for comparison, cache in found.items():
        comparison(cache)
    return found


@pytest.mark.parametrize("comparison", [compare, fit])
def test_scores_are_used_again_by_the_same_version_only(scores, comparison, monkeypatch):
    cache = dict(scores[comparison])
    comparison(cache)
    assert cache.keys() == scores[comparison].keys()
    monkeypatch.setattr(evidence, "package_version", lambda: "999")
    comparison(cache)
    assert len(cache) == 2 * len(scores[comparison])


SHARES_NO_SYMMETRY = "a symmetry of the same name"
SAME_NAME = replace(MIRROR, symmetry=replace(MIRROR.symmetry, name="rot90"))
CASES = {
    "inputs": (compare, {"x": X + 1e-3}),
    "labels": (compare, {"y": 1 - Y}),
    "seed": (compare, {"seed": 1}),
    "training": (compare, {"compared": hypotheses("rot90", model=OTHER_MODEL)}),
    "doubt": (compare, {"config": replace(ONE, doubt=0.02)}),
    SHARES_NO_SYMMETRY: (compare, {"compared": [NO_SYMMETRY, SAME_NAME]}),
    "inputs of a fit": (fit, {"x": X + 1e-3}),
    "labels of a fit": (fit, {"y": 1 - Y}),
    "width": (fit, {"hidden": 5}),
    "placement": (fit, {"placement": "outputs"}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_comparison_does_not_use_scores_of_another(scores, case):
    comparison, changes = CASES[case]
    cache = dict(scores[comparison])
    comparison(cache, **changes)
    kept = [
        key for key in scores[comparison] if key.hypothesis.startswith("trivial") and case == SHARES_NO_SYMMETRY
    ]
    assert len(cache) == 2 * len(scores[comparison]) - len(kept)


def test_a_larger_comparison_takes_over_the_scores_of_a_smaller_one(scores):
    cache = dict(scores[compare])
    compare(cache, compared=[*COMPARED, MIRROR])
    new = {key.hypothesis for key in cache.keys() - scores[compare].keys()}
    assert new == {MIRROR.name}
