"""Pretrained bodies: seen once, kept on disk, reused by every head, stored, exported and resumed."""

import numpy as np
import pytest
import torch
from bodies import SHAPE, body, brighter, classifier, labelled, pretrained
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor, check_invariance, uncertainty
from invariantnet._system.torch_state import seeded
from invariantnet.inference.cache import FolderCache
from invariantnet.inference.seen import SeenCopies
from invariantnet.nn import Pretrained, Symmetrized
from invariantnet.nn.pretrained import Body
from invariantnet.symmetries.copies import Copies
from invariantnet.symmetries.group import transform

FLIP, TURNS, D4 = (inv.symmetry(name, shape=SHAPE) for name in ("hflip", "rot90", "d4"))


def estimator(backbone, symmetries=("hflip",), **options):
    settings = {"n_networks": 1, "epochs": 2, "random_state": 0, "hidden": 8} | options
    return InvariantClassifier(symmetries, SHAPE, backbone=backbone, **settings)


def counted(module):
    """Count the inputs that pass through a body."""
    seen = []
    module.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    return seen


@pytest.mark.parametrize("group", [FLIP, TURNS, D4], ids=lambda g: g.name)
def test_a_group_exchanges_the_copies_of_an_input(group):
    """The law behind the comparison: features of the moved input are the exchanged features of the input."""
    copies = Copies.of([FLIP, TURNS])
    module = Body(body())
    lifted = copies.lifted(group, features=64)
    assert lifted.order == group.order
    with seeded(2):
        x = torch.rand(3, 36)

    def features(x):
        return module(copies.act(x).flatten(0, 1).unflatten(-1, SHAPE)).reshape(3, -1)

    exchanged = {transform(features(x), g).numpy().round(4).tobytes() for g in lifted.elements}
    for element in group.elements:
        assert features(transform(x, element)).numpy().round(4).tobytes() in exchanged


def test_copies_that_symmetries_share_are_made_once():
    assert Copies.of([FLIP, TURNS]).count == 8
    turned = inv.symmetry("rotation:90", shape=SHAPE)
    both = Copies.of([FLIP, TURNS, turned])
    assert both.count < FLIP.order + TURNS.order + turned.copies
    x = torch.rand(2, 36)
    for symmetry in (FLIP, TURNS, turned):
        torch.testing.assert_close(both.act(x)[:, list(both.numbers(symmetry))], symmetry.act(x))


def test_too_many_copies_are_refused():
    with pytest.raises(ValueError, match=r"with channels, .* more than the 64 copies .*fewer or smaller"):
        Copies.of([inv.symmetry(name, shape=(3, 6, 6)) for name in ("sign", "d4", "channels")])


def test_auto_leaves_out_what_would_make_too_many_copies(brief_comparison):
    with seeded(3):
        x = torch.rand(40, 3, 6, 6).numpy()
    clf = InvariantClassifier(backbone=Pretrained(nn.Flatten()), n_networks=1, epochs=1, hidden=4, random_state=0)
    clf.fit(x, np.arange(40) % 2)
    names = {s.name for s in clf.candidates_}
    assert {"trivial", "hflip", "rot90", "d4", "channels"} <= names
    assert "shifts" not in names


def test_every_copy_passes_through_the_body_once(brief_comparison):
    module, (x, y) = classifier(), labelled()
    clf = estimator(Pretrained(module, head="fc"), ("hflip", "rot90"))
    seen = counted(module)
    clf.fit(x, y)
    tried = sum(seen) - 60 * 8
    assert 0 < tried < 20  # to count features, and to recognise the body


def test_the_network_is_the_head_on_averaged_features(brief_comparison):
    x, y = labelled(symmetric=True)
    clf = estimator(pretrained(), pool="max").fit(x, y)
    network = clf.network_
    assert isinstance(network, Symmetrized)
    assert check_invariance(network, clf.symmetry_, torch.from_numpy(x).flatten(1)) < 1e-5
    given = torch.from_numpy(x).flatten(1)
    copies = clf.symmetry_.act(given).reshape(-1, *SHAPE)
    own = classifier()
    features = own.hidden(own.norm(own.conv(brighter(copies))).relu().flatten(1)).relu()
    mean = features.unflatten(0, (60, -1)).mean(1)
    expected = network.calibrate(network.module[1](mean)).softmax(-1)
    np.testing.assert_allclose(clf.predict_proba(x), expected.detach().numpy(), atol=1e-5)


def test_heads_compete(annotations_unchecked):
    x, y = labelled(100)
    posterior = estimator(pretrained()).compare(x, y)
    assert posterior.learned
    assert {model.name for model in posterior.models} == {"linear head", "decayed linear head", "hidden head"}


def test_the_users_body_stays_as_it_is(brief_comparison):
    module, (x, y) = classifier(), labelled()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    clf = estimator(Pretrained(module, head="fc", unfreeze=True)).fit(x, y)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    after = clf.network_.module[0].body.state_dict()
    assert not torch.equal(before["hidden.weight"], after["hidden.weight"])
    assert not clf.network_.module[0].training


