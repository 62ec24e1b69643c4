"""Why, not only what: which classes gain or lose by a symmetry."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
"""Parts of numeric targets, by their size."""
FEW = 1 / 3
"""Share of the classes that counts as few."""
MOST_OF_IT = 0.8
"""Share of a loss that a few classes must make before they are named."""
CLEAR = 2.0
"""Standard errors by which a class must lose before it is named."""

CLEAR_IN_SPITE = 3.0
"""Standard errors by which a class must lose before it is named beside a symmetry that wins in all: among ten
classes, chance alone then names one in about a hundred verdicts."""


@dataclass(frozen=True)
class Gain:
    """What a symmetry gains in one class, against no symmetry."""

    symmetry: str
    part: str
    """The class, or the quarter of the numbers."""
    nats_per_example: float
    """Positive if predictions are better with the symmetry."""
    error: float
    """Standard error."""
    examples: int
    """Labels of the class that both predicted."""


def parts_of(y: Shaped[np.ndarray, "n *k"], class_names: Sequence[str] | None) -> list[tuple[str, np.ndarray]]:
    """Split labels into classes, or numbers into quarters by their size.

    Args:
        y: Class numbers, or real numbers; of several numbers, the first counts.
        class_names: Names of the classes; their numbers by default.

    Returns:
        The name of each part, and which labels belong to it.
    """
    if y.dtype.kind in "iub":
        return [(class_names[c] if class_names else str(c), y == c) for c in np.unique(y).tolist()]
    values = y.reshape(len(y), -1)[:, 0]
    quarter = np.searchsorted(np.quantile(values, (0.25, 0.5, 0.75)), values)
    return [(name, quarter == q) for q, name in enumerate(QUARTERS)]


def gains_by_class(
    names: Sequence[str],
    pointwise: Float[np.ndarray, "symmetries n"],
    predicted: Sequence[int],
    plain: int,
    parts: Sequence[tuple[str, np.ndarray]],
) -> tuple[Gain, ...]:
    """Compare every symmetry with no symmetry, class by class.

    Args:
        names: Names of the symmetries.
        pointwise: Log probability that each symmetry gave to each label.
        predicted: How many labels each symmetry predicted before it was dropped.
        plain: Index of no symmetry.
        parts: Classes, with the labels that belong to each.

    Returns:
        One gain per symmetry and class that has labels.
    """
    found = []
    for k, name in enumerate(names):
        until = min(predicted[k], predicted[plain])
        gap = pointwise[k, :until] - pointwise[plain, :until]
        for part, mask in parts:
            inside = gap[mask[:until]]
            if k != plain and len(inside):
                error = float(inside.std() / np.sqrt(len(inside)))
                found.append(Gain(name, part, float(inside.mean()), error, len(inside)))
    return tuple(found)


def deciding_classes(gains: Sequence[Gain], symmetry: str) -> list[str]:
    """Name the classes that refute a symmetry, if few of them do.

    Args:
        gains: What each symmetry gains in each class.
        symmetry: The refuted symmetry.

    Returns:
        Classes that make most of the loss, the worst first; empty unless they are few and clearly lose.
    """
    ours = [gain for gain in gains if gain.symmetry == symmetry]
    losses = {g.part: -g.nats_per_example * g.examples for g in ours}
    total = sum(loss for loss in losses.values() if loss > 0)
    clear = {g.part for g in ours if g.nats_per_example < -CLEAR * g.error}
    named: list[str] = []
    for part in sorted(losses, key=lambda part: -losses[part]):
        if sum(losses[p] for p in named) >= MOST_OF_IT * total:
            break
        named.append(part)
    few = 0 < len(named) <= max(1, FEW * len(ours))
    return named if few and len(ours) > 2 and set(named) <= clear else []


def losing_classes(gains: Sequence[Gain], symmetry: str) -> list[str]:
    """Name the classes that clearly lose by a symmetry, whatever the others gain.

    Args:
        gains: What each symmetry gains in each class.
        symmetry: The symmetry.

    Returns:
        The classes, the worst first.
    """
    ours = [g for g in gains if g.symmetry == symmetry and g.nats_per_example < -CLEAR_IN_SPITE * g.error]
    return [g.part for g in sorted(ours, key=lambda g: g.nats_per_example)]
