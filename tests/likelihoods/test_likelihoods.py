"""Laws of every likelihood. To test a new one, add it to `CASES` with its outputs and all of its targets."""

import pytest
import torch

from invariantnet.likelihoods import Categorical, StudentT

STEPS = torch.linspace(-14, 14, 40_001, dtype=torch.float64)
GRID = torch.sinh(STEPS)
"""Numbers near zero, and far out in the tails."""
# The likelihood, outputs for three inputs, every possible target, and the weight of each in a sum or integral.
CASES = {
    "classes": (
        Categorical(),
        torch.tensor([[0.0, 1.0, -2.0], [3.0, 0.0, 0.0], [-1.0, -1.0, 5.0]], dtype=torch.float64),
        torch.arange(3),
        torch.ones(3, dtype=torch.float64),
    ),
    "numbers": (
        StudentT(),
        torch.tensor([[0.0, 0.0], [2.0, -1.0], [-1.0, 1.5]], dtype=torch.float64),
        GRID,
        torch.cosh(STEPS) * (STEPS[1] - STEPS[0]),
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


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_a_calibration_finds_the_temperature_that_labels_were_drawn_with(temperature):
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(4000, 5, generator=generator)
    y = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[:, 0]
    found = Categorical().calibration(logits, y, None)
    assert float(1 / found.scale[0]) == pytest.approx(temperature, rel=0.1)
    assert not found.shift.any()


def test_errors_follow_the_inputs_only_where_that_predicts_better():
    generator = torch.Generator().manual_seed(0)
    log_scale = torch.randn(2000, 2, generator=generator)
    noise = torch.randn(2000, 2, generator=generator)
    error = torch.stack([0.3 * noise[:, 0], 2 * log_scale[:, 1].exp() * noise[:, 1]], dim=1)
    output = torch.cat([torch.zeros(2000, 2), log_scale], dim=1)
    found = StudentT().calibration(output, error, None)
    assert found.scale.tolist() == [1, 1, 0, 1]
    assert found.shift[:2].tolist() == [0, 0]
    calibrated = output * found.scale + found.shift
    assert float(StudentT().error(calibrated)[0, 0]) == pytest.approx(0.3, rel=0.2)


@likelihoods
def test_examples_of_weight_zero_do_not_calibrate(likelihood, outputs, targets, weights):
    outputs, y = outputs.repeat(20, 1), targets[len(targets) // 2 :][:1].expand(60)
    weight = torch.cat([torch.zeros(30), torch.ones(30)])
    found, expected = (
        likelihood.calibration(outputs, y, weight),
        likelihood.calibration(outputs[30:], y[30:], None),
    )
    torch.testing.assert_close(found.scale, expected.scale)
    torch.testing.assert_close(found.shift, expected.shift)


@likelihoods
def test_without_examples_the_prior_calibrates(likelihood, outputs, targets, weights):
    found = likelihood.calibration(outputs[:0], targets[:0], None)
    assert found.scale.isfinite().all()
    assert found.shift.isfinite().all()


def test_training_on_numbers_learns_the_mean_whatever_the_errors_are_thought_to_be():
    """The gradient of a mean does not depend on its scale: a network cannot explain errors away."""
    y = torch.tensor([1.0, -2.0])
    gradients = []
    for log_scale in (-2.0, 1.0):
        output = torch.tensor([[0.5, log_scale], [0.5, log_scale]], requires_grad=True)
        (found,) = torch.autograd.grad(StudentT().objective(output, y).sum(), output)
        gradients.append(found[:, 0])
    torch.testing.assert_close(*gradients)
    assert gradients[0].tolist() == [1.0, -5.0]
