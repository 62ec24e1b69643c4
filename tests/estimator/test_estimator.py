"""The estimators: verdict, network, inputs of all kinds, and what they refuse."""

import numpy as np
import pytest
import torch
from problems import quickly_compared
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet import data as datasets
from invariantnet.data.duplicates import merge_duplicates
from invariantnet.inference.hypotheses import compared_units, with_joins

DIGITS = {v: inv.datasets.load(f"digits:{v}", seed=0) for v in ("rotated", "flipped", "plain")}
QUICK = {
    "symmetries": ("rot90", "flips"),
    "input_shape": (8, 8),
    "backbone": "mlp",
    "hidden": 32,
    "n_networks": 1,
    "epochs": 15,
    "random_state": 0,
}
quick = pytest.mark.usefixtures("quick_comparison")


@pytest.mark.parametrize(("variant", "truth"), [("rotated", "rot90"), ("flipped", "flips"), ("plain", "trivial")])
def test_winning_network_is_exactly_invariant_to_its_group_and_to_no_other(variant, truth, annotations_unchecked):
    data = DIGITS[variant]
    clf = InvariantClassifier(**QUICK | {"backbone": "plain mlp"}).fit(data.x_train, data.y_train)
    assert clf.symmetry_.name == clf.posterior_.favourite == truth
    assert clf.score(data.x_test, data.y_test) > 0.75
    x = torch.from_numpy(data.x_test[:50])
    for name in ("rot90", "flips", "d4"):
        group = inv.symmetry(name, shape=(8, 8))
        deviation = inv.check_invariance(clf.network_, group, x)
        assert (deviation < 1e-5) == (group <= clf.symmetry_), name
    probabilities = clf.predict_proba(data.x_test)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(clf.predict(data.x_test), clf.classes_[probabilities.argmax(1)])
    torch.testing.assert_close(clf.network_.fold()(x), clf.network_(x), atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def usual():
    """A fit of 150 rotated digits."""
    data = DIGITS["rotated"]
    with quickly_compared():
        return InvariantClassifier(**QUICK).fit(data.x_train[:150], data.y_train[:150])


@quick
def test_equal_seeds_give_equal_classifiers(usual):
    data = DIGITS["rotated"]
    again = InvariantClassifier(**QUICK).fit(data.x_train[:150], data.y_train[:150])
    assert usual.posterior_ == again.posterior_
    np.testing.assert_array_equal(usual.predict_proba(data.x_test), again.predict_proba(data.x_test))


def test_tolerance_chooses_the_largest_affordable_symmetry(annotations_unchecked):
    data = DIGITS["plain"]
    generous = InvariantClassifier(**{**QUICK, "tolerance": 100.0}).fit(data.x_train[:300], data.y_train[:300])
    assert generous.symmetry_.name == "d4"
    assert generous.posterior_.favourite == "trivial"


@quick
def test_a_tolerance_changes_no_network_of_the_comparison():
    x, y = DIGITS["plain"].x_train[:60], DIGITS["plain"].y_train[:60]
    asked, priced = (
        InvariantClassifier(**QUICK, tolerance=tolerance).fit(x, y).posterior_ for tolerance in (0.0, 1.0)
    )
    for ours, theirs in zip(asked.race, priced.race, strict=False):
        assert ours.log_evidence.items() <= theirs.log_evidence.items()


@pytest.mark.parametrize("method", ["heldout", "paper"])
def test_other_methods(method, annotations_unchecked):
    data = DIGITS["rotated"]
    clf = InvariantClassifier(**{**QUICK, "method": method, "epochs": None}).fit(data.x_train, data.y_train)
    assert sum(clf.posterior_.probabilities) == pytest.approx(1, abs=1e-5)
    assert clf.score(data.x_test, data.y_test) > 0.5


def test_string_labels_images_and_the_users_own_group_and_backbone(annotations_unchecked):
    data = DIGITS["flipped"]
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    mine = inv.Group.from_permutations(inv.symmetry("flips", shape=(8, 8)).generators, name="mine")

    def backbone(shape, classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 24), nn.GELU(), nn.Linear(24, classes))

    clf = InvariantClassifier(symmetries=[mine], backbone=backbone, n_networks=1, epochs=10, random_state=1)
    clf.fit(data.x_train[:600].reshape(-1, 8, 8), names[data.y_train[:600]])
    assert clf.symmetry_.name == "mine"
    assert set(clf.predict(torch.from_numpy(data.x_test).reshape(-1, 8, 8))) <= set(names)


