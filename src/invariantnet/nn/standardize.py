r"""Inputs in any units: centred and scaled in a way that commutes with every candidate symmetry.

Entries of an input that a candidate exchanges or mixes share one mean and one scale, and so do the entries of one
channel of an image or of one feature of a sequence. A network for the group $G$ subtracts the part of the mean
that $G$ leaves alone, $R_G\,m$, so that $T_g (x - R_G m) = T_g x - R_G m$.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn

from invariantnet.data.arrays import DiskArray, blocks
from invariantnet.symmetries._orbits import signed_orbits
from invariantnet.symmetries.catalogue import SEQUENCE
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.symmetries.reynolds import reynolds_operator
from invariantnet.symmetries.shapes import has_features

OUTLIER = 6.0
"""Standard deviations beyond which a value is left out of the statistics: one in 500 million of a Gaussian."""
ROUNDS = 3
"""Passes that leave out outliers: one huge value hides smaller ones until it is gone."""
PROJECTIONS, SETTLED = 100, 1e-6
"""Rounds of projections after which a mean that still changes, by this share of its scale, is not subtracted."""
MOST_VALUES = 2**22
"""Numbers of the inputs that the statistics are taken from: their error is far below that of any network."""


class Standardize(nn.Module):
    r"""$x \mapsto (x - m) / s$, entry by entry; stored with the weights of a network.

    Args:
        mean: What is subtracted from each entry.
        scale: What each entry is then divided by.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Float[Tensor, " dim"], scale: Float[Tensor, " dim"]) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    @classmethod
    def identity(cls, dim: int) -> "Standardize":
        """Leave inputs as they are, until stored statistics are loaded."""
        return cls(torch.zeros(dim), torch.ones(dim))

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """Standardise flat inputs."""
        return (x - self.mean) / self.scale

    def folded_into(
        self, weight: Float[Tensor, "neurons dim"], bias: Float[Tensor, " neurons"] | None
    ) -> tuple[Float[Tensor, "neurons dim"], Float[Tensor, " neurons"]]:
        """Weights and biases of a linear layer that takes the inputs as they are.

        Args:
            weight: Weights for standardised inputs.
            bias: Biases for standardised inputs; None if there are none.

        Returns:
            Weights and biases for inputs in their own units; computed in double precision, because an offset far
            larger than the spread leaves few digits.
        """
        scaled = weight.double() / self.scale.double()
        moved = -(scaled @ self.mean.double())
        return scaled.to(weight), (moved if bias is None else bias.double() + moved).to(weight)


@dataclass(frozen=True, eq=False)
class InputStatistics:
    """Means and scales of the inputs, shared within pools of entries.

    Args:
        pools: Pool of each entry, counted from 0.
        mean: Mean of each entry's pool.
        scale: Standard deviation of each entry's pool; 1 where nothing varies.
    """

    pools: Int64[np.ndarray, " dim"]
    mean: Float[Tensor, " dim"]
    scale: Float[Tensor, " dim"]

    @classmethod
    def of(
        cls, x: Float[Tensor, "n dim"] | DiskArray, symmetries: Sequence[AnySymmetry], shape: tuple[int, ...]
    ) -> "InputStatistics":
        """Measure inputs, in one pass if they are larger than memory.

        Args:
            x: Inputs to learn from.
            symmetries: Every candidate.
            shape: Shape of one input.

        Returns:
            The statistics; outliers and constant entries do not spoil them.
        """
        pools = pools_of(shape, symmetries)
        order = np.argsort(pools, kind="stable")
        ends = np.flatnonzero(np.diff(pools[order], append=-1)) + 1
        values = _sample(x)[:, order]
        moments = [_moments(values[:, a:b]) for a, b in itertools.pairwise([0, *ends.tolist()])]
        mean, scale = (torch.tensor(column, dtype=torch.float32) for column in zip(*moments, strict=True))
        return cls(pools, mean[pools], scale[pools])

    def pooled(self) -> Standardize:
        """Statistics of the pools, whatever the symmetry."""
        return Standardize(self.mean.clone(), self.scale.clone())

    def for_symmetry(self, symmetry: AnySymmetry) -> Standardize:
        """Statistics that commute with a group: those of its pools, with the mean that it leaves alone.

        Ranges commute with any change of the units of a channel, so only their groups matter.
        """
        if isinstance(symmetry, Range):
            return self.pooled() if symmetry.group is None else self.for_symmetry(symmetry.group)
        if symmetry.is_permutation_group:
            return self.pooled()
        return self._around(_invariant_part(self.mean, symmetry))

    def for_all(self, symmetries: Sequence[AnySymmetry]) -> Standardize:
        """Statistics that commute with several groups: the mean that all of them leave alone is subtracted."""
        groups = [s.group if isinstance(s, Range) else s for s in symmetries]
        mixing = [g for g in groups if g is not None and not g.is_permutation_group]
        if not mixing:
            return self.pooled()
        mean = self.mean
        for _ in range(PROJECTIONS):  # projections in turn lead to what all of them leave alone
            before = mean
            for group in mixing:
                mean = _invariant_part(mean, group)
            if bool(((before - mean).abs() <= SETTLED * self.scale).all()):
                return self._around(mean)
        return self._around(torch.zeros_like(mean))

    def _around(self, mean: Float[Tensor, " dim"]) -> Standardize:
        """Subtract a mean; what is not subtracted counts as spread."""
        rest = torch.from_numpy((self.mean - mean).double().square().numpy())
        pools = torch.from_numpy(self.pools)
        pooled = torch.zeros(int(pools.max()) + 1, dtype=torch.float64).index_add_(0, pools, rest)
        pooled /= torch.bincount(pools)
        return Standardize(mean, (self.scale.double().square() + pooled[pools]).sqrt().float())


