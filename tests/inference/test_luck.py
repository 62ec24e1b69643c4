"""How much of the evidence is luck of networks."""

from dataclasses import replace

import numpy as np
import pytest
from problems import BRIEF, candidates

from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.luck import luck_of_kinds, network_spread
from invariantnet.inference.standings import Contest, Standings


def test_the_spread_of_networks_is_what_hypotheses_do_not_share():
    rng = np.random.default_rng(0)
    own, shared, level = rng.normal(0, 3, (200, 4)), rng.normal(0, 50, 4), rng.normal(0, 50, (200, 1))
    assert network_spread(level + shared + own) == pytest.approx(3 / 2, rel=0.1)
    assert network_spread(level + shared) == pytest.approx(0, abs=1e-9)
    assert network_spread(own[:, :1]) == network_spread(own[:1]) == 0


def luck_where(lead):
    """The luck of none, flips and rot90 with a model whose networks are all alike, and one whose networks are not.

    Two blocks of 25 labels; `lead` is that of the first model in each symmetry, in nats.
    """
    rng, symmetries = np.random.default_rng(0), candidates("flips", "rot90")[:3]
    models = [replace(BRIEF, name=name) for name in ("steady", "wild")]
    contest = Contest(symmetries, [Hypothesis(s, m) for s in symmetries for m in models], np.zeros(3))
    scores = np.repeat(rng.normal(0, 1e-3, (6, 2, 2)), 25, axis=2)
    scores[::2] += np.array(lead)[:, None, None] / 50
    scores[1::2] += np.repeat(rng.normal(0, 1, (3, 2, 2)), 25, axis=2)
    now = Standings(
        scores, np.ones(50), [*range(6)], np.zeros((6, 50), bool), np.zeros(50), np.zeros(50), labels=50
    )
    return luck_of_kinds(contest, now, [slice(0, 25), slice(25, 50)])


def test_the_luck_of_a_kind_is_that_of_its_best_model():
    assert luck_where((1000, 1000, 1000)) == pytest.approx(0, abs=0.1)
    none, flips, rot90 = luck_where((1000, -1000, 1000))
    assert none == rot90 == pytest.approx(0, abs=0.1)
    assert flips > 10
    assert min(luck_where((-1000, -1000, -1000))) > 10
