"""What a comparison finds besides probabilities: prices, how well models predict, and how the race went."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Price:
    """What invariance to one symmetry costs, and what it buys."""

    name: str
    order: int
    """Elements of a group, or copies that stand for a range."""
    nats_per_example: float
    """Held-out loss above that of the best hypothesis, where all saw the same data."""
    accuracy: dict[str, float]
    """Held-out accuracy on inputs moved by each candidate's transformations; `trivial` is as they are."""
    size: float = 0.0
    """Orders symmetries of one order: a larger range has a larger size."""


@dataclass(frozen=True)
class ModelEvidence:
    """How well one model predicted, whatever the symmetry."""

    name: str
    probability: float
    """Posterior probability of the model, summed over symmetries."""
    log_evidence: float
    """Log evidence with the symmetry that suits it best; an upper bound if it was given up early."""
    dropped: bool = False
    """Whether it was given up early with every symmetry."""


@dataclass(frozen=True)
class Stage:
    """Where a race stood after one block."""

    examples: int
    """Labels predicted so far."""
    log_evidence: dict[str, float]
    """Log evidence of every hypothesis still in the race."""
    probabilities: dict[str, float]
