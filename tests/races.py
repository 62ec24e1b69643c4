"""Races on predictions that are given, so that nothing is trained."""

from dataclasses import replace

import pytest
import torch
from problems import BRIEF, hypotheses, make_network

import invariantnet as inv
from invariantnet.data.examples import Examples
from invariantnet.inference import Evidence, Records, gather_evidence, race
from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.models import Model
from invariantnet.inference.rules import plan_blocks
from invariantnet.inference.scoring import BlockScore


def words(key):
    """A network's key without the race that it belongs to."""
    return f"{key.hypothesis.partition(' · ')[0]}-{key.network}-{key.block}"


class Asked(dict):
    """Scores of networks, and which of them a race has read."""

    def __init__(self, scores):
        super().__init__(scores)
        self.keys_asked = set()

    def __contains__(self, key):
        return super().__contains__(replace(key, digest=""))

    def __getitem__(self, key):
        self.keys_asked.add(words(key))
        return super().__getitem__(replace(key, digest=""))


def scripted(scores, names=("rot90",), first=10, weight=None, n_networks=None, sure=0.0, asked=None, **config):
    """Run a race on given predictions (hypotheses, networks, labels), without training."""
    compared = hypotheses(*names)
    n = first + scores.shape[-1]
    config = Evidence(n_networks=n_networks or scores.shape[1], sure=sure, first_block=first, growth=2.0, **config)
    store = {
        NetworkKey("", hypothesis.name, s, b.number): BlockScore(
            scores[k, s, b.start - first : b.end - first], {"trivial": 0.5}
        )
        for k, hypothesis in enumerate(compared)
        for s in range(scores.shape[1])
        for b in plan_blocks(n, first, 2.0)
    }
    weight = None if weight is None else torch.tensor(weight)
    x, y = torch.zeros(n, 9), torch.zeros(n).long()
    store = Asked(store)
    # The labels are all equal, which a guess would predict best.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "has_learned", lambda *_: True)
        records = Records(store)
        posterior = gather_evidence(make_network, compared, Examples(x, y, weight), config=config, records=records)
    if asked is not None:
        asked |= store.keys_asked
    return posterior


def models_race(scores, models, symmetries=("trivial", "rot90"), first=64):
    """Run a race on given predictions (symmetries × models, labels) of one network each, without training."""
    made = [Model(name, BRIEF.training, BRIEF.final) for name in models]
    groups = [inv.symmetry(name, shape=(3, 3)) for name in symmetries]
    compared = [Hypothesis(group, model) for group in groups for model in made]
    n = first + scores.shape[-1]
    store = Asked(
        {
            NetworkKey("", h.name, 0, b.number): BlockScore(row[b.start - first : b.end - first], {"trivial": 0.5})
            for h, row in zip(compared, scores, strict=True)
            for b in plan_blocks(n, first, 2.0)
        }
    )
    config = Evidence(n_networks=1, sure=0.0, first_block=first, growth=2.0)
    examples = Examples(torch.zeros(n, 9), torch.zeros(n).long())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "has_learned", lambda *_: True)
        found = gather_evidence(make_network, compared, examples, config=config, records=Records(store))
    return found, store.keys_asked
