"""Trained networks as data: a list of small operations that a page can carry out by itself."""

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet.nn.architectures import Transposed
from invariantnet.nn.folding import folded
from invariantnet.nn.native import MeanAndMaximum, Sorted
from invariantnet.nn.placements.base import OverElements
from invariantnet.nn.placements.features import Features
from invariantnet.nn.symmetrized import Symmetrized
from invariantnet.report.warps import Map, maps_of
from invariantnet.symmetries._affine import Affine

MOST_OPERATIONS = 2 * 10**8
"""Most multiplications of one prediction: a browser takes about a second for them."""

Operation = dict[str, Any]
"""One operation of `tryit.js`: its kind, its sizes, and its numbers as text."""


class LeftOutError(ValueError):
    """The page cannot carry the networks; the message is the reason that the page gives."""


def program(network: nn.Module, dim: int, *, half: bool) -> dict[str, Any]:
    """Translate a network for `tryit.js`.

    Args:
        network: A trained network.
        dim: Numbers per input.
        half: Whether weights are stored in 16 bits.

    Returns:
        What the script needs: how inputs are standardised and copied, the layers, and how copies are pooled.

    Raises:
        LeftOutError: If a layer has no translation, or one prediction would take too long.
    """
    plain = folded(network)
    x = torch.zeros(1, dim)
    if not isinstance(plain, Symmetrized):
        body = _operations(_layers(plain), x, half)
        _check_cost(body, 1)
        return {"body": body}
    placement = plain.placement
    if not isinstance(placement, OverElements) or len(plain.symmetries) > 1:
        raise LeftOutError("A mixture of symmetries is more than this page can carry out.")
    elements, maps = _copies(placement, dim)
    if isinstance(placement, Features) and placement.head is not None:
        raise LeftOutError("This network is no sequence of layers, so this page cannot carry it out.")
    layers = _layers(plain.module)
    head = layers[-1:] if isinstance(placement, Features) else []
    body = _operations(layers[:-1] if head else layers, x, half)
    _check_cost(body, len(elements) * len(maps))
    found: dict[str, Any] = {
        "body": body,
        "copies": packed(elements.cpu().numpy(), "<i4"),
        "maps": maps,
        "pool": getattr(placement, "pool", "outputs"),
        "head": [_linear(layer, half) for layer in head],
        "probabilities": bool(getattr(placement, "probabilities", False)),
        "scale": plain.calibrate.scale.tolist(),
        "shift": plain.calibrate.shift.tolist(),
    }
    if plain.standardize is not None:
        found["mean"] = packed(plain.standardize.mean.cpu().numpy())
        found["spread"] = packed(plain.standardize.scale.cpu().numpy())
    return found


def _copies(placement: OverElements, dim: int) -> tuple[Tensor, list[Map]]:
    """Elements of a group, as indices, and affine maps of a range: a copy is made by one of each."""
    if placement.range is None:
        if placement.elements.is_floating_point():
            raise LeftOutError("Copies by matrices would take too much room in this page.")
        return placement.elements, [Affine().numbers]
    maps, group = maps_of(placement.range), placement.range.group
    if maps is None or (group is not None and group.is_matrix_group):
        raise LeftOutError("Copies of this range are more than this page can make by itself.")
    return torch.arange(dim)[None] if group is None else group.elements, maps


def packed(values: np.ndarray, kind: str = "<f4") -> str:
    """Write numbers as text.

    Args:
        values: The numbers.
        kind: Their type, as numpy writes it.

    Returns:
        The numbers in base64.
    """
    return base64.b64encode(values.astype(kind).tobytes()).decode()


def _layers(network: nn.Module) -> list[nn.Module]:
    return list(network) if isinstance(network, nn.Sequential) else [network]


@torch.no_grad()
def _operations(layers: Iterable[nn.Module], x: Tensor, half: bool) -> list[Operation]:
    """Translate layers, each called once to learn the sizes of its inputs and outputs."""
    found: list[Operation] = []
    for layer in layers:
        y = layer.eval()(x)
        found += _operation(layer, x, y, half)
        x = y
    return found


