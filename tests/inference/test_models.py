"""Which models compete for which inputs, and which of them win."""

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet.inference.by_class import Gain, deciding_classes, gains_by_class, losing_classes, parts_of
from invariantnet.inference.hypotheses import all_hypotheses, compared_units, with_joins
from invariantnet.inference.models import models_for
from invariantnet.inference.posterior import SymmetryPosterior


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ((13,), {"linear", "plain mlp", "decayed mlp", "deep mlp", "averaging mlp"}),
        ((100,), {"plain mlp", "decayed mlp", "deep mlp", "averaging mlp", "plain cnn", "pooled cnn"}),
        ((60, 3), {"plain mlp", "decayed mlp", "deep mlp", "averaging mlp", "plain cnn", "pooled cnn"}),
        ((28, 28), {"plain mlp", "decayed mlp", "deep mlp", "averaging mlp", "plain cnn", "pooled cnn"}),
        ((3, 32, 32), {"plain mlp", "decayed mlp", "deep mlp", "averaging mlp", "plain cnn", "pooled cnn"}),
        ((20_000,), {"plain mlp", "decayed mlp", "deep mlp", "averaging mlp", "plain cnn", "pooled cnn"}),
        ((3, 64, 64), {"plain cnn", "pooled cnn"}),
        ((3, 224, 224), {"pooled cnn"}),
    ],
)
def test_models_suit_the_shape(shape, names):
    models = models_for("auto", shape)
    assert {model.name for model in models} == names
    for model in models:
        with torch.device("meta"):
            network = model.make(shape, 4, 8, units=2, pool="max").eval()
            assert network(torch.empty(2, int(np.prod(shape)))).shape == (2, 4)


def test_one_kind_of_backbone_can_be_asked_for():
    assert {m.name for m in models_for("mlp", (28, 28))} == {
        "plain mlp",
        "decayed mlp",
        "deep mlp",
        "averaging mlp",
    }
    assert {m.name for m in models_for("cnn", (28, 28))} == {"plain cnn", "pooled cnn"}
    assert [m.name for m in models_for("pooled cnn", (28, 28))] == ["pooled cnn"]
    assert [m.name for m in models_for(lambda shape, outputs: None, (28, 28))] == ["own"]


def test_large_groups_have_exact_networks_and_small_ones_the_usual():
    symmetries = with_joins([inv.symmetry(name, shape=(20, 2)) for name in ("permutations", "cyclic", "reversal")])
    found = all_hypotheses(symmetries, "auto", (20, 2))
    of_sets = [h for h in found if h.symmetry.name == "permutations"]
    assert [(h.model.name, h.copies) for h in of_sets] == [("set network", 1)]
    assert [h.model.name for h in found if h.symmetry.name == "cyclic"] == ["circular cnn"]
    assert len([h for h in found if h.symmetry.name == "reversal"]) == 6, "two elements can be listed"
    of_numbers = all_hypotheses([inv.symmetry("permutations", shape=(9,))], "auto", (9,))
    sorted_mlps = ["sorted plain mlp", "sorted decayed mlp", "sorted deep mlp"]
    assert [h.model.name for h in of_numbers] == ["set network", *sorted_mlps, "linear"]
    assert {h.copies for h in of_numbers} == {1}


def test_parity_is_known_to_be_the_same_in_any_order():
    patterns = np.random.default_rng(1000).permutation(2**8)[:160]
    x = (patterns[:, None] >> np.arange(8)) & 1
    clf = inv.InvariantClassifier(["cyclic", "permutations"], backbone="deep mlp", n_networks=1, random_state=1000)
    assert clf.compare(x, x.sum(1) % 2).favourite == "permutations"


def test_all_networks_of_a_comparison_have_equally_many_units():
    symmetries = with_joins([inv.symmetry(name, shape=(6, 6)) for name in ("rot90", "flips")])
    found = all_hypotheses(symmetries, "mlp", (6, 6))
    copies = [h.copies for h in found]
    assert {c * compared_units(c, copies) for c in copies} == {8}


def test_gains_are_those_of_each_class():
    y = np.array([0, 1, 0, 1])
    pointwise = np.array([[-1.0, -1.0, -1.0, -1.0], [-0.5, -2.0, -0.7, -4.0]])
    parts = parts_of(y, ["six", "nine"])
    zero, one = gains_by_class(["trivial", "rot180"], pointwise, [4, 4], 0, parts)
    assert (zero.symmetry, zero.part, zero.examples) == ("rot180", "six", 2)
    assert zero.nats_per_example == pytest.approx(0.4)
    assert one.nats_per_example == pytest.approx(-2.0)
    assert one.error == pytest.approx(1 / np.sqrt(2))
    early = gains_by_class(["trivial", "rot180"], pointwise, [4, 2], 0, parts)
    assert [gain.examples for gain in early] == [1, 1], "only what both predicted"


def test_numbers_are_split_into_quarters():
    parts = parts_of(np.linspace(-1, 1, 100), None)
    assert [int(mask.sum()) for _, mask in parts] == [25, 25, 25, 25]
    assert parts[0][0] == "lowest quarter"


def test_few_classes_that_refute_a_symmetry_are_named():
    def gains(*losses):
        return [Gain("rot180", str(c), -float(loss), 0.01, 50) for c, loss in enumerate(losses)]

    assert deciding_classes(gains(0, 0, 0, 0, 0, 0, 2.0, 0, 0, 1.5), "rot180") == ["6", "9"]
    assert deciding_classes(gains(*[1.0] * 10), "rot180") == [], "all classes lose"
    assert deciding_classes(gains(*[0.0] * 10), "rot180") == []
    assert deciding_classes(gains(1.0, 0.0), "rot180") == [], "of two classes, one is not few"


def test_classes_that_lose_by_a_symmetry_that_wins_are_named():
    made = [
        Gain("rot180", part, nats, 0.1, 50) for part, nats in (("3", 1.0), ("6", -0.5), ("9", -0.9), ("1", -0.2))
    ]
    assert losing_classes(made, "rot180") == ["9", "6"]
    assert losing_classes(made, "hflip") == []
    posterior = SymmetryPosterior(
        ("trivial", "rot180"), (1, 2), (0.0, 1.0), (-20.0, 0.0), (0.0, 0.0), 200, by_class=tuple(made)
    )
    assert "it does not hold for 9 and 6, which lose by it" in posterior.verdict