@pytest.mark.parametrize("options", [{}, {"uncertainty": "ensemble"}, {"uncertainty": "laplace"}], ids=str)
def test_it_is_stored_loaded_and_exported(options, tmp_path, brief_comparison, monkeypatch):
    for name in ("DRAWS", "NETWORKS"):  # each is a part of the exported graph
        monkeypatch.setattr(uncertainty, name, 2)
    onnxruntime = pytest.importorskip("onnxruntime")
    x, y = labelled()
    clf = estimator(pretrained(), **options).fit(x, y)
    clf.save(tmp_path / "model")
    other = pretrained()
    for p in other.body.parameters():
        p.data.zero_()
    again = InvariantClassifier.load(tmp_path / "model", backbone=other)
    np.testing.assert_allclose(again.predict_proba(x), clf.predict_proba(x), atol=1e-6)
    with pytest.raises(ValueError, match="pass it to load, as no code is stored"):
        InvariantClassifier.load(tmp_path / "model")
    with pytest.raises(ValueError, match="stored weights are not those of your backbone"):
        InvariantClassifier.load(tmp_path / "model", backbone=Pretrained(classifier(), head="hidden"))
    clf.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    np.testing.assert_allclose(session.run(None, {"x": x})[0], clf.predict_proba(x), atol=1e-4)


def test_numbers_are_predicted_too(brief_comparison):
    x, y = labelled()
    model = InvariantRegressor(["hflip"], SHAPE, backbone=pretrained(), n_networks=1, epochs=2, random_state=0)
    assert np.isfinite(model.fit(x, y + 0.1 * x[:, 0, 0, 0]).predict(x)).all()


def test_ranges_are_compared_by_averaged_predictions(brief_comparison):
    x, y = labelled()
    clf = estimator(pretrained(), ("rot90", "rotation:30", "rotation:90"), joins=False).fit(x, y)
    assert "rotation" in clf.posterior_.ranges
    assert all(price.accuracy.keys() == {"trivial"} for price in clf.posterior_.prices)


@pytest.mark.parametrize("names", [("d4",), ("hflip", "rotation:30", "rotation:90")], ids="+".join)
def test_an_interrupted_fit_goes_on_where_it_stopped(names, tmp_path, brief_comparison):
    x, y = labelled(80)
    whole = estimator(pretrained(), names, joins=False).fit_with(x, y, cache=FolderCache(tmp_path / "whole"))
    module = classifier()
    seen = counted(module)

    def stop(*_):
        if sum(seen) > 560:
            raise KeyboardInterrupt

    hook = module.register_forward_hook(stop)
    backbone = Pretrained(module, head="fc", preprocess=brighter)
    with pytest.raises(KeyboardInterrupt):
        estimator(backbone, names, joins=False).fit_with(x, y, cache=FolderCache(tmp_path / "cache"))
    hook.remove()
    files = list((tmp_path / "cache").rglob("*.safetensors"))
    assert files
    files[0].write_bytes(files[0].read_bytes()[:100])  # damaged files are made again
    again = estimator(backbone, names, joins=False).fit_with(x, y, cache=FolderCache(tmp_path / "cache"))
    np.testing.assert_array_equal(again.predict_proba(x), whole.predict_proba(x))
    assert again.posterior_.probabilities == whole.posterior_.probabilities


def test_features_of_another_body_are_not_mixed_in(tmp_path, brief_comparison):
    x, y = labelled()
    estimator(pretrained()).fit_with(x, y, cache=FolderCache(tmp_path))
    other = classifier()
    other.conv.weight.data *= 2
    seen = counted(other)
    estimator(Pretrained(other, head="fc", preprocess=brighter)).fit_with(x, y, cache=FolderCache(tmp_path))
    assert sum(seen) > 120


def test_features_of_other_data_are_not_mixed_in(tmp_path, brief_comparison):
    x, y = labelled()
    estimator(pretrained()).fit_with(x, y, cache=FolderCache(tmp_path))
    module = classifier()
    seen = counted(module)
    backbone = Pretrained(module, head="fc", preprocess=brighter)
    estimator(backbone).fit_with(x[::-1].copy(), y, cache=FolderCache(tmp_path))
    assert sum(seen) > 120


def test_a_final_head_learns_from_the_examples_that_discovered_candidates_too(brief_comparison):
    with seeded(4):
        x = torch.rand(120, 6).numpy()
    y = x[:, 0] > x[:, 1]
    clf = InvariantClassifier("discover", (6,), backbone=Pretrained(nn.Flatten()), n_networks=1, epochs=150)
    assert clf.fit(x, y).score(x, y) > 0.9


def test_parts_hold_all_examples_in_their_order(tmp_path):
    x = torch.rand(150, 36)
    copies = Copies.of([D4])
    seen = SeenCopies(tmp_path, 150, copies)
    shares = []
    seen.compute(Body(nn.Flatten()), x, SHAPE, shares.append)
    assert shares[-1] == 1.0
    assert len(shares) == len(list(tmp_path.iterdir())) > 1
    torch.testing.assert_close(torch.cat(list(seen.parts())), copies.act(x))
    torch.testing.assert_close(seen.mean_over((0,)), x)
    assert seen.compressed().shape == (150, 8 * 36)
