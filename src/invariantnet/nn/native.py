"""Networks that are invariant to a large group by construction, so that none of its elements needs to be listed.

`permutations`: a learned function of every element, pooled (Zaheer et al. 2017); or, where an element is one
number, any function of the sorted numbers. `cyclic` and `shifts`: circular
convolutions, averaged over all positions.
"""

import math
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

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


def sorted_mlp(
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
        shape: Shape of one input: one number per element.
        classes: Number of outputs.
        hidden: Number of features, and width of the hidden layers.
        depth: Number of hidden layers.
        units: Number of hidden units that make one feature.
        pool: Whether a feature is the maximum of its units or their mean.

    Returns:
        The network, on flat inputs.
    """
    return nn.Sequential(Sorted(), *mlp(shape, classes, hidden, depth=depth, units=units, pool=pool))


def _of_sets(shape: tuple[int, ...], hidden: int) -> list[nn.Module]:
    """Two layers on every element, then the mean and the maximum over the elements."""
    elements, width = shape[0], math.prod(shape[1:])
    each = [nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]
    return [nn.Unflatten(-1, (elements, width)), *each, Transposed(), MeanAndMaximum()]


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
    convolution, norm = (nn.Conv1d, nn.BatchNorm1d) if native == "cyclic" else (nn.Conv2d, nn.BatchNorm2d)
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


class Sorted(nn.Module):
    """The numbers of an input in ascending order."""

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """Sort the last axis."""
        return x.sort(-1).values


class MeanAndMaximum(nn.Module):
    """Mean and maximum over all positions, side by side."""

    def forward(self, x: Float[Tensor, "batch channels positions"]) -> Float[Tensor, "batch twice"]:
        """Pool the last axis."""
        return torch.cat([x.mean(-1), x.amax(-1)], dim=-1)
