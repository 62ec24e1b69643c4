"""The networks that the package brings along. All take flat inputs and return logits."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.choices import Pool
from invariantnet.nn.bayesian import bayesian as make_bayesian
from invariantnet.nn.invariant import InvariantLinear
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.shapes import has_features

FILTERS = (16, 32, 64)
"""Channels of the three convolutions: enough for digits and photographs of 32 pixels, and quick on one core."""
SMALLEST_STRIDED = 16
"""Pixels of the shorter side from which on the first convolution skips every other pixel."""


def invariant_net(groups: Sequence[Group], classes: int, hidden: int = 100, **layer: Any) -> nn.Sequential:
    """Make the InvariantNet of the paper: the probabilistic layer, then one linear layer.

    Args:
        groups: The candidates of the layer.
        classes: Number of classes.
        hidden: Neurons of the probabilistic layer.
        **layer: Further arguments of `InvariantLinear`; `scheme=(1, 0)` makes RotNet or FlipNet.

    Returns:
        The network.
    """
    return nn.Sequential(InvariantLinear(groups, hidden, **layer), nn.ReLU(), nn.Linear(hidden, classes))


def mlp(
    shape: tuple[int, ...],
    classes: int,
    hidden: int = 100,
    *,
    depth: int = 1,
    bayesian: bool = False,
    units: int = 1,
    pool: Pool = "max",
) -> nn.Sequential:
    """Make a network with one or more hidden layers.

    Args:
        shape: Shape of one input.
        classes: Number of outputs.
        hidden: Number of features, and width of the hidden layers.
        depth: Number of hidden layers.
        bayesian: Whether the weights are Gaussian, as in the BMLP of the paper.
        units: Number of hidden units that make one feature.
        pool: Whether a feature is the maximum of its units or their mean.

    Returns:
        The network.
    """
    widths = [math.prod(shape), *[hidden] * (depth - 1)]
    layers: list[nn.Module] = []
    for width in widths[:-1]:
        layers += [nn.Linear(width, hidden), nn.ReLU()]
    layers += [*features_of_units(widths[-1], hidden, units, pool), nn.Linear(hidden, classes)]
    network = nn.Sequential(*layers)
    return make_bayesian(network, prior_std=1.0) if bayesian else network


def linear(
    shape: tuple[int, ...], classes: int, hidden: int = 100, *, units: int = 1, pool: Pool = "max"
) -> nn.Linear:
    """Make a linear layer that starts at zero: its training has one solution, wherever it starts.

    Args:
        shape: Shape of one input.
        classes: Number of outputs.
        hidden: Nothing; other networks have hidden layers.
        units: Nothing; other networks have features of several units.
        pool: Nothing; other networks pool features.

    Returns:
        The layer.
    """
    layer = nn.Linear(math.prod(shape), classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def cnn(shape: tuple[int, ...], classes: int, hidden: int = 100, *, bayesian: bool = False) -> nn.Sequential:
    """Make the CNN of the paper: two strided convolutions and one hidden layer.

    Args:
        shape: Shape of one image, (H, W) or (C, H, W).
        classes: Number of outputs.
        hidden: Width of the hidden layer.
        bayesian: Whether the weights are Gaussian, as in the BCNN of the paper.

    Returns:
        The network.
    """
    channels, height, width = image_shape(shape)
    layers = nn.Sequential(
        nn.Unflatten(-1, (channels, height, width)),
        nn.Conv2d(channels, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * -(-height // 4) * -(-width // 4), hidden),
        nn.ReLU(),
        nn.Linear(hidden, classes),
    )
    return make_bayesian(layers, prior_std=1.0) if bayesian else layers


def convnet(
    shape: tuple[int, ...],
    classes: int,
    hidden: int = 100,
    *,
    pooled: bool = False,
    units: int = 1,
    pool: Pool = "max",
) -> nn.Sequential:
    """Make a CNN for use in practice: three convolutions with batch norm, and one hidden layer.

    Args:
        shape: Shape of one image, (H, W) or (C, H, W), or of one sequence, (length,) or (length, features).
        classes: Number of outputs.
        hidden: Number of features.
        pooled: Whether the last feature maps are averaged over all positions.
        units: Number of hidden units that make one feature.
        pool: Whether a feature is the maximum of its units or their mean.

    Returns:
        The network.
    """
    if is_sequence(shape):
        return _sequence_convnet(shape, classes, hidden, pooled=pooled, units=units, pool=pool)
    channels, height, width = image_shape(shape)
    layers: list[nn.Module] = [nn.Unflatten(-1, (channels, height, width))]
    for filters in FILTERS:
        # Each convolution halves the image: the first by its stride, which is cheaper, the others by pooling,
        # which is more accurate. Small images are not halved by the first.
        strided = filters == FILTERS[0] and min(height, width) >= SMALLEST_STRIDED
        halving: list[nn.Module] = [] if filters == FILTERS[0] else [nn.MaxPool2d(2, ceil_mode=True)]
        kernel = 5 if strided else 3
        conv = nn.Conv2d(channels, filters, kernel, stride=2 if strided else 1, padding=kernel // 2)
        layers += [conv, nn.BatchNorm2d(filters), nn.ReLU(), *halving]
        channels = filters
        if strided or halving:
            height, width = -(-height // 2), -(-width // 2)
    size = channels if pooled else channels * height * width
    layers += [nn.AdaptiveAvgPool2d(1)] if pooled else []
    layers += [nn.Flatten(), *features_of_units(size, hidden, units, pool), nn.Linear(hidden, classes)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _sequence_convnet(
    shape: tuple[int, ...], classes: int, hidden: int, *, pooled: bool, units: int, pool: Pool
) -> nn.Sequential:
    length, channels = shape[0], math.prod(shape[1:])
    layers: list[nn.Module] = [nn.Unflatten(-1, (length, channels)), Transposed()]
    for filters in FILTERS:
        conv = nn.Conv1d(channels, filters, 5, padding=2)
        layers += [conv, nn.BatchNorm1d(filters), nn.ReLU(), nn.MaxPool1d(2, ceil_mode=True)]
        channels, length = filters, -(-length // 2)
    size = channels if pooled else channels * length
    layers += [nn.AdaptiveAvgPool1d(1)] if pooled else []
    return nn.Sequential(
        *layers, nn.Flatten(), *features_of_units(size, hidden, units, pool), nn.Linear(hidden, classes)
    )


class Transposed(nn.Module):
    """(batch, length, features) as (batch, features, length)."""

    def forward(self, x: Float[Tensor, "batch length features"]) -> Float[Tensor, "batch features length"]:
        """Exchange the last two axes."""
        return x.mT


def features_of_units(inputs: int, hidden: int, units: int, pool: Pool) -> list[nn.Module]:
    """Make the last hidden layer, whose features are made of several units each.

    Args:
        inputs: Numbers that the layer takes.
        hidden: Number of features.
        units: Number of hidden units that make one feature.
        pool: Whether a feature is the maximum of its units or their mean.

    Returns:
        The layers.
    """
    layer = nn.Linear(inputs, hidden * units)
    if units == 1:
        return [layer, nn.ReLU()]
    # The maximum of rectified units is the rectified maximum, which costs less; that does not hold for a mean.
    return [layer, nn.MaxPool1d(units), nn.ReLU()] if pool == "max" else [layer, nn.ReLU(), nn.AvgPool1d(units)]


def is_sequence(shape: tuple[int, ...]) -> bool:
    """Whether a network treats inputs of a shape as sequences rather than as images."""
    return len(shape) == 1 or has_features(shape)


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return channels, height and width of an image; a grey image has one channel.

    Args:
        shape: Shape of one image, (H, W) or (C, H, W).

    Returns:
        The shape with its channels.

    Raises:
        ValueError: If this is no shape of an image.
    """
    if len(shape) == 2:
        return (1, *shape)
    if len(shape) == 3:
        return shape
    raise ValueError(f"a CNN needs images, got shape {shape}: pass (H, W) or (C, H, W), or use an MLP.")
