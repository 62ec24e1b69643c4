"""When networks have learned enough for a verdict."""

import numpy as np
from races import scripted


def test_networks_that_learned_from_few_examples_do_not_hide_what_later_ones_learned():
    """The first networks lose a nat a label against a guess, on 20 labels; the last gain half a nat on 40."""
    scores = np.full((2, 1, 70), -0.2)
    scores[:, :, :30] = -1.7
    assert scripted(scores).learned
    scores[:, :, 30:] = -1.0
    assert not scripted(scores).learned