def test_labels_that_depend_on_the_pose_have_no_symmetry(annotations_unchecked):
    images = DIGITS["plain"].x_train[:400].reshape(-1, 8, 8)
    poses = np.random.default_rng(0).integers(4, size=len(images))
    x = np.stack([np.rot90(image, pose) for image, pose in zip(images, poses, strict=True)])
    clf = InvariantClassifier(**QUICK).fit(x, poses)
    assert clf.posterior_.favourite == "trivial"
    assert clf.posterior_.strength == "decisive"


@quick
def test_few_and_imbalanced_data():
    data = DIGITS["rotated"]
    few = InvariantClassifier(**QUICK).fit(data.x_train[:50], data.y_train[:50])
    assert len(few.posterior_.probabilities) == 4
    order = np.argsort(data.y_train, kind="stable")
    one, other = order[data.y_train[order] == 0][:100], order[data.y_train[order] == 1][:4]
    rare = np.concatenate([one, other])
    imbalanced = InvariantClassifier(**QUICK).fit(data.x_train[rare], data.y_train[rare])
    assert np.isfinite(imbalanced.posterior_.log_evidence).all()


@pytest.mark.parametrize(
    ("change", "x", "y", "fault"),
    [
        ({"symmetries": ()}, None, None, "at least one"),
        ({"symmetries": ("nonsense",)}, None, None, "unknown symmetry"),
        ({"symmetries": ("channels",)}, None, None, "needs images with channels"),
        ({"input_shape": (7, 7)}, None, None, "do not have the shape"),
        ({"method": "magic"}, None, None, "method 'magic' is unknown"),
        ({"backbone": "resnet"}, None, None, "backbone 'resnet' is unknown"),
        ({}, np.full((40, 64), np.nan), None, "NaN or infinite"),
        ({}, np.ones((40, 64)), None, "all inputs are equal"),
        ({}, None, np.zeros(40), "only one class"),
        ({}, None, np.zeros(39), "one target per input"),
        ({}, np.ones(40), None, "Expected 2D array"),
        ({"prior": 0.0}, None, None, "is no prior"),
    ],
)
def test_bad_input(change, x, y, fault):
    x = np.random.default_rng(0).random((40, 64)) if x is None else x
    y = np.arange(40) % 2 if y is None else y
    with pytest.raises(ValueError, match=fault):
        InvariantClassifier(**{**QUICK, **change}).fit(x, y)


def test_another_number_of_features_is_refused(usual):
    with pytest.raises(ValueError, match="expecting 64 features"):
        usual.predict(np.ones((2, 63)))


@quick
@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_of_the_inputs_changes_nothing(unit, usual):
    data = DIGITS["rotated"]
    other = InvariantClassifier(**QUICK).fit(data.x_train[:150] * unit, data.y_train[:150])
    np.testing.assert_allclose(other.posterior_.probabilities, usual.posterior_.probabilities, atol=1e-3)
    folded = other.network_.fold()(torch.from_numpy(data.x_test * unit)).argmax(1)
    np.testing.assert_array_equal(other.classes_[folded], other.predict(data.x_test * unit))


@quick
def test_a_prior_may_be_a_numpy_number():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 4)), np.arange(40) % 2
    found = [
        InvariantClassifier(["reversal"], n_networks=1, epochs=1, prior=prior, random_state=0).fit(x, y).posterior_
        for prior in (1.0, np.int64(1), np.float32(1), np.ones(2))
    ]
    assert len({p.probabilities for p in found}) == 1


