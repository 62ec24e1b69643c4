"""The networks that the paper compares. All take flat inputs and give logits."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from invariantnet.nn.bayesian import bayesian as make_bayesian
from invariantnet.nn.invariant import InvariantLinear
from invariantnet.symmetries.group import Group


def invariant_net(groups: Sequence[Group], classes: int, hidden: int = 100, **layer: Any) -> nn.Sequential:
    """InvariantNet: the probabilistic layer, then one linear layer. With `scheme=(1, 0)`, RotNet or FlipNet."""
    return nn.Sequential(InvariantLinear(groups, hidden, **layer), nn.ReLU(), nn.Linear(hidden, classes))


def mlp(
    shape: tuple[int, ...], classes: int, hidden: int = 100, *, bayesian: bool = False, units: int = 1
) -> nn.Sequential:
    """One hidden layer; `bayesian` makes it the paper's BMLP; a feature is the mean of so many `units`."""
    first = nn.Linear(math.prod(shape), hidden * units)
    layers = nn.Sequential(first, nn.ReLU(), *_mean_of(units), nn.Linear(hidden, classes))
    return make_bayesian(layers, prior_std=1.0) if bayesian else layers


def cnn(shape: tuple[int, ...], classes: int, hidden: int = 100, *, bayesian: bool = False) -> nn.Sequential:
    """Two strided convolutions and one hidden layer; `bayesian` makes it the paper's BCNN."""
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
    """Three convolutions with batch norm, each halving the image, and one hidden layer: what one would deploy."""
    channels, height, width = image_shape(shape)
    layers: list[nn.Module] = [nn.Unflatten(-1, (channels, height, width))]
    for filters in (16, 32, 64):
        # The first halves by its stride, which is cheaper; the others by pooling, which is more accurate.
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
    """Channels, height and width of an image; grey ones have one channel."""
    if len(shape) == 2:
        return (1, *shape)
    if len(shape) == 3:
        return shape
    raise ValueError(f"a CNN needs images, got shape {shape}: pass (H, W) or (C, H, W), or use an MLP.")
