"""Why, not only what: which classes gain or lose by a symmetry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped
from scipy import stats

from invariantnet.symmetries.catalogue import TRIVIAL

QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
"""Parts of numeric targets, by their size."""
FEW = 1 / 3
"""Share of the classes that counts as few: three of ten digits."""
MOST_OF_IT = 0.8
"""Share of a loss that a few classes must make before they are named."""
CLEAR = 2.0
"""Standard errors by which a class must lose before it is named: chance does that to one in forty."""
CLEAR_IN_SPITE = 3.0
"""Standard errors by which some class must lose before a symmetry that wins in all is refuted: among ten classes,
chance alone does this in about one of a hundred verdicts."""
NOTABLE = 0.1
"""Nats per example that moving the inputs of a class must cost a network without symmetry: 10 % of the probability
of the right label."""
RISK = 0.005
"""Probability that some class seems to be misread when moved, where inputs and labels are symmetric."""


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

    @property
    def losing(self) -> float:
        """Standard errors by which the class loses; negative if it gains."""
        return -self.nats_per_example / self.error if self.error else 0.0


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
    """Name the classes that are predicted worse with a symmetry, if few of them are.

    Args:
        gains: What each symmetry gains in each class.
        symmetry: The symmetry.

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


def refuting_classes(
    gains: Sequence[Gain],
    moved: Mapping[str, Float[np.ndarray, " shown"]],
    parts: Sequence[tuple[str, np.ndarray]],
) -> dict[str, tuple[str, ...]]:
    r"""Find the symmetries that do not hold for every class, although others may gain by them.

    A class refutes a symmetry if two things come together. The class is predicted clearly worse with the symmetry
    than without. And the network without symmetry, which can tell copies apart, takes moved inputs of the class
    for another class: $d_i = \log p_0(y_i \mid x_i) - \log p_0(y_i \mid g x_i)$ is clearly positive on average. If
    inputs and labels are symmetric, $d_i$ and $-d_i$ are equally probable for every network, so that a one-sided
    t-test of all classes is wrong with a probability of at most `RISK`. If only labels are symmetric, moved
    inputs may look strange to the network, but no class loses by the symmetry.

    Args:
        gains: What each symmetry gains in each class.
        moved: Log probability that the network without symmetry gave to the labels of moved inputs, by the name of
            the symmetry that moved them; `trivial` stands for the inputs as they are.
        parts: Classes, with the labels of these inputs that belong to each.

    Returns:
        The classes that refute each refuted symmetry, the worst first.
    """
    found = {}
    for symmetry in (name for name in moved if name != TRIVIAL):
        drop = moved[TRIVIAL] - moved[symmetry]
        misread = {part for part, mask in parts if _is_above(drop[mask], NOTABLE, RISK / len(parts))}
        ours = [g for g in gains if g.symmetry == symmetry and g.part in misread]
        losing = sorted((g for g in ours if g.losing > CLEAR), key=lambda g: g.nats_per_example)
        if any(g.losing > CLEAR_IN_SPITE for g in losing):
            found[symmetry] = tuple(g.part for g in losing)
    return found


def _is_above(values: Float[np.ndarray, " n"], level: float, risk: float) -> bool:
    """Whether the mean of values is above a level, by a one-sided t-test."""
    if len(values) < 2:
        return False
    error = values.std(ddof=1) / np.sqrt(len(values))
    return bool(values.mean() - level > stats.t.isf(risk, len(values) - 1) * error)