def _operation(layer: nn.Module, x: Tensor, y: Tensor, half: bool) -> list[Operation]:
    if isinstance(layer, nn.Flatten | nn.Unflatten | nn.Identity):
        return []
    if isinstance(layer, nn.Linear):
        return [_linear(layer, half) | {"cost": x.numel() * layer.out_features}]
    if isinstance(layer, nn.ReLU):
        return [{"kind": "relu"}]
    if isinstance(layer, nn.Conv1d | nn.Conv2d):
        return [_convolution(layer, x, y, half)]
    if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
        return [_scaling(layer, x)]
    if isinstance(layer, Transposed):
        return [{"kind": "transpose", "rows": x.shape[-2], "columns": x.shape[-1]}]
    if isinstance(layer, Sorted):
        return [{"kind": "sort", "orbits": layer.orbits}]
    if isinstance(layer, MeanAndMaximum):
        return [{"kind": "mean and maximum", "channels": x.shape[1]}]
    if isinstance(layer, nn.AdaptiveAvgPool1d | nn.AdaptiveAvgPool2d):
        return [{"kind": "mean", "size": x[0, 0].numel()}]
    if isinstance(layer, nn.AvgPool1d) and x.ndim == 2:
        return [{"kind": "mean", "size": x.shape[1] // y.shape[1]}]
    if isinstance(layer, nn.MaxPool1d) and x.ndim == 2:
        return [{"kind": "max", "size": x.shape[1] // y.shape[1]}]
    if isinstance(layer, nn.MaxPool1d | nn.MaxPool2d):
        return [{"kind": "windows", "in": _image(x), "out": _image(y), "size": _pair(layer.kernel_size, x)}]
    raise LeftOutError("This network has layers of its own, which this page cannot carry out.")


def _linear(layer: nn.Module, half: bool) -> Operation:
    if not isinstance(layer, nn.Linear):
        raise LeftOutError("This network does not end with a linear layer, so this page cannot carry it out.")
    bias = torch.zeros(layer.out_features) if layer.bias is None else layer.bias
    return {"kind": "linear", **_weights(layer.weight, half), "bias": packed(bias.detach().cpu().numpy())}


def _convolution(layer: nn.Conv1d | nn.Conv2d, x: Tensor, y: Tensor, half: bool) -> Operation:
    bias = torch.zeros(layer.out_channels) if layer.bias is None else layer.bias
    if layer.groups != 1 or isinstance(layer.padding, str) or layer.padding_mode not in ("zeros", "circular"):
        raise LeftOutError("This network has convolutions that this page cannot carry out.")
    return {
        "kind": "convolution",
        "in": _image(x),
        "out": _image(y),
        "kernel": _pair(layer.kernel_size, x),
        "stride": _pair(layer.stride, x),
        "padding": _pair(layer.padding, x, 0),
        "dilation": _pair(layer.dilation, x),
        "circular": layer.padding_mode == "circular",
        "cost": y.numel() * layer.weight[0].numel(),
        **_weights(layer.weight, half),
        "bias": packed(bias.detach().cpu().numpy()),
    }


def _scaling(layer: nn.BatchNorm1d | nn.BatchNorm2d, x: Tensor) -> Operation:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    factor = layer.weight / torch.sqrt(layer.running_var + layer.eps)
    shift = layer.bias - layer.running_mean * factor
    numbers = {"weight": packed(factor.detach().numpy()), "bias": packed(shift.detach().numpy())}
    return {"kind": "scale", "size": x[0, 0].numel(), **numbers}


def _weights(weight: Tensor, half: bool) -> dict[str, Any]:
    return {"weight": packed(weight.detach().cpu().numpy(), "<f2" if half else "<f4"), "half": half}


def _image(x: Tensor) -> list[int]:
    """Channels, height and width; a sequence is an image of one row."""
    channels, *size = x.shape[1:]
    return [channels, *([1] * (2 - len(size))), *size]


def _pair(size: Any, x: Tensor, other: int = 1) -> list[int]:
    """Height and width of a window; a sequence has a window of one row."""
    if x.ndim == 3:
        return [other, int(size[0] if isinstance(size, tuple) else size)]
    return [int(n) for n in size] if isinstance(size, tuple) else [int(size)] * 2


def _check_cost(body: list[Operation], copies: int) -> None:
    cost = copies * sum(operation.pop("cost", 0) for operation in body)
    if cost > MOST_OPERATIONS:
        raise LeftOutError(f"One prediction takes {cost / 1e6:,.0f} million multiplications, too many for a page.")
