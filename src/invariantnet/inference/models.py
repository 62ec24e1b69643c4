"""The networks that stand for the hypotheses: how wide they are, and how they are trained."""

from dataclasses import dataclass, replace

from invariantnet.training.config import Training


@dataclass(frozen=True)
class Compared:
    """The networks that stand for the hypotheses."""

    training: Training
    """No validation split: the next block is the judge."""
    width: float
    """Features, for every one of the network that is asked for in the end."""


DECAYED = Compared(
    Training(
        epochs=12,
        batch_size=32,
        learning_rate=1e-2,
        weight_decay=1.0,
        validation=0.0,
        schedule="one-cycle",
        min_steps=200,
    ),
    width=1.0,
)
"""Much weight decay: where networks overfit, a wrong constraint helps as any regulariser would, and cannot be told
from no symmetry. Not narrow: with much decay, narrow ones of different starts differ more than hypotheses."""

LITTLE_DECAY = Compared(replace(DECAYED.training, epochs=24, learning_rate=3e-3, weight_decay=1e-2), width=0.5)
"""For numbers: at the larger rate networks get too sure of them. For prices: they are to be those of networks that
predict well. And for Laplace's approximation, which finds the prior that suits a network by itself."""

DEEP = Compared(replace(LITTLE_DECAY.training, epochs=8, batch_size=64, learning_rate=5e-3), width=0.5)
"""For backbones that are not our MLP: their batches cost more, and how much decay suits them is not known."""
