"""Which networks of a race are trained together, in one heat."""

from collections.abc import Sequence

from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.hypotheses import Hypothesis

MOST_NUMBERS = 2**24
"""Numbers in all copies of all examples of a heat: 64 MB."""


class Heats:
    """Plans the heats of the races of one fit.

    How sums are rounded depends on the networks of a heat. So that a fit that is resumed comes to the same bits,
    its heats depend on what was planned before, in earlier races too, and not on what the cache holds.

    Args:
        hypotheses: All hypotheses.
        inputs: Numbers in an example.
        planned: What earlier races have planned; what is planned here is added.
    """

    def __init__(self, hypotheses: Sequence[Hypothesis], inputs: int, planned: set[NetworkKey]) -> None:
        self.by_name = {h.name: h for h in hypotheses}
        self.inputs, self.planned = inputs, planned

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
            native = None if hypothesis.native is None else hypothesis.native.name
            shape = (hypothesis.model.name, hypothesis.copies, native)
            heats = by_shape.setdefault(shape if hypothesis.side_by_side else key, [[]])
            if len(heats[-1]) >= self.most(hypothesis, examples):
                heats.append([])
            heats[-1].append(key)
        self.planned.update(wanted)
        return [heat for heats in by_shape.values() for heat in heats]

    def most(self, hypothesis: Hypothesis, examples: int) -> int:
        """Count the networks of a hypothesis that fit into one heat.

        Args:
            hypothesis: A symmetry and a model.
            examples: How many examples each learns from.

        Returns:
            At least one.
        """
        inputs = hypothesis.model.inputs or self.inputs
        return max(1, MOST_NUMBERS // (examples * inputs * hypothesis.copies))

    def second_costs_little(self, hypothesis: Hypothesis, examples: int) -> bool:
        """Whether a second network costs little if it is trained side by side with the first.

        Args:
            hypothesis: A symmetry and a model.
            examples: How many examples each learns from.

        Returns:
            True if both are small and fit into one heat.
        """
        return hypothesis.is_small(self.inputs) and self.most(hypothesis, examples) > 1
