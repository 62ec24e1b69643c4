"""Networks that are trained side by side are the networks that each of them would be alone."""

from dataclasses import replace
from functools import partial
from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

from invariantnet import symmetry
from invariantnet._system.torch_state import seeded
from invariantnet.data.examples import Examples
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.models import CNNS, HEADS, LINEAR, MLPS, NATIVE, native_models
from invariantnet.likelihoods import Categorical, StudentT
from invariantnet.nn import Symmetrized
from invariantnet.nn.copies import MeanOverCopies
from invariantnet.nn.side_by_side import SideBySide
from invariantnet.nn.standardize import Standardize
from invariantnet.symmetries.group import Group
from invariantnet.training import heat
from invariantnet.training.calibrated import split_fold
from invariantnet.training.config import Training
from invariantnet.training.heat import Untrained, train_heat
from invariantnet.training.loop import train

BRIEFLY = Training(
    epochs=3, batch_size=16, learning_rate=1e-2, weight_decay=0.1, validation=0.0, schedule="one-cycle"
)
IMAGE, POINTS = (4, 4), (5, 2)


def examples(shape, *, numbers=False, n=50):
    x = torch.randn(n, shape[0] * shape[1], generator=torch.Generator().manual_seed(1))
    y = x[:, 0] * x[:, 3]
    return Examples(x, y if numbers else (y > 0).long(), 0.5 + torch.arange(n) % 3 if numbers else None)


def network(hypothesis, shape, *, numbers=False, shift=0.0):
    """A network with inputs in units of its own, as in a comparison of tables."""
    model = hypothesis.model
    pool = "mean" if model.placement == "weights" else model.pool or "max"
    dim = shape[0] * shape[1]
    return Symmetrized(
        model.make(shape, 2, 12, units=2, pool=pool),
        [hypothesis.symmetry],
        model.placement or "features",
        pool,
        standardize=Standardize(torch.full((dim,), shift), torch.full((dim,), 1 + shift)),
        probabilities=not numbers,
        native=hypothesis.native,
    )


def weights(module):
    return torch.cat([p.flatten() for p in module.parameters()])


SETS, ORDERS = symmetry("permutations", shape=POINTS), symmetry("permutations", shape=(5, 1))
SOME = Group.from_permutations([[1, 0, 2, 3, 4, 5], [1, 2, 3, 0, 4, 5]], name="the first four")
CASES = {
    **{m.name: (IMAGE, [Hypothesis(symmetry(n, shape=IMAGE), m) for n in ("hflip", "vflip")]) for m in MLPS},
    "linear": (IMAGE, [Hypothesis(symmetry(n, shape=IMAGE), LINEAR) for n in ("rot90", "trivial")]),
    "hidden head": (IMAGE, [Hypothesis(symmetry(n, shape=IMAGE), HEADS[2]) for n in ("rot90", "flips")]),
    "sets": (POINTS, [Hypothesis(SETS, NATIVE["permutations"], SETS)] * 2),
    "sorted": ((5, 1), [Hypothesis(ORDERS, native_models(ORDERS)[1], ORDERS)] * 2),
    "orbits": ((6, 1), [Hypothesis(SOME, native_models(SOME)[0], SOME)] * 2),
    "sorted orbits": ((6, 1), [Hypothesis(SOME, native_models(SOME)[1], SOME)] * 2),
}