def pools_of(shape: tuple[int, ...], symmetries: Sequence[AnySymmetry]) -> Int64[np.ndarray, " dim"]:
    """Find the entries that share their statistics.

    Args:
        shape: Shape of one input: entries of one channel of an image, or of one feature of a sequence, belong
            together.
        symmetries: Candidates; entries that one of them exchanges or mixes belong together.

    Returns:
        The pool of each entry, counted from 0.
    """
    dim = math.prod(shape)
    groups = [s.group if isinstance(s, Range) else s for s in symmetries]
    ends = [_edges(generator, dim) for group in groups if group is not None for generator in group.generators]
    ends += [(np.arange(dim), mixed_by(s)) for s in symmetries if isinstance(s, Range)]
    ends.append((np.arange(dim), _first_of_its_kind(shape)))
    rows, columns = (np.concatenate(side) for side in zip(*ends, strict=True))
    graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(dim, dim))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def mixed_by(symmetry: Range) -> Int64[np.ndarray, " dim"]:
    """Map each entry to the first one that a range may mix it with: those of its channel, or of its feature."""
    shape, dim = symmetry.shape, symmetry.dim
    if len(shape) == 3:
        return _first_of_its_kind(shape)
    along_time = all(extent.family.shapes == SEQUENCE for extent in symmetry.extents)
    return np.arange(dim) % (shape[1] if len(shape) == 2 and along_time else 1)


def _edges(generator: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    if generator.ndim == 1:
        return np.arange(dim), generator % dim
    rows, columns = np.nonzero(np.abs(generator) > 0)
    return rows, columns


def _first_of_its_kind(shape: tuple[int, ...]) -> Int64[np.ndarray, " dim"]:
    """Map each entry to the first one of its channel, feature or column."""
    dim = math.prod(shape)
    if len(shape) == 3:
        return np.arange(dim) // (shape[1] * shape[2]) * (shape[1] * shape[2])
    if len(shape) == 2:
        return np.arange(dim) % shape[1] if has_features(shape) else np.zeros(dim, np.int64)
    return np.arange(dim)


def _sample(x: Float[Tensor, "n dim"] | DiskArray) -> Float[np.ndarray, "m dim"]:
    """Evenly spaced examples, as many as `MOST_VALUES` allows, in double precision."""
    step = max(1, math.ceil(len(x) * x.shape[1] / MOST_VALUES))
    return np.concatenate([part.cpu().double().numpy() for part in blocks(x[::step])])


def _moments(values: Float[np.ndarray, "n entries"]) -> tuple[float, float]:
    """Mean and standard deviation of a pool, without its outliers."""
    kept = values.ravel()
    mean, spread = kept.mean(), kept.std()
    for _ in range(ROUNDS):
        inside = kept[np.abs(kept - mean) <= OUTLIER * spread]
        if len(inside) == len(kept) or inside.std() <= _rounding(inside):
            break
        kept, mean, spread = inside, inside.mean(), inside.std()
    return float(mean), float(spread) if spread > _rounding(kept) else 1.0


def _rounding(values: np.ndarray) -> float:
    """Spread that the rounding of equal 32-bit numbers can make."""
    return float(np.finfo(np.float32).eps * np.abs(values).max(initial=0.0))


def _invariant_part(mean: Float[Tensor, " dim"], symmetry: Group) -> Float[Tensor, " dim"]:
    r"""$R\,m$ for a group that changes signs or mixes entries."""
    if symmetry.is_matrix_group:
        return (reynolds_operator(symmetry).double() @ mean.double()).float()
    labels, signs = signed_orbits(symmetry.generators)
    signed = np.where(signs == 0, 0.0, signs * mean.double().numpy())
    kept = np.maximum(labels, 0)
    sums = np.bincount(kept, signed, minlength=kept.max() + 1)
    counts = np.bincount(kept, signs != 0, minlength=kept.max() + 1)
    return torch.from_numpy(signs * (sums / np.maximum(counts, 1))[kept]).float()
