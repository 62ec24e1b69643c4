"""Which models compete for which inputs, and which of them win."""

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet.inference.answer import _with_larger
from invariantnet.inference.by_class import Gain, deciding_classes, gains_by_class, parts_of, refuting_classes
from invariantnet.inference.hypotheses import all_hypotheses, compared_units, with_joins
from invariantnet.inference.models import models_for
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.report.wording import headline


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
    symmetries = with_joins([inv.symmetry(name, shape=(30, 2)) for name in ("permutations", "cyclic", "reversal")])
    found = all_hypotheses(symmetries, "auto", (30, 2))
    of_sets = [h for h in found if h.symmetry.name == "permutations"]
    assert [(h.model.name, h.copies) for h in of_sets] == [("set network", 1)]
    assert [h.model.name for h in found if h.symmetry.name == "cyclic"] == ["circular cnn"]
    assert len([h for h in found if h.symmetry.name == "reversal"]) == 6, "two elements can be listed"
    of_four = all_hypotheses([inv.symmetry("permutations", shape=(4, 2))], "mlp", (4, 2))
    assert [(h.model.name, h.copies) for h in of_four][-2:] == [("averaging mlp", 24), ("set network", 1)]
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


def test_a_mean_over_copies_gives_no_group_more_units():
    clf = inv.InvariantClassifier(["rot90", "flips"], (4, 4), backbone="mlp", random_state=0)
    clf.compare(np.random.default_rng(0).normal(size=(40, 16)), np.arange(40) % 2)
    sizes = {}
    for hypothesis in clf.hypotheses_:
        network = clf.make_compared_network(hypothesis)
        sizes.setdefault(hypothesis.model.name, set()).add(sum(p.numel() for p in network.parameters()))
    assert len(sizes["averaging mlp"]) == 1
    assert len(sizes["plain mlp"]) == 3, "eight copies, four, and one"


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


def moved_by_a_half_turn(drops, per_class=40, seed=0):
    """Log probabilities of labels without and with a half turn, which costs each class some nats on average."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(drops)), per_class)
    drop = np.array(drops)[y] + rng.normal(0, 1, len(y))
    return {"trivial": np.full(len(y), -0.3), "rot180": -0.3 - drop}, parts_of(y, None)


def lost(*nats):
    return [Gain("rot180", str(c), -float(loss), 0.02, 200) for c, loss in enumerate(nats)]


def test_classes_refute_a_symmetry_if_they_lose_and_are_misread_when_moved():
    moved, parts = moved_by_a_half_turn([0, 0, 2, 2])
    assert refuting_classes(lost(-1, -1, 0.1, 0.2), moved, parts) == {"rot180": ("3", "2")}
    assert refuting_classes(lost(-1, -1, 0.05, 0.2), moved, parts) == {"rot180": ("3", "2")}, (
        "named beside another"
    )
    assert refuting_classes(lost(-1, -1, 0.05, 0.05), moved, parts) == {}, "neither loses enough"
    assert refuting_classes(lost(0.2, 0.2, -1, -1), moved, parts) == {}, (
        "classes that lose are read well when moved"
    )
    still, parts = moved_by_a_half_turn([0, 0, 0, 0])
    assert refuting_classes(lost(0.2, 0.2, 0.2, 0.2), still, parts) == {}
    one, parts = moved_by_a_half_turn([9], per_class=1)
    assert refuting_classes(lost(0.2), one, parts) == {}, "one input says nothing"


def test_classes_refute_no_true_symmetry_by_chance():
    every = [moved_by_a_half_turn([0.0] * 10, seed=seed) for seed in range(300)]
    found = [refuting_classes(lost(*[0.2] * 10), moved, parts) for moved, parts in every]
    assert sum(map(bool, found)) <= 3, "even if all classes seem to lose"


def partial_posterior(**changes):
    return SymmetryPosterior(
        ("trivial", "rot180", "d4"),
        (1, 2, 8),
        (0.0, 1.0, 0.0),
        (-20.0, 0.0, -10.0),
        (0.0, 0.0, 0.0),
        200,
        dropped=("d4",),
        by_class=tuple(lost(-1, -1, 0.1, 0.2)),
        **changes,
    )


def test_a_symmetry_that_classes_refute_is_not_claimed():
    found = partial_posterior(refuted_by={"rot180": ("3", "2")})
    assert (found.strength, found.favourite, found.accepted, found.within(0.0)) == (
        "partial",
        "rot180",
        "trivial",
        "trivial",
    )
    assert "does not hold for 3 (-0.20 nats per example) and 2 (-0.10 nats per example)" in found.verdict
    assert "what holds for all: no symmetry" in found.verdict
    assert any("tolerance" in step for step in found.next_steps)
    assert headline(found, "trivial").startswith("Only some classes are symmetric under half turns")
    whole = partial_posterior()
    assert (whole.strength, whole.accepted, whole.next_steps) == ("decisive", "rot180", ())
    assert "does not hold" not in whole.verdict


def test_half_turns_of_two_classes_that_become_each_other_are_refused():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=600)
    # Classes 0 and 1 are mirror images of each other; 2 and 3 come both ways round.
    forms = np.array(
        [[3, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 3], [0, 3, 0, 2, 0, 0, 0, 0], [0, 0, 3, 3, 0, 0, 0, 0]]
    )
    x = forms[y] + rng.normal(size=(600, 8))
    turned = (rng.random(600) < 0.5) & (y > 1)
    x[turned] = x[turned, ::-1]
    clf = inv.InvariantClassifier(["reversal"], (8,), backbone="plain mlp", random_state=0, n_networks=2)
    found = clf.compare(x.astype(np.float32), y)
    assert set(found.refuted_by["reversal"]) == {"0", "1"}
    assert found.accepted == "trivial"


def test_what_contains_a_refuted_symmetry_is_refuted():
    every = [inv.symmetry(name, (4, 4)) for name in ("trivial", "hflip", "rot180", "rot90", "d4")]
    assert _with_larger({"rot180": ("6", "9")}, every) == dict.fromkeys(("rot180", "rot90", "d4"), ("6", "9"))
    assert _with_larger({}, every) == {}
