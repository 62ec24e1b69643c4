"""The networks that stand for the hypotheses: how wide they are, and how they are trained."""

from dataclasses import dataclass, replace

from invariantnet.training.config import Training


@dataclass(frozen=True)
class Compared:
    """How the networks that stand for the hypotheses are made and trained.

    Args:
        training: Epochs, rates, batches; no validation split, because the next block is the judge.
        width: Number of features, relative to that of the final network.
    """

    training: Training
    width: float


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
"""Much weight decay: a network that overfits gains from any constraint, right or wrong, as from any regulariser.
Full width: with much decay, narrow networks of one hypothesis differ by more than hypotheses do."""

LITTLE_DECAY = Compared(replace(DECAYED.training, epochs=24, learning_rate=3e-3, weight_decay=1e-2), width=0.5)
"""For numbers, where the larger rate makes networks too sure. For prices, which need networks that predict well.
For Laplace's approximation, which finds the right prior by itself."""

DEEP = Compared(replace(LITTLE_DECAY.training, epochs=8, batch_size=64, learning_rate=5e-3), width=0.5)
"""For other backbones than the MLP: their batches cost more, and which decay suits them was not measured."""
