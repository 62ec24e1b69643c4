"""When networks have learned enough for a verdict."""

import numpy as np
from races import scripted


def test_networks_that_learned_from_few_examples_do_not_hide_what_later_ones_learned():
    """A guess among four classes costs 1.4 nats a label; the first networks lose more than the last ones gain."""
    scores = np.full((2, 1, 70), -0.9)
    scores[:, :, :30] = -3.0
    assert scripted(scores).learned
    scores[:, :, 30:] = -1.6
    assert not scripted(scores).learned