@quick
def test_images_of_another_layout_are_refused():
    rng = np.random.default_rng(0)
    x, y = rng.random((40, 3, 4, 4)).astype(np.float32), np.arange(40) % 2
    clf = InvariantClassifier(["hflip"], n_networks=1, epochs=1, random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=r"inputs of shape \(4, 4, 3\), not \(3, 4, 4\): transpose them"):
        clf.predict(np.moveaxis(x, 1, -1))
    assert (clf.predict(x.reshape(40, -1)) == clf.predict(x)).all()
    grey = InvariantClassifier(["hflip"], (4, 4), n_networks=1, epochs=1, random_state=0).fit(x[:, :1], y)
    assert grey.input_shape_ == (4, 4)
    with pytest.raises(ValueError, match="inputs of shape"):
        InvariantClassifier(["hflip"], (4, 4), n_networks=1, epochs=1).fit(x[:, 0].reshape(40, 2, 8), y)


@quick
def test_the_final_network_is_trained_for_the_given_number_of_epochs():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    for method in ("evidence", "heldout", "paper"):
        clf = InvariantClassifier(["reversal"], method=method, n_networks=1, epochs=3, random_state=0).fit(x, y)
        assert len(clf.history_.epochs) == 3, method


@quick
def test_names_of_features_are_kept_in_the_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    clf = InvariantClassifier(["sign"], n_networks=1, epochs=1, random_state=0).fit(frame, np.arange(40) % 2)
    clf.save(tmp_path / "model")
    again = InvariantClassifier.load(tmp_path / "model")
    assert (again.predict(frame) == clf.predict(frame)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[["b", "a", "c"]])


@quick
def test_shapes_of_numpy_numbers_are_kept_in_the_files(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 16))
    clf = InvariantClassifier(["hflip"], (np.int64(4), np.int64(4)), n_networks=1, epochs=1).fit(
        x, np.arange(40) % 2
    )
    clf.save(tmp_path / "model")
    assert InvariantClassifier.load(tmp_path / "model").input_shape_ == (4, 4)


@pytest.mark.parametrize(("names", "shape"), [(["cyclic", "reversal"], (5,)), (["cyclic", "reversal"], (6, 2))])
def test_compared_networks_have_equally_many_units_where_orders_do_not_divide(names, shape):
    orders = [g.order for g in with_joins([inv.symmetry(name, shape=shape) for name in names])]
    assert len({order * compared_units(order, orders) for order in orders}) == 1


@quick
@pytest.mark.parametrize("scale", [1e-200, 1e160])
def test_targets_of_any_size(scale):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)).astype(np.float32)
    make = lambda: InvariantRegressor(["sign"], hidden=8, n_networks=1, epochs=5, random_state=0)  # noqa: E731
    small, large = make().fit(x, x[:, 0]).predict(x), make().fit(x, x[:, 0].astype(float) * scale).predict(x)
    np.testing.assert_allclose(large / scale, small, rtol=1e-3, atol=1e-3)


def test_weights_of_any_size_count_by_their_ratios():
    x, y = np.arange(6, dtype=np.float32)[:, None], np.arange(6) % 2
    ratios = np.array([1.0, 2, 3, 1, 2, 3])
    expected = merge_duplicates(x, y, ratios)[2]
    for size in (1e-320, 5e307):
        np.testing.assert_allclose(merge_duplicates(x, y, ratios * size)[2], expected, rtol=1e-3)


@quick
def test_nothing_remains_of_an_earlier_fit_by_another_method():
    data = datasets.load("digits:rotated")
    clf = InvariantClassifier(["rot90"], (8, 8), "heldout", hidden=4, n_networks=1, epochs=1, random_state=0)
    assert clf.fit(data.x_train[:60], data.y_train[:60]).path_
    clf.set_params(method="evidence").fit(data.x_train[:60], data.y_train[:60])
    assert not hasattr(clf, "path_")
