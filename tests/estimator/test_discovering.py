"""Estimators whose candidates nobody named."""

import numpy as np
import pytest

import invariantnet as inv
from invariantnet.discovery.evidence import Evidence
from invariantnet.estimator.discovering import groups_to_compare

pytestmark = pytest.mark.usefixtures("module_unchecked")


def exchangeable(n, seed=0):
    """Labels that depend on three inputs alike, and on the fourth in another way."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, (x[:, :3] ** 2).sum(axis=1) + 2 * x[:, :3].sum(axis=1) - 3 * x[:, 3] + 0.1 * rng.normal(size=n)


TRUTH = inv.Group.from_permutations([[1, 0, 2, 3], [1, 2, 0, 3]])


def fast(cls, **more):
    return cls(
        symmetries="discover", backbone="plain mlp", n_networks=1, hidden=8, epochs=3, random_state=0, **more
    )


@pytest.fixture(scope="module")
def fitted(module_unchecked):
    x, y = exchangeable(240)
    return fast(inv.InvariantRegressor).fit(x, y), x


def test_candidates_are_what_was_discovered_its_parts_and_none(fitted):
    reg, _ = fitted
    assert reg.discovery_.group == TRUTH
    assert any(g == TRUTH for g in reg.candidates_)
    assert all(g <= TRUTH for g in reg.candidates_)
    assert reg.candidates_[0].order == 1
    assert len(reg.rest_) == 120


def test_saved_and_loaded_the_group_is_the_same(fitted, tmp_path):
    reg, x = fitted
    reg.save(tmp_path)
    again = inv.InvariantRegressor.load(tmp_path)
    assert again.symmetries == "discover"
    assert again.symmetry_ == reg.symmetry_
    assert np.allclose(again.predict(x), reg.predict(x))


def test_nothing_discovered_leaves_no_symmetry():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 3))
    clf = fast(inv.InvariantClassifier).fit(x, (x @ [1.0, 3.0, -2.0] > 0).astype(int))
    assert not clf.discovery_.found
    assert clf.symmetry_.order == 1


def test_a_resumed_fit_does_not_weigh_groups_again(monkeypatch):
    x, y = exchangeable(120)
    cache, calls = {}, []
    weigh = Evidence._by_penalty
    monkeypatch.setattr(Evidence, "_by_penalty", lambda *a: calls.append(1) or weigh(*a))
    first = fast(inv.InvariantRegressor).fit_with(x, y, cache=cache)
    assert calls
    calls.clear()
    again = fast(inv.InvariantRegressor).fit_with(x, y, cache=cache)
    assert not calls
    assert again.discovery_.log_e_value == first.discovery_.log_e_value


def test_other_methods_say_that_they_cannot():
    x, y = exchangeable(20)
    with pytest.raises(ValueError, match="method 'evidence'"):
        fast(inv.InvariantRegressor, method="heldout").fit(x, y)


def test_several_labels_per_example_are_refused():
    x, y = exchangeable(60)
    with pytest.raises(ValueError, match="one label per example"):
        fast(inv.InvariantRegressor).fit(x, np.stack([y, y], axis=1))


def test_parts_are_subgroups_each_once():
    d4 = inv.symmetry("d4", (3, 3))
    groups = groups_to_compare(d4)
    assert groups[0] == d4
    assert all(g <= d4 for g in groups)
    assert len({g.name for g in groups}) == len(groups)
    assert all(a != b for i, a in enumerate(groups) for b in groups[:i])
