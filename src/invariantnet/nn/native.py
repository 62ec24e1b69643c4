"""Networks that are invariant to a large group by construction, so that none of its elements needs to be listed.

`permutations`: a learned function of every element, pooled (Zaheer et al. 2017). Every reordering within orbits of
single numbers: the same within each orbit, or any function of the sorted numbers. `cyclic` and `shifts`: circular
convolutions, averaged over all positions.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.choices import Pool
from invariantnet.nn.architectures import Transposed, features_of_units, image_shape, mlp

Native = Literal["permutations", "cyclic", "shifts"]
"""Groups of the catalogue that a network can be invariant to by construction."""

CHANNELS: dict[Native, int] = {"cyclic": 48, "shifts": 16}
"""Channels of circular convolutions; fewer on images, whose size no pooling may reduce. On turned and shifted
shapes, spots and blobs (500 images of 12×12 to 16×16, seed 11), 32 took twice the time for the same verdicts."""
DILATIONS = (1, 2, 4)
"""Distances of neighbours in successive circular convolutions: together they see 29 positions."""


def native_network(
    native: Native,
    shape: tuple[int, ...],
    classes: int,
    hidden: int = 100,
    *,
    units: int = 1,
    pool: Pool = "max",
) -> nn.Sequential:
    """Make a network that is exactly invariant to a group of the catalogue.

    Args:
        native: Name of the group.
        shape: Shape of one input.
        classes: Number of outputs.
        hidden: Number of features.
        units: Number of hidden units that make one feature.
        pool: Whether a feature is the maximum of its units or their mean.

    Returns:
        The network, on flat inputs.
    """
    if native == "permutations":
        body, size = _of_sets(shape, hidden), 2 * hidden
    else:
        body, size = _circular(native, shape), 2 * CHANNELS[native]
    return nn.Sequential(*body, *features_of_units(size, hidden, units, pool), nn.Linear(hidden, classes))


def orbit_network(
    orbits: Sequence[Sequence[int]],
    shape: tuple[int, ...],
    classes: int,
    hidden: int = 100,
    *,
    units: int = 1,
    pool: Pool = "max",
) -> nn.Sequential:
    """Make a network that does not depend on the order of the numbers of any orbit.

    Args:
        orbits: The places of the numbers that may be exchanged, orbit by orbit.
        shape: Shape of one input.
        classes: Number of outputs.
        hidden: Number of features.
        units: Number of hidden units that make one feature.
        pool: Whether a feature is the maximum of its units or their mean.

    Returns:
        The network, on flat inputs.
    """
    if len(orbits) == 1:
        return native_network("permutations", (math.prod(shape), 1), classes, hidden, units=units, pool=pool)
    pooled = PooledOrbits(orbits, hidden)
    return nn.Sequential(pooled, *features_of_units(pooled.size, hidden, units, pool), nn.Linear(hidden, classes))


def sorted_mlp(
    orbits: Sequence[Sequence[int]],
    shape: tuple[int, ...],
    classes: int,
    hidden: int = 100,
    *,
    depth: int = 1,
    units: int = 1,
    pool: Pool = "max",
) -> nn.Sequential:
    """Make an MLP of sorted numbers: nothing but their order is lost, so that it can learn any invariant function.

    Args:
        orbits: The places of the numbers that may be exchanged, orbit by orbit.
        shape: Shape of one input.
        classes: Number of outputs.
        hidden: Number of features, and width of the hidden layers.
        depth: Number of hidden layers.
        units: Number of hidden units that make one feature.
        pool: Whether a feature is the maximum of its units or their mean.

    Returns:
        The network, on flat inputs.
    """
    return nn.Sequential(Sorted(orbits), *mlp(shape, classes, hidden, depth=depth, units=units, pool=pool))


def _of_sets(shape: tuple[int, ...], hidden: int) -> list[nn.Module]:
    """A learned function of every element, then the mean and the maximum over the elements."""
    elements, width = shape[0], math.prod(shape[1:])
    return [nn.Unflatten(-1, (elements, width)), *_of_each(width, hidden), Transposed(), MeanAndMaximum()]


def _of_each(width: int, hidden: int) -> list[nn.Module]:
    """Two layers on every element."""
    return [nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]


def _circular(native: Native, shape: tuple[int, ...]) -> list[nn.Module]:
    """Circular convolutions, then the mean and the maximum over the positions."""
    layers: list[nn.Module] = []
    if native == "cyclic":
        channels = math.prod(shape[1:])
        layers += [nn.Unflatten(-1, (shape[0], channels)), Transposed()]
    else:
        channels, *size = image_shape(shape)
        layers.append(nn.Unflatten(-1, (channels, *size)))
    axes, filters = (shape[0],) if native == "cyclic" else shape[-2:], CHANNELS[native]
    convolution: Any
    norm: Any
    convolution, norm = (nn.Conv1d, nn.BatchNorm1d) if native == "cyclic" else (CircularConv2d, nn.BatchNorm2d)
    for dilation in DILATIONS:
        reach = tuple(min(2 if native == "cyclic" else 1, (n - 1) // (2 * dilation)) for n in axes)
        kernel = tuple(2 * r + 1 for r in reach)
        padding = tuple(r * dilation for r in reach)
        layers += [
            convolution(channels, filters, kernel, padding=padding, dilation=dilation, padding_mode="circular"),
            norm(filters),
            nn.ReLU(),
        ]
        channels = filters
    return [*layers, nn.Flatten(2), MeanAndMaximum()]


class CircularConv2d(nn.Conv2d):
    """A convolution of images that go on at the opposite edge.

    The same as `nn.Conv2d` with circular padding, whose padding takes longer than the convolution: with 60 images
    of 16×16 pixels, three of these layers take 0.6 of its time.
    """

    def _conv_forward(
        self, input: Float[Tensor, "batch channels height width"], weight: Tensor, bias: Tensor | None
    ) -> Float[Tensor, "batch filters height width"]:
        for axis, reach in zip((-2, -1), map(int, self.padding), strict=True):
            first, last = input.narrow(axis, 0, reach), input.narrow(axis, input.shape[axis] - reach, reach)
            input = torch.cat([last, input, first], axis) if reach else input
        return F.conv2d(input, weight, bias, self.stride, 0, self.dilation, self.groups)


class Sorted(nn.Module):
    """The numbers of every orbit in ascending order, orbit by orbit.

    Args:
        orbits: The places of the numbers of each.
    """

    def __init__(self, orbits: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.orbits = [list(orbit) for orbit in orbits]

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """Sort the last axis."""
        return torch.cat([x[..., orbit].sort(-1).values for orbit in self.orbits], dim=-1)


class PooledOrbits(nn.Module):
    """A learned function of every number, pooled over its orbit; numbers that stay in place remain as they are.

    Args:
        orbits: The places of the numbers of each.
        hidden: Number of values of each function.
    """

    def __init__(self, orbits: Sequence[Sequence[int]], hidden: int) -> None:
        super().__init__()
        self.moved = [list(orbit) for orbit in orbits if len(orbit) > 1]
        self.fixed = [orbit[0] for orbit in orbits if len(orbit) == 1]
        each = (nn.Sequential(*_of_each(1, hidden), Transposed(), MeanAndMaximum()) for _ in self.moved)
        self.each = nn.ModuleList(each)
        self.size = 2 * hidden * len(self.moved) + len(self.fixed)

    def forward(self, x: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch size"]:
        """Pool every orbit."""
        pooled = [each(x[:, orbit, None]) for each, orbit in zip(self.each, self.moved, strict=True)]
        return torch.cat([*pooled, x[:, self.fixed]], dim=-1)


class MeanAndMaximum(nn.Module):
    """Mean and maximum over all positions, side by side."""

    def forward(self, x: Float[Tensor, "batch channels positions"]) -> Float[Tensor, "batch twice"]:
        """Pool the last axis."""
        return torch.cat([x.mean(-1), x.amax(-1)], dim=-1)
