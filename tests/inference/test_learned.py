"""When networks have learned enough for a verdict."""

import numpy as np
import torch
from problems import hypotheses, make_network
from races import Asked

from invariantnet.data.examples import Examples
from invariantnet.inference import Evidence, Records, gather_evidence
from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.rules import plan_blocks
from invariantnet.inference.scoring import BlockScore


def learned(early, late):
    """Whether a race of two classes has learned, whose networks score the labels of three blocks like this."""
    compared, blocks = hypotheses("rot90"), plan_blocks(80, 10, 2.0)
    scores = {
        NetworkKey("", h.name, 0, b.number): BlockScore(
            np.full(len(b), late if b is blocks[-1] else early), {"trivial": 0.5}
        )
        for h in compared
        for b in blocks
    }
    config = Evidence(n_networks=1, first_block=10, growth=2.0)
    examples = Examples(torch.zeros(80, 9), torch.arange(80) % 2)
    return gather_evidence(make_network, compared, examples, config=config, records=Records(Asked(scores))).learned


def test_networks_that_learned_from_few_examples_do_not_hide_what_later_ones_learned():
    """A guess costs 0.7 nats a label; on 30 labels the first networks lose more than the last ones gain on 40."""
    assert learned(early=-1.7, late=-0.2)
    assert learned(early=-0.2, late=-0.2)
    assert not learned(early=-1.7, late=-0.9)
