"""The paper's layer against the formula it implements."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import CATALOGUE_GROUPS, any_group, groups, label

import invariantnet as inv
from invariantnet._system.torch_state import seeded
from invariantnet.nn import InvariantLinear

identities = pytest.mark.parametrize("identity", ["paper", "full"])
X = torch.rand(6, 16, generator=torch.Generator().manual_seed(0))


def printed_weight(layer, candidates, pi, *, orthonormal=True):
    """W = Aᵀ(V + I·p), to the letter."""
    bases = [inv.invariant_basis(g, orthonormal=orthonormal) for g in candidates]
    dense = [b.to_dense() if b.layout == torch.sparse_csr else b for b in bases]
    V = torch.cat([p * b for p, b in zip(pi, dense, strict=False)])
    if layer.sums.identity == "paper":
        return layer.A.mT @ (V + pi[-1] * torch.eye(*V.shape))
    return layer.A.mT @ torch.cat([V, pi[-1] * torch.eye(V.shape[1])])


@identities
@given(group=any_group, seed=st.integers(0, 100))
def test_layer_is_the_printed_formula(group, identity, seed):
    with seeded(seed):
        layer = InvariantLinear([group], 5, identity=identity).eval()
        torch.nn.init.normal_(layer.logits)
        x = torch.randn(4, group.dim)
    expected = x @ printed_weight(layer, [group], layer.probabilities).mT + layer.bias
    torch.testing.assert_close(layer(x), expected, atol=1e-5, rtol=1e-4)


@identities
@pytest.mark.parametrize("basis", ["orthonormal", "indicator"])
@pytest.mark.parametrize(
    "names", [("rot90",), ("rot90", "flips"), ("rot90", "flips", "shifts", "transpose", "trivial")]
)
def test_any_number_of_groups(names, basis, identity):
    candidates = groups(*names)
    layer = InvariantLinear(candidates, 7, basis=basis, identity=identity).eval()
    weight = printed_weight(layer, candidates, layer.probabilities, orthonormal=basis == "orthonormal")
    torch.testing.assert_close(layer(X), X @ weight.mT + layer.bias, atol=1e-5, rtol=1e-4)


@identities
@pytest.mark.parametrize("group", CATALOGUE_GROUPS, ids=label)
def test_one_hot_layer_is_exactly_invariant(group, identity):
    layer = InvariantLinear([group], 8, identity=identity, scheme=(1.0, 0.0))
    x = torch.randn(5, group.dim, generator=torch.Generator().manual_seed(1))
    assert inv.check_invariance(layer, group, x) < 1e-5
    assert layer.probabilities.tolist() == [1.0, 0.0]


def test_learned_corner_is_invariant_to_its_group_and_to_no_other():
    rot90, flips = groups("rot90", "flips")
    layer = InvariantLinear([rot90, flips], 8).eval()
    layer.logits.data = torch.tensor([200.0, 0.0, 0.0])
    assert inv.check_invariance(layer, rot90, X) < 1e-5
    assert inv.check_invariance(layer, flips, X) > 1e-2
    layer.logits.data = torch.tensor([200.0, 200.0, 0.0])
    assert inv.check_invariance(layer, groups("rot180")[0], X) < 1e-5, "a mixture keeps the intersection"
    assert inv.check_invariance(layer, rot90, X) > 1e-2
    assert inv.check_invariance(layer, flips, X) > 1e-2


def test_no_symmetry_sees_every_input_only_with_the_full_identity():
    for identity, seen in (("paper", 4), ("full", 16)):
        layer = InvariantLinear(groups("rot90"), 8, identity=identity, scheme=(0.0, 1.0))
        weight = layer.fold().weight
        assert int((weight.abs().sum(0) > 0).sum()) == seen
        assert torch.linalg.matrix_rank(weight) == min(seen, 8)


@identities
@given(group=any_group)
def test_fold_equals_the_layer(group, identity):
    layer = InvariantLinear([group], 6, identity=identity).train()
    torch.nn.init.normal_(layer.logits, generator=torch.Generator().manual_seed(0))
    folded = layer.fold()
    assert type(folded) is torch.nn.Linear
    assert layer.training
    x = torch.randn(9, group.dim, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(folded(x), layer.eval()(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("draw", ["batch", "neuron"])
@pytest.mark.parametrize("hard", [False, True])
def test_draws_of_the_scheme(draw, hard):
    layer = InvariantLinear(groups("rot90", "flips"), 400, draw=draw, hard=hard)
    with seeded(0):
        drawn = torch.cat([layer.draw_scheme().reshape(-1, 3) for _ in range(500 if draw == "batch" else 2)])
    torch.testing.assert_close(drawn.sum(-1), torch.ones(len(drawn)))
    assert set(drawn.unique().tolist()) == {0.0, 1.0} if hard else len(drawn.unique()) > 100
    torch.testing.assert_close(drawn.mean(0), layer.probabilities, atol=0.1, rtol=0)
    assert torch.equal(layer.eval().draw_scheme(), layer.probabilities)


def test_low_temperature_draws_are_nearly_one_hot():
    layer = InvariantLinear(groups("rot90"), 2000, draw="neuron", temperature=0.01)
    with seeded(0):
        assert (layer.draw_scheme().max(-1).values > 0.99).float().mean() > 0.95


@identities
def test_per_neuron_forward_is_the_printed_formula_neuron_by_neuron(identity):
    candidates = groups("rot90", "flips")
    layer = InvariantLinear(candidates, 5, draw="neuron", identity=identity)
    with seeded(3):
        output = layer(X)
    with seeded(3):
        pi = layer.draw_scheme()
    for j in range(5):
        weight = printed_weight(layer, candidates, pi[j])[j]
        torch.testing.assert_close(output[:, j], X @ weight + layer.bias[j], atol=1e-5, rtol=1e-4)


@identities
@pytest.mark.parametrize("draw", ["batch", "neuron"])
def test_gradient_of_the_scheme_against_finite_differences(identity, draw):
    layer = InvariantLinear(groups("rot90", "flips"), 3, identity=identity, draw=draw).double()
    x = X.double()

    def value(logits):
        with seeded(5):
            layer.logits.data = logits.detach()
            output = torch.func.functional_call(layer, {"logits": logits}, (x,))
        return (output**2).sum() + layer.prior.log_density(logits.log_softmax(-1))

    assert torch.autograd.gradcheck(value, torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True))


def test_log_prior_is_weighted_and_absent_for_a_given_scheme():
    layer = InvariantLinear(groups("rot90", "flips"), 3, prior_weight=10.0)
    torch.testing.assert_close(layer.log_prior(), 10 * layer.prior.log_density(layer.log_probabilities))
    assert InvariantLinear(groups("rot90"), 3, scheme=(1.0, 0.0)).log_prior().item() == 0


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"groups": []}, "at least one"),
        ({"temperature": 0.0}, "not positive"),
        ({"temperature": -1.0}, "not positive"),
        ({"prior": (0.0, 1.0)}, "no Dirichlet parameter"),
        ({"prior": (1.0, 1.0, 1.0)}, "3 parameters, but there are 2"),
        ({"scheme": (1.0,)}, r"pass 2 probabilities that sum to 1"),
        ({"scheme": (-1.0, 1.0)}, r"pass 2 probabilities that sum to 1"),
        ({"scheme": (-1.0, 2.0)}, r"pass 2 probabilities that sum to 1"),
        ({"scheme": (0.5, 0.6)}, r"pass 2 probabilities that sum to 1"),
        ({"scheme": (float("nan"), 1.0)}, r"pass 2 probabilities that sum to 1"),
        ({"scheme": (float("inf"), 0.0)}, r"pass 2 probabilities that sum to 1"),
        ({"identity": "half"}, "identity 'half' is unknown: choose among paper, full"),
        ({"basis": "fourier"}, "basis 'fourier' is unknown: choose among orthonormal, indicator"),
        ({"draw": "layer"}, "draw 'layer' is unknown: choose among batch, neuron"),
    ],
)
def test_bad_arguments(arguments, fault, annotations_unchecked):
    with pytest.raises(ValueError, match=fault):
        InvariantLinear(**{"groups": groups("rot90"), "out_features": 3, **arguments})


def test_groups_that_do_not_act_on_the_data():
    with pytest.raises(ValueError, match="act on 16 inputs, x has 9"):
        InvariantLinear(groups("rot90"), 3)(torch.rand(2, 9))
    with pytest.raises(ValueError, match="different lengths"):
        InvariantLinear([*groups("rot90"), *groups("rot90", shape=(3, 3))], 3)


@identities
@pytest.mark.parametrize("names", [("rot90",), ("rot90", "flips"), ("sign",)])
def test_gradients_of_the_mixture(names, identity):
    layer = InvariantLinear(groups(*names), 3, identity=identity).double()
    drawn = torch.rand(len(names) + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def value(x, pi, A, bias):
        layer.draw_scheme = lambda: pi
        return torch.func.functional_call(layer, {"A": A, "bias": bias}, (x,))

    inputs = [t.detach().requires_grad_() for t in (X.double().reshape(2, 3, 16), drawn, layer.A, layer.bias)]
    assert torch.autograd.gradcheck(value, inputs)


@identities
def test_no_inputs_give_no_outputs(identity):
    layer = InvariantLinear(groups("rot90"), 3, identity=identity)
    assert layer(torch.empty(0, 16)).shape == (0, 3)
