"""A network relaxed to a smaller symmetry keeps its weights."""

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet import InvariantClassifier, check_invariance
from invariantnet.symmetries.group import transform

SHAPE = (6, 6)
SETTINGS = {"n_networks": 1, "epochs": 2, "hidden": 8, "random_state": 0, "tolerance": 100.0}


def examples(n=80):
    rng = np.random.default_rng(0)
    x = rng.random((n, 36)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 1).astype(int)


@pytest.fixture(
    params=[{}, {"uncertainty": "laplace"}, {"placement": "weights"}, {"placement": "outputs"}], ids=str
)
def fitted(request, brief_comparison):
    """Invariant to d4: a large tolerance takes the largest group."""
    clf = InvariantClassifier(["d4"], SHAPE, backbone="mlp", **SETTINGS, **request.param)
    return clf.fit(*examples())


def test_the_smaller_network_has_the_same_weights_and_less_symmetry(fitted, tmp_path):
    x, _ = examples()
    before = fitted.predict_proba(x)
    smaller = fitted.restricted_to("rot180", x)
    assert (fitted.symmetry_.name, smaller.symmetry_.name) == ("d4", "rot180")
    np.testing.assert_array_equal(fitted.predict_proba(x), before)
    for name, value in fitted.network_.state_dict().items():
        assert torch.equal(value, smaller.network_.state_dict()[name])
    turned = inv.symmetry("rot90", shape=SHAPE)
    inputs = torch.from_numpy(x)
    assert check_invariance(smaller.network_, smaller.symmetry_, inputs) < 1e-5
    assert check_invariance(smaller.network_, turned, inputs) > 1e-5
    said = (
        "invariant to half turns (rot180) instead of quarter turns and mirror images (d4), with the same weights"
    )
    assert said in smaller.restriction_
    assert "2 instead of 8 copies" in smaller.restriction_
    assert "of 80 predictions change" in smaller.restriction_
    smaller.save(tmp_path)
    again = InvariantClassifier.load(tmp_path)
    assert again.symmetry_ == smaller.symmetry_
    np.testing.assert_allclose(again.predict_proba(x), smaller.predict_proba(x), atol=1e-6)


@pytest.mark.parametrize("tolerance", [0.0, 100.0])
def test_a_network_that_keeps_all_it_has_does_not_change(tolerance, brief_comparison):
    x, _ = examples()
    y = np.random.default_rng(1).integers(2, size=len(x))
    clf = InvariantClassifier(["hflip"], SHAPE, backbone="mlp", **SETTINGS | {"tolerance": tolerance}).fit(x, y)
    said = clf.restricted_to(clf.symmetry_, x).restriction_
    assert said.startswith("nothing changes: ")
    assert said.endswith("; 0.0 % of 80 predictions change")


def test_no_symmetry_is_the_network_on_the_input_itself(brief_comparison):
    x, y = examples()
    clf = InvariantClassifier(["hflip"], SHAPE, backbone="mlp", **SETTINGS).fit(x, y)
    plain = clf.restricted_to("trivial")
    network = clf.network_
    expected = network.calibrate(network.module(network.standardize(torch.from_numpy(x))))
    torch.testing.assert_close(plain.network_(torch.from_numpy(x)), expected)
    twice = clf.restricted_to("hflip").restricted_to("trivial")
    np.testing.assert_allclose(twice.predict_proba(x), plain.predict_proba(x), atol=1e-6)
    moved = transform(torch.from_numpy(x), clf.symmetry_.elements[1]).numpy()
    assert not np.allclose(plain.predict_proba(moved), plain.predict_proba(x))


def test_what_is_no_part_is_refused(brief_comparison):
    clf = InvariantClassifier(["hflip"], SHAPE, backbone="mlp", **SETTINGS).fit(*examples())
    with pytest.raises(ValueError, match="vflip is no part of hflip: name one of its subgroups, or trivial"):
        clf.restricted_to("vflip")
    with pytest.raises(ValueError, match="unknown symmetry 'vflop': choose"):
        clf.restricted_to("vflop")
