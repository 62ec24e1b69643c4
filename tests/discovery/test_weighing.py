"""Several searches among few inputs."""

import numpy as np
import pytest

from invariantnet.discovery import discover
from invariantnet.discovery.evidence import Evidence
from invariantnet.discovery.posterior import Posterior
from invariantnet.discovery.predictors import Labelled
from invariantnet.discovery.proposals import Proposal
from invariantnet.discovery.scores import scores_of

EXCHANGES = {"first": [1, 0, 2, 3, 4], "second": [0, 1, 3, 2, 4], "third": [0, 1, 2, 4, 3]}


@pytest.fixture
def symmetric():
    """Labels that all orders of the first four inputs leave alone."""
    x = np.random.default_rng(0).normal(size=(200, 5))
    return x, (x[:, :4] ** 2).sum(axis=1) + x[:, 4] + 0.01


@pytest.mark.parametrize(
    ("ends", "searches", "repeatedly"),
    [
        (("first", "first", "third"), 2, True),
        (("first", "second", "first"), 3, True),
        (("first", "second", "third"), 3, False),
        (("none", "none", "first"), 2, None),
        (("none", "second", "second"), 3, True),
    ],
)
def test_a_group_is_exact_only_if_two_searches_come_to_it(symmetric, monkeypatch, ends, searches, repeatedly):
    begun = []

    def search(self, *, signed):
        end = ends[len(begun)]
        begun.append(end)
        if end in EXCHANGES:
            self.weigh(Proposal(np.array([EXCHANGES[end]]), "inputs", "exchanges", 0.0))

    monkeypatch.setattr(Posterior, "search", search)
    found = discover(*symmetric, random_state=0)
    assert len(begun) == searches
    assert found.found is (repeatedly is not None)
    if found.found:
        assert found.repeatedly is repeatedly
        assert found.exact is False or repeatedly
        assert ("searches that began elsewhere" in found.verdict) is not repeatedly


def test_searches_see_the_examples_in_other_orders(symmetric, monkeypatch):
    seen = []
    monkeypatch.setattr(Posterior, "search", lambda self, *, signed: seen.append(self.evidence.examples.y))
    discover(*symmetric, random_state=0)
    assert len(seen) == 2
    assert not np.array_equal(*seen)
    np.testing.assert_array_equal(*map(np.sort, seen))


def test_all_orders_of_five_inputs_are_weighed_like_the_even_ones():
    """Smooth functions hardly tell the two apart, so that neither may lead because it is averaged otherwise."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(400, 6))
    y = x[:, :5].prod(axis=1) * 30 + (x[:, :5] ** 2).sum(axis=1) + x[:, 5] + 0.05 * rng.normal(size=400)
    examples = Labelled(x, y, None)
    evidence = Evidence(examples, scores_of(examples, None))
    turn, exchange, three = [1, 2, 3, 4, 0, 5], [1, 0, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5]
    orders, even = (evidence.log_e_value(np.array(g)) for g in ([turn, exchange], [turn, three]))
    assert orders > even - 1
