"""Every placement against a naive average over the group, and the laws that must hold exactly."""

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import CATALOGUE_GROUPS, label, matrix_groups
from torch import nn

import invariantnet as inv
from invariantnet._system.torch_state import seeded
from invariantnet.choices import Placement
from invariantnet.likelihoods import Calibration
from invariantnet.nn import Symmetrized, cnn, mlp
from invariantnet.nn.placements import PLACEMENTS
from invariantnet.nn.symmetrized import COPIES_AT_ONCE

placements = pytest.mark.parametrize("placement", get_args(Placement))


def network(dim, seed=0):
    with seeded(seed):
        return nn.Sequential(nn.Linear(dim, 6), nn.Tanh(), nn.Linear(6, 3))


def inputs(dim, n=5):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(7))


def groups(*which, shape=(4, 4)):
    return [inv.symmetry(name, shape=shape) for name in which]


def naive(module, placement, candidates, pi, x):
    """Straight from the formulas, one copy at a time."""

    def average(function):
        return sum(
            p * torch.stack([function(c) for c in g.act(x).unbind(-2)]).mean(0)
            for p, g in zip(pi, candidates, strict=True)
        )

    if placement == "weights":
        return module(average(lambda copy: copy))
    if placement == "features":
        return module[-1](average(module[:-1]))
    return average(lambda copy: module(copy).softmax(-1)).log()


def test_every_placement_that_can_be_named_has_a_class():
    assert tuple(PLACEMENTS) == get_args(Placement)


@placements
@pytest.mark.parametrize("group", CATALOGUE_GROUPS[::3], ids=label)
def test_single_group_equals_the_naive_average_and_is_invariant(group, placement):
    module, x = network(group.dim), inputs(group.dim)
    ours = Symmetrized(module, [group], placement, sampled=1000)
    torch.testing.assert_close(ours(x), naive(module, placement, [group], [1.0], x), atol=1e-5, rtol=1e-4)
    assert inv.check_invariance(ours, group, x) < 1e-5
    assert ours.exact


@placements
@given(group=matrix_groups(), seed=st.integers(0, 50))
def test_matrix_groups(group, placement, seed):
    module, x = network(group.dim, seed), inputs(group.dim)
    ours = Symmetrized(module, [group], placement)
    torch.testing.assert_close(ours(x), naive(module, placement, [group], [1.0], x), atol=1e-4, rtol=1e-3)
    assert inv.check_invariance(ours, group, x) < 1e-4


@placements
def test_mixture_equals_the_naive_average(placement):
    candidates, module, x = groups("trivial", "rot90", "flips", "d4"), network(16), inputs(16)
    ours = Symmetrized(module, candidates, placement)
    nn.init.normal_(ours.logits, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        ours(x), naive(module, placement, candidates, ours.probabilities, x), atol=1e-5, rtol=1e-4
    )
    assert inv.check_invariance(ours, groups("rot90")[0], x) > 1e-3
    corner = torch.tensor([0.0, 1.0, 0.0, 0.0])
    assert inv.check_invariance(lambda x: ours(x, corner), groups("rot90")[0], x) < 1e-5
    assert inv.check_invariance(lambda x: ours(x, corner), groups("hflip")[0], x) > 1e-3


def test_only_elements_with_weight_are_computed():
    ours = Symmetrized(network(16), groups("trivial", "rot90", "d4"), "features")
    weights, kept = ours.placement.weighted_elements(torch.tensor([0.0, 1.0, 0.0]))
    assert kept.sum() == len(weights) == 4
    assert len(ours.placement.weighted_elements(torch.tensor([1.0, 0.0, 0.0]))[0]) == 1


