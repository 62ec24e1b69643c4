"""Experiments on what networks do not know: they run, and are summed up rightly."""

from dataclasses import replace

import numpy as np
import pytest

from studies import learning, schemes, uncertainty
from studies.fits import FitRecipe
from studies.learning import LearningRecipe, reaches, run_learning
from studies.uncertainty import BASELINES, OURS, UncertaintyRecipe, run_uncertainty


@pytest.mark.parametrize("model", ["BMLP", "InvariantNet", "InvariantNet, Laplace"])
def test_models_are_scored_on_every_test_set(model, tmp_path):
    recipe = UncertaintyRecipe(model, seed=0, n=300, epochs=2)
    record = run_uncertainty(recipe)
    assert set(record["scores"]) == {"plain", "rotated", "flipped"}
    assert record["scores"]["plain"]["accuracy"] > 0.3
    assert 0 < record["auroc"] < 1
    if model == "InvariantNet":
        plain, turned = (record["scores"][name] for name in ("plain", "rotated"))
        assert plain == pytest.approx(turned, abs=1e-4), "invariant to turns: the same images, the same scores"
    (row,) = uncertainty.flatten([recipe], [record])
    assert f"| {model} |" in uncertainty.table([row])
    _, svg = uncertainty.draw([row], tmp_path)
    assert model in svg.read_text()


def test_every_model_once():
    assert [r.model for r in uncertainty.uncertainty(3)] == [*BASELINES, *OURS]


def curve(model, accuracies):
    sizes = (100, 1000, 10_000)
    return [
        {"model": model, "n": n, "seed": 0, "accuracy": a, "log_likelihood": -1.0, "calibration_error": 0.0}
        for n, a in zip(sizes, accuracies, strict=True)
    ]


def test_examples_needed_are_read_off_the_curve():
    records = curve("MLP", (0.5, 0.85, 0.95)) + curve("CNN", (0.92, 0.95, 0.99))
    records += curve("InvariantNet", (0.1, 0.2, 0.3))
    assert reaches(records, "MLP") == pytest.approx(10**3.5)
    assert reaches(records, "CNN") == 100
    assert reaches(records, "InvariantNet") == np.inf
    table = learning.table(records)
    assert "| MLP | 50.0 | 85.0 | 95.0 | 3,200 |" in table
    assert "| InvariantNet | 10.0 | 20.0 | 30.0 | – |" in table


@pytest.mark.parametrize("model", ["MLP", "MLP, augmented by hand"])
def test_learning_runs(model, tmp_path):
    recipe = LearningRecipe(model, 100, 0)
    rows = learning.flatten([recipe], [run_learning(recipe)])
    assert rows[0]["accuracy"] > 0.3
    assert all(path.exists() for path in learning.draw(rows, tmp_path))


def test_posterior_over_schemes_from_fit_to_figure(tmp_path, monkeypatch):
    monkeypatch.setattr("invariantnet.inference.mixture_posterior.SAMPLES", 100)
    recipe = replace(FitRecipe("digits:rotated", 300, 0, "rot90", groups=("rot90",)), epochs=1, hidden=16)
    rows = schemes.flatten([recipe], [schemes.run_schemes(recipe)])
    every = {(prior, method) for prior in schemes.PRIORS for method in ("variational", "neurons")}
    assert {(r["prior"], r["method"]) for r in rows} == every | {("uniform", "nuts")}
    for row in rows:
        mean, low, high = schemes.of_truth(row)
        assert 0 <= low < mean < high <= 1
        # Sixteen features say less than 300 labels do.
        assert (mean if row["method"] == "neurons" else low) > 0.5
    assert "| rotated | rot90 | uniform | nuts | 0 |" in schemes.table(rows)
    assert all(path.exists() for path in schemes.draw(rows, tmp_path))
