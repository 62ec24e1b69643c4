"""Models come and go during a race, and what a hypothesis did not predict never counts as predicted."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from problems import BRIEF, candidates

from invariantnet.data.examples import Examples
from invariantnet.inference import Evidence
from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.models import Model
from invariantnet.inference.race import Race
from invariantnet.inference.scoring import BlockScore, Scorer
from invariantnet.inference.standings import Contest
from invariantnet.likelihoods import Categorical

BEST = -0.5
"""Nats of the best prediction of a label that any network makes."""


def race_with(scores_of, labels, networks=2, models=3):
    """A race of two symmetries whose networks are not trained: their scores are given."""
    symmetries = candidates("rot90")
    kinds = [Model(f"model {m}", BRIEF.training, BRIEF.final) for m in range(models)]
    hypotheses = [Hypothesis(symmetry, model) for symmetry in symmetries for model in kinds]
    contest = Contest(symmetries, hypotheses, np.log([0.5, 0.5]))
    examples = Examples(torch.zeros(len(labels), 9), labels)
    config = Evidence(n_networks=networks, first_block=70, growth=2.0)
    race = Race(Scorer(lambda _: None, Categorical(), 0.01), contest, examples, config, seed=0)
    accuracy = {symmetry.name: 0.5 for symmetry in symmetries}
    for h, hypothesis in enumerate(hypotheses):
        for network in range(networks):
            for block in race.blocks:
                key = NetworkKey("", hypothesis.name, network, block.number)
                race.cache[key] = BlockScore(scores_of(h, network, block), accuracy)
    return race


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.2, 1.0]))
def test_no_evidence_is_better_than_the_best_prediction_of_every_label(seed, differences):
    rng = np.random.default_rng(seed)

    def scores_of(h, network, block):
        level = differences * rng.exponential()
        return BEST - level - 0.05 * rng.random(len(block))

    race = race_with(scores_of, torch.arange(600) % 2)
    posterior = race.run(2)
    for found in (posterior, *posterior.race):
        evidence = found.log_evidence
        for value in evidence.values() if isinstance(evidence, dict) else evidence:
            assert value <= BEST * found.examples
    assert sum(posterior.probabilities) == pytest.approx(1)


def test_a_symmetry_keeps_its_last_model_where_others_lose_it():
    """Model 0 is hopeless without symmetry from the second block on, but the only one left with it."""

    def scores_of(h, network, block):
        symmetric, model = divmod(h, 3)
        best = model == 0 if symmetric else model != 0 or block.number == 0
        return np.full(len(block), BEST - (0.0 if best and symmetric else 0.5 if best else 2.0))

    race = race_with(scores_of, torch.arange(600) % 2)
    posterior = race.run(2)
    assert posterior.favourite == "rot90"
    assert posterior.best_models == ("model 1", "model 0")


def test_networks_that_give_all_classes_the_same_probability_have_learned_nothing():
    """Frequencies of few labels in twenty classes predict worse than that."""
    labels = torch.randint(20, (600,), generator=torch.Generator().manual_seed(0))
    posterior = race_with(lambda h, network, block: np.full(len(block), -np.log(20)), labels).run(2)
    assert max(posterior.log_evidence) > posterior.guessing + 20
    assert not posterior.learned