def test_gradient_reaches_the_probabilities():
    ours = Symmetrized(network(16), groups("trivial", "rot90", "flips"), "features").double()
    x = inputs(16).double()

    def value(logits):
        return (torch.func.functional_call(ours, {"logits": logits}, (x,)) ** 2).sum()

    assert torch.autograd.gradcheck(value, torch.randn(3, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("group", CATALOGUE_GROUPS[1::4], ids=label)
def test_features_fold_into_plain_layers(group, pool):
    ours = Symmetrized(network(group.dim), [group], "features", pool, sampled=1000)
    folded, x = ours.fold(), inputs(group.dim)
    assert {type(m) for m in folded} <= {nn.Linear, nn.Tanh, nn.MaxPool1d}
    torch.testing.assert_close(folded(x), ours(x), atol=1e-5, rtol=1e-4)


def test_mixtures_fold_too():
    for placement in ("weights", "features"):
        ours = Symmetrized(network(16), groups("trivial", "rot90", "flips"), placement)
        x = inputs(16)
        torch.testing.assert_close(ours.fold()(x), ours(x), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("placement", ["features", "outputs"])
def test_deep_backbone_is_exactly_invariant(placement, pool):
    if (placement, pool) == ("outputs", "max"):
        return
    d4 = groups("d4", shape=(3, 8, 8))[0]
    ours = Symmetrized(cnn((3, 8, 8), 5), [d4], placement, pool)
    x = inputs(192, n=3)
    assert ours(x).shape == (3, 5)
    assert inv.check_invariance(ours, d4, x) < 1e-5


def test_deep_mlp_pools_before_its_head():
    module = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    rot90 = groups("rot90")[0]
    ours, x = Symmetrized(module, [rot90], "features"), inputs(16)
    torch.testing.assert_close(ours(x), naive(module, "features", [rot90], [1.0], x), atol=1e-5, rtol=1e-4)


def test_huge_group_is_exact_by_weights_and_says_so_if_it_is_not():
    everything = inv.symmetry("permutations", shape=(20, 2))
    exact, sampled = (Symmetrized(network(40), [everything], p) for p in ("weights", "features"))
    x = inputs(40)
    assert exact.exact
    assert inv.check_invariance(exact, everything, x) < 1e-5
    assert not sampled.exact
    assert sampled(x).shape == (5, 3)


@pytest.mark.parametrize("placement", ["features", "outputs"])
def test_batch_norm_sees_the_whole_batch_without_gradients_too(placement):
    """In training mode, statistics of a part of the batch would differ from those of the batch."""
    with seeded(0):
        module = nn.Sequential(nn.Tanh(), nn.BatchNorm1d(16), nn.Linear(16, 3))
        ours = Symmetrized(module, groups("d4"), placement).train()
    x = inputs(16, n=COPIES_AT_ONCE // 8 + 1)
    with torch.no_grad():
        output = ours(x)
    torch.testing.assert_close(output, ours(x).detach())
    assert int(module[1].num_batches_tracked) == 2


def test_log_prior():
    ours = Symmetrized(network(16), groups("trivial", "rot90"), prior=(2.0, 3.0))
    torch.testing.assert_close(ours.log_prior(), ours.prior.log_density(ours.log_probabilities))
    assert Symmetrized(network(16), groups("rot90")).log_prior().item() == 0


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: Symmetrized(network(16), []), "at least one"),
        (lambda: Symmetrized(network(16), groups("rot90", "d4"), "features", "max"), "single symmetry"),
        (lambda: Symmetrized(cnn((4, 4), 2), groups("rot90"), "weights"), "first layer is nn.Linear"),
        (lambda: Symmetrized(network(16), groups("rot90"), "outputs").fold(), "fold into plain layers"),
        (lambda: Symmetrized(mlp((5,), 2), groups("rot90"), "outputs")(inputs(5)), "acts on 16 inputs"),
        (lambda: Symmetrized(network(16), groups("rot90"), "feature"), "unknown: choose among weights, features"),
        (lambda: Symmetrized(network(16), groups("rot90"), pool="median"), "unknown: choose among mean, max"),
    ],
)
def test_faults(make, fault, annotations_unchecked):
    with pytest.raises(ValueError, match=fault):
        make()


@pytest.mark.parametrize(
    ("placement", "which"),
    [(p, names) for p in get_args(Placement) for names in (["rot90"], ["trivial", "rot90", "hflip"])]
    + [("features", ["rotation:45"]), ("outputs", ["rotation:45"])],
)
@pytest.mark.parametrize("known", [None, 3], ids=["unknown", "known"])
def test_stored_weights_give_the_same_network(placement, which, known):
    """Every tensor that a prediction depends on is in the state, the calibration of each output too."""
    symmetries = groups(*which)
    trained = Symmetrized(network(16, seed=1), symmetries, placement)
    trained.calibrate.set(Calibration(torch.tensor([0.5, 2.0, 1.0]), torch.tensor([1.0, -1.0, 0.0])))
    if trained.learns_pi:
        trained.logits.data = torch.tensor([0.1, 1.0, -2.0])
    fresh = Symmetrized(network(16, seed=2), symmetries, placement, outputs=known)
    fresh.load_state_dict(trained.state_dict())
    assert torch.equal(fresh(inputs(16)), trained(inputs(16)))
    other = Symmetrized(network(16), symmetries, placement, outputs=2)
    with pytest.raises(RuntimeError, match=r"calibrate\.scale"):
        other.load_state_dict(trained.state_dict())


def test_questions_that_a_network_has_no_answer_to_name_the_remedy():
    mixed = Symmetrized(network(16), groups("rot90", "flips"))
    with pytest.raises(ValueError, match="restrict a network that has one"):
        mixed.restricted_to(groups("rot180")[0])
    turned = Symmetrized(network(16), groups("rot180"))
    with pytest.raises(ValueError, match="rot90 is no part of rot180: name one of its subgroups, or trivial"):
        turned.restricted_to(groups("rot90")[0])
    with pytest.raises(ValueError, match="use posterior='point'"):
        _ = Symmetrized(network(16), groups("rot90"), "outputs").features
    endless = Symmetrized(nn.Sequential(nn.Linear(16, 3), nn.Tanh()), groups("rot90"), "weights")
    with pytest.raises(ValueError, match=r"does not end with nn\.Linear"):
        endless.fold()
