"""The units of the inputs, as each hypothesis reads them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float

from invariantnet.data.arrays import DiskArray
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.nn.standardize import InputStatistics, Standardize, pools_of
from invariantnet.symmetries.ranges import AnySymmetry, Range

OTHER_SCALE, OTHER_MEAN = 1.5, 0.5
"""Units differ if some scale does by this factor, or some mean by this many standard deviations: far more than 100
examples make columns of one distribution differ."""


@dataclass(frozen=True, eq=False)
class InputUnits:
    """Statistics of the inputs of a fit.

    Entries of images, and of points with features, have the same units for every hypothesis. A flat input may be
    a row of a table or a sequence, and models differ in what they take it for. To an MLP it is a row: each column
    has units of its own, and only columns that a hypothesis exchanges must share them. To a convolution it is a
    sequence: all entries are values of one quantity.

    Units can favour a hypothesis by luck: where the columns with the largest numbers happen to matter, one unit
    for all columns hides the others. So rows also compete in the units that all candidates allow, whatever the
    hypothesis.

    Args:
        candidates: All that is compared.
        shared: Statistics of what no candidate exchanges.
        of_sequences: Statistics of a flat input that is read as a sequence; None for other shapes.
        of_columns: Statistics of a flat input that is read as a row, by the name of the symmetry.
    """

    candidates: Sequence[AnySymmetry]
    shared: InputStatistics
    of_sequences: InputStatistics | None
    of_columns: dict[str, InputStatistics]

    @classmethod
    def of(
        cls, x: Float[torch.Tensor, "n dim"] | DiskArray, symmetries: Sequence[AnySymmetry], shape: tuple[int, ...]
    ) -> "InputUnits":
        """Measure inputs.

        Args:
            x: Inputs to learn from.
            symmetries: Every candidate.
            shape: Shape of one input.

        Returns:
            The statistics for every hypothesis.
        """
        shared = InputStatistics.of(x, symmetries, shape)
        # A range moves the values of a sequence, which then have one unit for every hypothesis.
        if len(shape) > 1 or any(isinstance(s, Range) for s in symmetries):
            return cls(symmetries, shared, None, {})
        measured: dict[bytes, InputStatistics] = {}
        columns = {}
        for symmetry in symmetries:
            key = pools_of(shape, [symmetry]).tobytes()
            if key not in measured:
                measured[key] = InputStatistics.of(x, [symmetry], shape)
            columns[symmetry.name] = measured[key]
        return cls(symmetries, shared, InputStatistics.of(x, symmetries, (*shape, 1)), columns)

    def standardize(self, hypothesis: Hypothesis) -> Standardize:
        """What brings inputs to order one in the network of a hypothesis; it commutes with the symmetry."""
        if hypothesis.model.shared_units:
            return self.shared.for_all(self.candidates)
        if self.of_sequences is not None and hypothesis.model.reads_sequences:
            return self.of_sequences.for_symmetry(hypothesis.symmetry)
        statistics = self.of_columns.get(hypothesis.symmetry.name, self.shared)
        return statistics.for_symmetry(hypothesis.symmetry)

    def differ(self, hypothesis: Hypothesis) -> bool:
        """Whether a hypothesis has units of its own, clearly other ones than all candidates allow."""
        own, shared = self.standardize(hypothesis), self.shared.for_all(self.candidates)
        ratio = (own.scale / shared.scale).log().abs().max()
        return bool(
            ratio > math.log(OTHER_SCALE) or ((own.mean - shared.mean) / shared.scale).abs().max() > OTHER_MEAN
        )


def in_every_unit(hypotheses: Sequence[Hypothesis], units: InputUnits | None) -> list[Hypothesis]:
    """Let models that take flat inputs for rows compete in shared units too.

    Args:
        hypotheses: Every symmetry with every model.
        units: Units of the inputs; None if they are not known, as for a model that is loaded.

    Returns:
        Each hypothesis in its own units, in shared ones, or in both where these differ.
    """
    found = []
    for hypothesis in hypotheses:
        both = [hypothesis, replace(hypothesis, model=hypothesis.model.in_shared_units())]
        if hypothesis.model.reads_sequences:
            both = both[:1]
        elif units is not None and not units.differ(hypothesis):
            both = both[1:]
        found += both
    return found
