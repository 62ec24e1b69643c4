"""The networks that the package brings along. All take flat inputs and return logits."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from invariantnet.nn.bayesian import bayesian as make_bayesian
from invariantnet.nn.invariant import InvariantLinear
from invariantnet.symmetries.group import Group


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
    shape: tuple[int, ...], classes: int, hidden: int = 100, *, bayesian: bool = False, units: int = 1
) -> nn.Sequential:
    """Make a network with one hidden layer.

    Args:
        shape: Shape of one input.
        classes: Number of outputs.
        hidden: Number of features.
        bayesian: Whether the weights are Gaussian, as in the BMLP of the paper.
        units: Number of hidden units whose mean is one feature.

    Returns:
        The network.
    """
    first = nn.Linear(math.prod(shape), hidden * units)
    layers = nn.Sequential(first, nn.ReLU(), *_mean_of(units), nn.Linear(hidden, classes))
    return make_bayesian(layers, prior_std=1.0) if bayesian else layers


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


def convnet(shape: tuple[int, ...], classes: int, hidden: int = 100, *, units: int = 1) -> nn.Sequential:
    """Make a CNN for use in practice: three convolutions with batch norm, and one hidden layer.

    Args:
        shape: Shape of one image, (H, W) or (C, H, W).
        classes: Number of outputs.
        hidden: Number of features.
        units: Number of hidden units whose mean is one feature.

    Returns:
        The network.
    """
    channels, height, width = image_shape(shape)
    layers: list[nn.Module] = [nn.Unflatten(-1, (channels, height, width))]
    for filters in (16, 32, 64):
        # Each convolution halves the image: the first by its stride, which is cheaper, the others by pooling,
        # which is more accurate.
        halving: list[nn.Module] = [nn.MaxPool2d(2, ceil_mode=True)] if filters > 16 else []
        kernel, stride = (3, 1) if halving else (5, 2)
        conv = nn.Conv2d(channels, filters, kernel, stride=stride, padding=kernel // 2)
        layers += [conv, nn.BatchNorm2d(filters), nn.ReLU(), *halving]
        channels, height, width = filters, -(-height // 2), -(-width // 2)
    size = channels * height * width
    layers += [nn.Flatten(), nn.Linear(size, hidden * units), nn.ReLU(), *_mean_of(units)]
    layers.append(nn.Linear(hidden, classes))
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _mean_of(units: int) -> list[nn.Module]:
    return [nn.AvgPool1d(units)] if units > 1 else []


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
