"""Heats of a race: the networks that are trained side by side."""

from collections.abc import Collection, Sequence

from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.hypotheses import Hypothesis

MOST_NUMBERS = 2**24
"""Numbers in all copies of all examples of a heat: 64 MB."""


class Heats:
    """Plans the heats of a race.

    How sums are rounded depends on the networks of a heat. So that a race that is resumed comes to the same bits,
    its heats depend on what was planned before, and not on what the cache holds.

    Args:
        hypotheses: All hypotheses.
        earlier: Names of the hypotheses whose scores an earlier race may have left in the cache.
    """

    def __init__(self, hypotheses: Sequence[Hypothesis], earlier: Collection[str] = ()) -> None:
        self.by_name = {h.name: h for h in hypotheses}
        self.earlier = frozenset(earlier)
        self.planned: set[NetworkKey] = set()

    def plan(self, wanted: Sequence[NetworkKey], examples: int) -> list[list[NetworkKey]]:
        """Divide networks into heats.

        Args:
            wanted: The networks of one block.
            examples: How many examples each learns from.

        Returns:
            The heats, without networks that were planned before.

        """
        by_shape: dict[object, list[list[NetworkKey]]] = {}
        for key in wanted:
            if key in self.planned:
                continue
            hypothesis = self.by_name[key.hypothesis]
            heats = by_shape.setdefault(self._shape(hypothesis, key), [[]])
            if len(heats[-1]) >= _most(hypothesis, examples):
                heats.append([])
            heats[-1].append(key)
        self.planned.update(wanted)
        return [heat for heats in by_shape.values() for heat in heats]

    def _shape(self, hypothesis: Hypothesis, key: NetworkKey) -> object:
        """What networks of one heat have in common; a network that is trained alone has nothing."""
        if not hypothesis.in_company:
            return key
        is_native = hypothesis.native is not None
        return hypothesis.model.name, hypothesis.copies, is_native, hypothesis.name in self.earlier


def _most(hypothesis: Hypothesis, examples: int) -> int:
    return max(1, MOST_NUMBERS // (examples * hypothesis.symmetry.dim * hypothesis.copies))
