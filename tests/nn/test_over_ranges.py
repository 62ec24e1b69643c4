"""Networks averaged over ranges: against a slow oracle, and where they are refused."""

import numpy as np
import pytest
import torch

import invariantnet as inv
from invariantnet.nn import Symmetrized, mlp, symmetrized
from invariantnet.nn.architectures import convnet
from invariantnet.nn.standardize import InputStatistics, pools_of

SHAPE = (8, 8)
X = torch.rand(6, 64, generator=torch.Generator().manual_seed(0))


def turns(name="rotation:60"):
    return inv.symmetry(name, shape=SHAPE)


def network(make=mlp, **options):
    torch.manual_seed(0)
    return make(SHAPE, 3, 10, **options).eval()


@pytest.mark.parametrize("name", ["rotation:60", "hflip+translation:2", "contrast:2"])
@pytest.mark.parametrize("make", [mlp, convnet])
@pytest.mark.parametrize("pool", ["mean", "max"])
def test_features_are_pooled_over_the_copies(name, make, pool):
    plain, range_ = network(make), turns(name)
    *body, head = plain
    features = torch.stack([torch.nn.Sequential(*body)(copy) for copy in range_.act(X).unbind(1)])
    expected = head(features.amax(0) if pool == "max" else features.mean(0))
    torch.testing.assert_close(Symmetrized(plain, [range_], pool=pool).eval()(X), expected)


def test_outputs_are_averaged_as_probabilities():
    plain, range_ = network(), turns()
    expected = torch.stack([plain(copy).softmax(-1) for copy in range_.act(X).unbind(1)]).mean(0).log()
    torch.testing.assert_close(Symmetrized(plain, [range_], "outputs").eval()(X), expected)


def test_a_range_of_no_extent_is_no_symmetry_bit_for_bit():
    plain = network(convnet)
    found, none = (Symmetrized(plain, [turns(name)]).eval() for name in ("rotation:0", "trivial"))
    assert torch.equal(found(X), none(X))
    assert found.exact


def test_batches_are_split_so_that_memory_stays_bounded(monkeypatch):
    averaged = Symmetrized(network(), [turns()]).eval()
    assert not averaged.exact
    with torch.no_grad():
        whole = averaged(X)
        monkeypatch.setattr(symmetrized, "NUMBERS_AT_ONCE", 2 * 64 * averaged.placement.copies(averaged.module))
        assert [len(part) for part in averaged._parts(X)] == [2, 2, 2]
        torch.testing.assert_close(averaged(X), whole)


class Counting(torch.nn.Module):
    """Remembers how many inputs it was called with."""

    def __init__(self):
        super().__init__()
        self.linear, self.calls = torch.nn.Linear(64, 3), []

    def forward(self, x):
        self.calls.append(len(x))
        return self.linear(x)


def test_a_training_step_learns_from_drawn_copies_and_a_prediction_from_all():
    range_ = turns("rotation:180")
    averaged = Symmetrized(Counting(), [range_], "outputs", drawn=4)
    averaged.train()(X).sum().backward()
    averaged.eval()(X)
    assert averaged.module.calls == [4 * len(X), range_.copies * len(X)]
    assert float(averaged.module.linear.weight.grad.abs().max()) > 0


def test_few_copies_and_groups_are_not_drawn():
    for symmetry in (turns("rotation:0"), turns("rot90")):
        averaged = Symmetrized(Counting(), [symmetry], "outputs", drawn=2).train()
        averaged(X)
        assert averaged.module.calls == [symmetry.copies * len(X)]


def test_memory_of_a_training_step_does_not_grow_with_the_copies():
    shape = (3, 224, 224)
    range_ = inv.symmetry("hflip+rotation:180", shape=shape)
    averaged = Symmetrized(Largest(), [range_], "outputs", input_shape=shape, drawn=4).train()
    averaged(torch.rand(2, range_.dim)).sum().backward()
    assert averaged.module.largest == 2 * 4 * range_.dim < 2 * range_.copies * range_.dim


class Largest(torch.nn.Module):
    """Remembers the largest number of values that it was called with."""

    def __init__(self):
        super().__init__()
        self.head, self.largest = torch.nn.Linear(3, 2), 0

    def forward(self, x):
        self.largest = max(self.largest, x.numel())
        return self.head(x.mean((-2, -1)))


def test_gradients_reach_the_first_layer():
    averaged = Symmetrized(network(), [turns()])
    averaged(X).sum().backward()
    assert float(averaged.module[0].weight.grad.abs().max()) > 0


def test_mixtures_and_weights_refuse_ranges():
    with pytest.raises(ValueError, match="rotation:60 is a range, and a mixture is over groups"):
        Symmetrized(network(), [turns("hflip"), turns()])
    with pytest.raises(ValueError, match="not over ranges: use 'features'"):
        Symmetrized(network(), [turns()], "weights")


def test_entries_that_a_range_mixes_share_their_units():
    assert len(set(pools_of((10,), []))) == 10
    assert len(set(pools_of((10,), [inv.symmetry("time-shift:2", shape=(10,))]))) == 1
    assert len(set(pools_of((20, 3), [inv.symmetry("time-shift:2", shape=(20, 3))]))) == 3
    assert len(set(pools_of((20, 3), [inv.symmetry("rotation:30", shape=(20, 3))]))) == 1
    assert len(set(pools_of((3, 8, 8), [inv.symmetry("rotation:30", shape=(3, 8, 8))]))) == 3


@pytest.mark.parametrize("name", ["rotation:45", "brightness:1", "hflip+scaling:1.5"])
def test_standardising_commutes_with_a_range(name):
    range_ = turns(name)
    x = 100 + 7 * X
    standardize = InputStatistics.of(x, [range_], SHAPE).for_symmetry(range_)
    torch.testing.assert_close(standardize(range_.act(x)), range_.act(standardize(x)), atol=1e-4, rtol=1e-4)


def test_a_range_with_signs_keeps_the_mean_that_its_group_leaves_alone():
    range_ = turns("sign+rotation:30")
    standardize = InputStatistics.of(5 + X, [range_], SHAPE).for_symmetry(range_)
    np.testing.assert_array_equal(standardize.mean.numpy(), 0)
