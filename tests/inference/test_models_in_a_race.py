"""Several models for each symmetry: how a race chooses among them."""

from dataclasses import replace

import numpy as np
import pytest
from problems import BRIEF, corner_problem, hypotheses, make_network
from races import models_race, scripted

from invariantnet.data.examples import Examples
from invariantnet.inference import Evidence, gather_evidence
from invariantnet.inference.bootstrap import bootstrap_probabilities
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.scoring import Scorer


def test_a_symmetry_is_as_probable_as_its_models_together():
    rng = np.random.default_rng(0)
    scores = rng.normal(-0.5, 0.3, size=(4, 64)) + np.array([0, -0.01, 0.01, -0.02])[:, None]
    found, _ = models_race(scores, ("a", "b"))
    by_hypothesis = bootstrap_probabilities(scores[:, None], np.log(np.full(4, 0.25)), 0)
    assert found.probabilities == pytest.approx([by_hypothesis[:2].sum(), by_hypothesis[2:].sum()])
    assert {m.name: m.probability for m in found.models} == pytest.approx(
        {"a": by_hypothesis[[0, 2]].sum(), "b": by_hypothesis[[1, 3]].sum()}
    )
    total = scores.sum(1)
    expected = [np.logaddexp(*total[:2]) - np.log(2), np.logaddexp(*total[2:]) - np.log(2)]
    assert found.log_evidence == pytest.approx(expected)


def test_a_model_that_is_hopeless_without_symmetry_is_trained_for_no_other_and_favours_none():
    """Blocks of 64 and 128 labels. The bad model would otherwise count against no symmetry alone."""
    scores = np.full((4, 192), -0.5)
    scores[[1, 3]] = -2.0
    found, asked = models_race(scores, ("good", "bad"))
    assert asked == {"trivial-0-0", "rot90-0-0", "trivial-0-1", "rot90-0-1"}
    assert found.probabilities == pytest.approx([0.5, 0.5])
    assert found.log_evidence == pytest.approx([-96, -96])
    assert found.models[0].name == "good"
    assert found.models[0].probability == pytest.approx(1)


def test_models_are_not_judged_by_networks_that_learned_from_few_examples():
    """A network that needs more examples overtakes, and becomes the final one."""
    scores = np.full((4, 240), -0.5)  # blocks of 16, 32, 64 and 128 after 16
    scores[[1, 3], :48], scores[[1, 3], 48:] = -2.0, -0.1
    found, _ = models_race(scores, ("early", "late"), first=16)
    assert found.best_models == ("late", "late")


def test_a_model_is_dropped_where_another_predicts_better_with_the_same_symmetry():
    scores = np.full((4, 448), -0.5)  # blocks of 64, 128 and 256
    scores[3] = -0.6  # the second model is worse with rot90 only
    found, _ = models_race(scores, ("a", "b"))
    assert found.best_models[1] == "a"
    assert found.models[0].probability >= found.models[1].probability


def test_a_model_that_was_given_up_is_not_the_best_one():
    """Its evidence is a bound: that of the rival that it could not catch up with."""
    scores = np.full((4, 448), -0.5)
    scores[[0, 2]] = -0.6
    found, _ = models_race(scores, ("worse", "better"))
    assert [(m.name, m.dropped) for m in found.models] == [("better", False), ("worse", True)]
    assert found.models[0].log_evidence == pytest.approx(-224)


def test_a_single_candidate_is_raced_to_the_end_so_that_its_best_model_is_found():
    found = scripted(np.full((1, 1, 70), -1.0), names=("trivial",))
    assert found.examples == 70


def test_after_the_first_block_only_the_best_model_of_a_symmetry_predicts_moved_inputs(monkeypatch):
    """That of the newest block is told about."""
    compared = [h for h in hypotheses("rot90") for _ in range(2)]
    models = [replace(BRIEF, name="first"), replace(BRIEF, name="second")]
    compared = [Hypothesis(h.symmetry, models[i % 2]) for i, h in enumerate(compared)]
    score, tried = Scorer.score, []

    def noted(self, entries, past, block, moved_by=()):
        found = score(self, entries, past, block, moved_by)
        for entry, one in zip(entries, found, strict=True):
            assert bool(one.accuracy) is entry.tried
            if entry.tried:
                tried.append((len(past), entry.hypothesis, one))
        return found

    monkeypatch.setattr(Scorer, "score", noted)
    x, y = corner_problem(120, 0, symmetric=True)
    config = Evidence(n_networks=2, sure=0.0, first_block=30, growth=2.0, margin=np.inf)
    found = gather_evidence(make_network, compared, Examples(x, y), config=config)
    first, second = ([(h, s) for learned, h, s in tried if learned == n] for n in (30, 60))
    assert [h for h, _ in first] == compared
    assert [h.symmetry.name for h, _ in second] == ["trivial", "rot90"]
    assert [price.accuracy for price in found.prices] == [s.accuracy for _, s in second]
