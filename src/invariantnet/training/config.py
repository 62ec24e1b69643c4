"""How a network is trained, and what happened."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Training:
    """How to train."""

    epochs: int = 100
    """At most so many passes over the data."""
    patience: int = 5
    """Stop after so many epochs without a better validation log-likelihood."""
    batch_size: int = 256
    learning_rate: float = 1e-3
    validation: float = 0.1
    """Share of the examples that is held out to decide when to stop."""
    weight_decay: float = 0.0
    schedule: Literal["constant", "one-cycle"] = "constant"
    """Learning rate: as it is, or rising to it and falling to nothing over all epochs."""
    min_steps: int = 0
    """More epochs, if need be, to make so many steps: small data sets need them."""
    samples: int = 10
    """Draws that predictions of stochastic networks are averaged over."""

    def all_epochs(self, examples: int) -> int:
        """Epochs, with those that `min_steps` adds."""
        return max(self.epochs, -(-self.min_steps // self.batches(examples)))

    def steps(self, examples: int) -> int:
        """Steps in all, if it is not stopped early."""
        return self.all_epochs(examples) * self.batches(examples)

    def batches(self, examples: int) -> int:
        """Steps of one epoch. A single example left over joins the last batch: alone it cannot be normalised."""
        alone = examples > self.batch_size > 1 and examples % self.batch_size == 1
        return -(-examples // self.batch_size) - alone

    def batch_sizes(self, examples: int) -> list[int]:
        """Sizes of the batches of one epoch."""
        full = [self.batch_size] * (self.batches(examples) - 1)
        return [*full, examples - sum(full)]


@dataclass
class History:
    """What happened, epoch by epoch: every term of the objective, validation scores, and π."""

    epochs: list[dict[str, float]] = field(default_factory=list)
    scheme_names: tuple[str, ...] = ()
    schemes: list[list[float]] = field(default_factory=list)
    """π before training and after every epoch, of the first layer that learns one."""
    best_epoch: int = 0
