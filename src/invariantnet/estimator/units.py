"""The units of the inputs, as each hypothesis reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float

from invariantnet.data.arrays import DiskArray
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.nn.standardize import InputStatistics, Standardize, pools_of
from invariantnet.symmetries.ranges import AnySymmetry, Range


@dataclass(frozen=True, eq=False)
class InputUnits:
    """Statistics of the inputs of a fit.

    Entries of images, and of points with features, have the same units for every hypothesis. A flat input may be
    a row of a table or a sequence, and models differ in what they take it for. To an MLP it is a row: each column
    has units of its own, and only columns that a hypothesis exchanges must share them. To a convolution it is a
    sequence: all entries are values of one quantity.

    Args:
        shared: Statistics that commute with every candidate.
        of_sequences: Statistics of a flat input that is read as a sequence; None for other shapes.
        of_columns: Statistics of a flat input that is read as a row, by the name of the symmetry.
    """

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
            return cls(shared, None, {})
        measured: dict[bytes, InputStatistics] = {}
        columns = {}
        for symmetry in symmetries:
            key = pools_of(shape, [symmetry]).tobytes()
            if key not in measured:
                measured[key] = InputStatistics.of(x, [symmetry], shape)
            columns[symmetry.name] = measured[key]
        return cls(shared, InputStatistics.of(x, symmetries, (*shape, 1)), columns)

    def standardize(self, hypothesis: Hypothesis) -> Standardize:
        """What brings inputs to order one in the network of a hypothesis; it commutes with the symmetry."""
        if self.of_sequences is not None and hypothesis.model.reads_sequences:
            return self.of_sequences.for_symmetry(hypothesis.symmetry)
        statistics = self.of_columns.get(hypothesis.symmetry.name, self.shared)
        return statistics.for_symmetry(hypothesis.symmetry)
