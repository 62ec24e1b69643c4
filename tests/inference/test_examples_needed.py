"""How many more examples an open verdict needs, from the gap between its two favourites."""

import math

import numpy as np
import pytest

from invariantnet.inference.answer import GAP_ERRORS, examples_needed

NEARLY_EVEN = (0.45, 0.55)


def gap_of(mean, spread, n=400):
    """Log probabilities of two symmetries whose gap per label has this mean and spread."""
    gap = mean + spread * np.tile([1.0, -1.0], n // 2)
    return np.stack([np.full(n, -1.0), -1.0 + gap])


def test_that_many_labels_exceed_three_nats_and_two_errors():
    needed = examples_needed(gap_of(0.05, 0.3), NEARLY_EVEN)
    assert needed * 0.05 >= 3 + 2 * 0.3 * math.sqrt(needed)
    assert (needed - 2) * 0.05 < 3 + 2 * 0.3 * math.sqrt(needed - 2)


@pytest.mark.parametrize("mean", [-0.01, 0.0, 0.001])
def test_a_gap_within_its_error_may_still_grow(mean):
    """The favourite was not ahead, or hardly, in the later half, but 200 labels cannot tell by how much."""
    rivals = gap_of(mean, 0.5)
    seen, at_best = (examples_needed(rivals, NEARLY_EVEN, errors=errors) for errors in (0.0, GAP_ERRORS))
    assert seen is None or seen > 100_000
    assert 200 < at_best < 4_000


def test_equal_predictions_are_never_told_apart():
    assert examples_needed(gap_of(0.0, 0.0), NEARLY_EVEN, errors=GAP_ERRORS) is None


def test_what_falls_behind_for_sure_is_settled_by_more_examples():
    assert examples_needed(gap_of(-0.1, 0.1), NEARLY_EVEN, errors=GAP_ERRORS) < 400
