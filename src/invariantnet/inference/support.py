"""Which symmetries the examples can speak about: one that takes inputs to where none lie is never refuted."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from invariantnet.data.arrays import DiskArray, blocks, has_both_signs
from invariantnet.symmetries.catalogue import SIGN
from invariantnet.symmetries.group import Group

MEASURED = 4096
"""Examples on which quantiles are measured: enough for 5 % of them to be 200."""
FEWEST_MEASURED, MOST_VALUES = 16, 2**22
"""The least number of examples of large inputs, and about the most numbers in all: 32 MB."""
LOW, HIGH = 0.05, 0.95
"""Quantiles between which the values of a column lie, outliers aside."""
LOWEST, HIGHEST = 0.01, 0.99
"""Quantiles of all values of images and sequences: what is bright may be in one pixel of fifty."""
BALANCED = 0.25
"""Share of the distance of two opposite quantiles by which their middle may be away from zero, in a distribution
that a change of signs preserves: four standard errors of 300 Gaussian numbers."""
OTHER_WIDTH = 5.0
"""Factor between the widths of two columns from which on they are not measured in the same unit."""


@dataclass(frozen=True, eq=False)
class Support:
    """Where the values of inputs lie.

    A network that is invariant to an exchange of millimetres and grams sees at once which copy of a row is the
    original, so that no label speaks against the exchange, and luck decides. The same holds for changes of signs
    where values are mostly positive, or where the large ones are.

    Args:
        both_signs: Whether values and their negatives are distributed alike, as far as quantiles tell.
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
        sample = _sample(x)
        if len(shape) == 1:
            columns = np.quantile(sample, (LOW, HIGH), axis=0)
            varying = np.flatnonzero(columns[1] > columns[0])
            if not _alike(columns, varying[:-1], varying[1:]).all():
                return cls(has_both_signs(x) and _balanced(columns[:, varying]), columns)
        pooled = np.quantile(sample, [(LOWEST, LOW), (HIGHEST, HIGH)])
        return cls(has_both_signs(x) and _balanced(pooled))

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


def _sample(x: Float[torch.Tensor, "n dim"] | DiskArray) -> Float[np.ndarray, "sample dim"]:
    """Examples that are spread over all of them; fewer where inputs are large."""
    count = min(MEASURED, max(FEWEST_MEASURED, MOST_VALUES // x.shape[1]))
    part = x[torch.arange(0, len(x), -(-len(x) // count))]
    return np.concatenate([block.double().cpu().numpy() for block in blocks(part)])


def _balanced(quantiles: Float[np.ndarray, "2 pairs"]) -> bool:
    """Whether zero is about in the middle of each pair of opposite quantiles."""
    low, high = quantiles
    return bool((np.abs(high + low) <= BALANCED * (high - low)).all())


def _alike(columns: Float[np.ndarray, "2 dim"], ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Whether pairs of columns overlap and are about as wide."""
    (low, high), (other_low, other_high) = columns[:, ours], columns[:, theirs]
    width, other = high - low, other_high - other_low
    overlap = (low <= other_high) & (other_low <= high)
    return overlap & (width <= OTHER_WIDTH * other) & (other <= OTHER_WIDTH * width)
