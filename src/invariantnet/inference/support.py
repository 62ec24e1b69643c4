"""Which symmetries the examples can speak about: one that takes inputs to where none lie is never refuted."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from invariantnet.data.arrays import DiskArray, has_both_signs, read
from invariantnet.symmetries.catalogue import SIGN
from invariantnet.symmetries.group import Group

MEASURED = 4096
"""Examples on which quantiles are measured: enough for 5 % of them to be 200."""
LOW, HIGH = 0.05, 0.95
"""Quantiles between which the values of a column lie, outliers aside."""
OTHER_WIDTH = 5.0
"""Factor between the widths of two columns from which on they are not measured in the same unit."""


@dataclass(frozen=True, eq=False)
class Support:
    """Where the values of inputs lie.

    A network that is invariant to an exchange of millimetres and grams sees at once which copy of a row is the
    original, so that no label speaks against the exchange, and luck decides. The same holds for changes of signs
    where no value is negative.

    Args:
        both_signs: Whether every entry that varies is negative in some examples and positive in others.
        columns: Quantiles of each column, if inputs are rows of a table whose columns have units of their own.
            None for images, and for sequences, whose neighbours are alike.
    """

    both_signs: bool
    columns: Float[np.ndarray, "2 dim"] | None = None

    @classmethod
    def of(cls, x: Float[torch.Tensor, "n dim"] | DiskArray, shape: tuple[int, ...]) -> "Support":
        """Measure inputs.

        Args:
            x: Flat inputs, in any order.
            shape: Shape of one input.

        Returns:
            Where they lie.
        """
        if len(shape) > 1:
            return cls(has_both_signs(x))
        step = max(1, len(x) // MEASURED)
        sample = read(x[torch.arange(0, len(x), step)] if isinstance(x, torch.Tensor) else x[:MEASURED])
        columns = np.quantile(sample.double().cpu().numpy(), (LOW, HIGH), axis=0)
        varying = np.flatnonzero(columns[1] > columns[0])
        is_table = not _alike(columns, varying[:-1], varying[1:]).all()
        return cls(has_both_signs(x), columns if is_table else None)

    def can_refute(self, group: Group) -> bool:
        """Whether examples lie where a group takes them, so that labels can speak against it.

        Args:
            group: A candidate.

        Returns:
            False if it changes signs that no example changes, or exchanges columns with other units.

        Example:
            >>> from invariantnet import symmetry
            >>> grams_and_metres = torch.tensor([[100.0, 0.1], [200.0, 0.3], [150.0, 0.2]])
            >>> Support.of(grams_and_metres, (2,)).can_refute(symmetry("reversal", shape=(2,)))
            False
        """
        if group.name == SIGN and not self.both_signs:
            return False
        indices = group.index_generators()
        if self.columns is None or indices is None:
            return True
        here = np.arange(group.dim)
        return all(bool(_alike(self.columns, here, index % group.dim).all()) for index in indices)


def _alike(columns: Float[np.ndarray, "2 dim"], ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Whether pairs of columns overlap and are about as wide."""
    (low, high), (other_low, other_high) = columns[:, ours], columns[:, theirs]
    width, other = high - low, other_high - other_low
    overlap = (low <= other_high) & (other_low <= high)
    return overlap & (width <= OTHER_WIDTH * other) & (other <= OTHER_WIDTH * width)
