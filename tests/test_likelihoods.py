"""Laws of every likelihood. To test a new one, add it to `CASES` with its outputs and all of its targets."""

import pytest
import torch

from invariantnet.likelihoods import Categorical, Gaussian

GRID = torch.linspace(-60, 60, 24_001, dtype=torch.float64)
# The likelihood, outputs for three inputs, every possible target, and the weight of each in a sum or integral.
CASES = {
    "classes": (
        Categorical(),
        torch.tensor([[0.0, 1.0, -2.0], [3.0, 0.0, 0.0], [-1.0, -1.0, 5.0]], dtype=torch.float64),
        torch.arange(3),
        torch.ones(3, dtype=torch.float64),
    ),
    "numbers": (
        Gaussian(),
        torch.tensor([[0.0, 0.0], [2.0, -1.0], [-1.0, 1.5]], dtype=torch.float64),
        GRID,
        torch.full_like(GRID, float(GRID[1] - GRID[0])),
    ),
}
likelihoods = pytest.mark.parametrize(("likelihood", "outputs", "targets", "weights"), CASES.values(), ids=CASES)


@likelihoods
@pytest.mark.parametrize("density", ["log_prob", "background"])
def test_probabilities_add_up_to_one(likelihood, outputs, targets, weights, density):
    for output in outputs:
        logs = getattr(likelihood, density)(output.expand(len(targets), -1), targets)
        assert float(weights @ logs.exp()) == pytest.approx(1, abs=1e-6)


@likelihoods
def test_curvature_is_the_variance_of_the_score(likelihood, outputs, targets, weights):
    roots = likelihood.curvature_roots(outputs)
    for i, output in enumerate(outputs):
        repeated = output.expand(len(targets), -1).clone().requires_grad_()
        logs = likelihood.log_prob(repeated, targets)
        (scores,) = torch.autograd.grad(logs.sum(), repeated)
        exact = (weights * logs.detach().exp())[:, None] * scores
        torch.testing.assert_close(roots[:, i].mT @ roots[:, i], exact.mT @ scores, atol=1e-6, rtol=1e-5)


@likelihoods
def test_equal_draws_combine_to_themselves(likelihood, outputs, targets, weights):
    draws = likelihood.normalised(outputs).expand(4, -1, -1)
    some = targets[len(targets) // 2].expand(len(outputs))
    torch.testing.assert_close(
        likelihood.log_prob(likelihood.combined(draws), some), likelihood.log_prob(outputs, some)
    )


@likelihoods
def test_a_guess_repeats_what_was_always_so(likelihood, outputs, targets, weights):
    usual = targets[len(targets) // 2].expand(50)
    guess = likelihood.guess(usual, torch.ones(50, dtype=torch.float64), targets)
    most_probable = likelihood.log_prob(guess, targets).argmax()
    assert targets[most_probable] == usual[0]
