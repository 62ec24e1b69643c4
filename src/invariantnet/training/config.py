"""How a network is trained, and what happened."""

from dataclasses import dataclass, field
from typing import Literal

from invariantnet.choices import Precision

SMALLEST_BATCH = 8
"""Examples of a batch, however few there are in all."""


@dataclass(frozen=True)
class Training:
    """How to train."""

    epochs: int = 100
    """Largest number of passes over the data."""
    patience: int = 5
    """Epochs without a better validation log-likelihood after which training stops."""
    batch_size: int = 256
    learning_rate: float = 1e-3
    """Step size of Adam; with a schedule, its maximum."""
    validation: float = 0.1
    """Share of the examples that is held out to decide when to stop."""
    weight_decay: float = 0.0
    schedule: Literal["constant", "one-cycle"] = "constant"
    """Learning rate: constant, or rising to its maximum and falling to almost nothing over all epochs."""
    min_steps: int = 0
    """Smallest number of steps: a small data set gets more epochs until it is reached."""
    min_batches: int = 1
    """Smallest number of batches of an epoch: few examples are split into smaller ones, of at least 8."""
    samples: int = 10
    """Draws of stochastic weights that a prediction is averaged over."""
    precision: Precision = "32-true"
    """Numbers that a step computes with; weights, objective and predictions have 32 bits."""

    def all_epochs(self, examples: int) -> int:
        """Count the epochs, with the extra epochs that `min_steps` asks for."""
        return max(self.epochs, -(-self.min_steps // self.batches(examples)))

    def steps(self, examples: int) -> int:
        """Count the steps of a training that is not stopped early."""
        return self.all_epochs(examples) * self.batches(examples)

    def full_batch(self, examples: int) -> int:
        """Count the examples of a batch that is not the last."""
        return min(self.batch_size, max(SMALLEST_BATCH, -(-examples // self.min_batches)))

    def batches(self, examples: int) -> int:
        """Count the steps of one epoch.

        A single example that is left over joins the last batch, because batch norm needs at least two.
        """
        size = self.full_batch(examples)
        left_over = examples > size > 1 and examples % size == 1
        return -(-examples // size) - left_over

    def batch_sizes(self, examples: int) -> list[int]:
        """List the sizes of the batches of one epoch."""
        full = [self.full_batch(examples)] * (self.batches(examples) - 1)
        return [*full, examples - sum(full)]


@dataclass
class History:
    """What happened, epoch by epoch."""

    epochs: list[dict[str, float]] = field(default_factory=list)
    """Every term of the objective and the validation scores, by name."""
    scheme_names: tuple[str, ...] = ()
    """Names of the symmetries in `schemes`."""
    schemes: list[list[float]] = field(default_factory=list)
    """π of the first module that learns one, before training and after every epoch."""
    best_epoch: int = 0
    """The epoch whose weights were kept, counted from 1."""