def alone(untrained, config, likelihood):
    """The same steps, taken by one network without any other."""
    n = len(untrained.examples)
    with seeded(untrained.seed):
        order = torch.randperm(n)
        trained, data = untrained.make_network(), untrained.examples[order]
    optimizer = torch.optim.AdamW(trained.parameters(), config.learning_rate, weight_decay=config.weight_decay)
    rate = OneCycleLR(optimizer, config.learning_rate, total_steps=config.steps(n), cycle_momentum=False)
    with seeded(heat.BATCHES):
        for batch in chain(*(torch.randperm(n).split(config.batch_sizes(n)) for _ in range(config.all_epochs(n)))):
            part = data[batch]
            each = likelihood.objective(trained(part.x), part.y)
            optimizer.zero_grad()
            (-(each if part.weight is None else part.weight * each).mean()).backward()
            optimizer.step()
            rate.step()
    return trained


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_heat_changes_nothing_but_rounding(monkeypatch, case, numbers):
    shape, compared = CASES[case]
    data, likelihood = examples(shape, numbers=numbers), StudentT() if numbers else Categorical()
    untrained = [
        Untrained(partial(network, h, shape, numbers=numbers, shift=0.1 * k), split_fold(data, k)[0], seed=k)
        for k, h in enumerate(compared)
    ]
    monkeypatch.setattr(heat, "train", lambda *_, **__: pytest.fail("not side by side"))
    for one, ours in zip(untrained, train_heat(untrained, BRIEFLY, likelihood), strict=True):
        theirs = alone(one, BRIEFLY, likelihood)
        torch.testing.assert_close(weights(ours), weights(theirs), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(ours(data.x), theirs(data.x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("models", "config"),
    [
        ([CNNS[0], CNNS[0]], BRIEFLY),  # batch norm shares statistics among rows
        ([MLPS[0], MLPS[2]], BRIEFLY),  # other shapes
        ([MLPS[0], MLPS[0]], replace(BRIEFLY, validation=0.2)),
    ],
)
def test_networks_of_other_layers_shapes_or_settings_are_trained_one_after_another(models, config):
    data = examples((8, 8), n=30)
    groups = [symmetry(name, shape=(8, 8)) for name in ("hflip", "vflip")]
    untrained = [
        Untrained(partial(network, Hypothesis(g, m), (8, 8)), data, seed=3)
        for g, m in zip(groups, models, strict=True)
    ]
    for one, ours in zip(untrained, train_heat(untrained, config, Categorical()), strict=True):
        theirs, _ = train(one.make_network, data, config, 3)
        assert torch.equal(weights(ours), weights(theirs))


@pytest.mark.parametrize("model", HEADS, ids=lambda m: m.name)
def test_heads_on_single_copies_are_trained_side_by_side(monkeypatch, model):
    """Each on copies of its own."""
    data = examples((5, 6))

    def head(used):
        units = Standardize(torch.full((6,), 0.1), torch.full((6,), 1.5))
        return MeanOverCopies(model.make((6,), 2, 8, units=1, pool="max"), 5, used, units, probabilities=True)

    untrained = [Untrained(partial(head, used), data, seed=k) for k, used in enumerate([(0, 1), (0, 4), (0, 4)])]
    monkeypatch.setattr(heat, "train", lambda *_, **__: pytest.fail("not side by side"))
    for one, ours in zip(untrained, train_heat(untrained, BRIEFLY, Categorical()), strict=True):
        theirs = alone(one, BRIEFLY, Categorical())
        torch.testing.assert_close(weights(ours), weights(theirs), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(ours(data.x), theirs(data.x), rtol=1e-3, atol=1e-3)


def test_weights_belong_to_the_examples_of_each_network():
    """Examples without weight may have any label."""
    data = examples(IMAGE, n=60)
    weight = (torch.arange(60) % 2).float() * 2
    wrong = Examples(data.x, torch.where(weight > 0, data.y, 1 - data.y), weight)
    right = Examples(data.x, data.y, weight)
    make = partial(network, CASES["plain mlp"][1][0], IMAGE)
    ours = [train_heat([Untrained(make, e, s) for s in (0, 1)], BRIEFLY, Categorical()) for e in (right, wrong)]
    for one, other in zip(*ours, strict=True):
        assert torch.equal(weights(one), weights(other))


def test_a_network_that_diverges_takes_no_other_with_it():
    data, make = examples(IMAGE), partial(network, CASES["plain mlp"][1][0], IMAGE)
    broken = Examples(torch.full_like(data.x, torch.nan), data.y)
    (lost, kept), (before, _) = (
        train_heat([Untrained(make, first, 0), Untrained(make, data, 1)], BRIEFLY, Categorical())
        for first in (broken, data)
    )
    assert bool(lost(data.x).isnan().all())
    assert bool(weights(before).isfinite().all())
    torch.testing.assert_close(weights(kept), weights(alone(Untrained(make, data, 1), BRIEFLY, Categorical())))


@given(st.integers(1, 40), st.integers(0, 7))
def test_fifths_are_equally_large_and_do_not_overlap(n, fold):
    data = Examples(torch.arange(n)[:, None].float(), torch.arange(n))
    learned, held = split_fold(data, fold)
    assert sorted([*learned.y.tolist(), *held.y.tolist()]) == list(range(n))
    assert len(held) == (n // 5 or (n > 1))
    if n >= 5:
        others = [split_fold(data, other)[1].y.tolist() for other in range(5)]
        assert len({y for ys in others for y in ys}) == 5 * (n // 5)


def test_one_network_has_no_other_beside_it():
    assert SideBySide.of([nn.Linear(2, 2)]) is None
