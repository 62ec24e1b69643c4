"""The layers that a network is made of, as placements need to know them."""

from collections.abc import Iterable
from typing import TypeGuard

from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.nn.standardize import Standardize
from invariantnet.symmetries.ranges import AnySymmetry

POINTWISE = (nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid, nn.ELU, nn.LeakyReLU, nn.Identity)
"""Layers that treat every number alike, so that they may be applied to the copies of a feature side by side."""
MONOTONE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.LeakyReLU, nn.Identity)
"""Layers that keep the order of numbers, so that a maximum may be taken before them or after them."""


def is_plain_linear(layer: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether the weights and the bias are all there is to a layer: a subclass may compute something else."""
    return isinstance(layer, nn.Linear) and type(layer).forward is nn.Linear.forward


def is_plain_sequence(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a network is a plain sequence of layers: an overridden forward() may do more than call them."""
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward and len(module) > 1


def first_layer(module: nn.Module) -> nn.Module:
    """Return the first layer of a network that does more than flatten its inputs."""
    if not isinstance(module, nn.Sequential) or not len(module):
        return module
    return module[1] if len(module) > 1 and _flattens(module[0]) else module[0]


def check_first_layer(module: nn.Module, symmetry: AnySymmetry, input_shape: tuple[int, ...] | None) -> None:
    """Refuse a network whose first layer is linear, but does not take the inputs that it will get.

    Args:
        module: The network.
        symmetry: What acts on the flat inputs.
        input_shape: Shape in which the network takes an input; None if it takes flat inputs.

    Raises:
        ValueError: If the widths differ.

    """
    first = first_layer(module)
    # The width of a lazy layer is 0 until its first call.
    if not is_plain_linear(first) or first.in_features == 0:
        return
    is_flat = input_shape is None or (isinstance(module, nn.Sequential) and first is not module[0])
    if is_flat and first.in_features != symmetry.dim:
        raise ValueError(
            f"the first layer takes {first.in_features} inputs, but {symmetry.name} acts on {symmetry.dim} "
            "inputs: make both for the same shape."
        )
    if not is_flat and input_shape and first.in_features != input_shape[-1]:
        raise ValueError(
            f"the first layer takes {first.in_features} inputs, but inputs of shape {input_shape} have "
            f"{input_shape[-1]} in their last axis: let the network start with nn.Flatten()."
        )


def pools_units(layer: nn.Module, units: int) -> bool:
    """Whether a layer pools neighbours, with no window across the copies of a layer of `units` units."""
    if not isinstance(layer, nn.MaxPool1d | nn.AvgPool1d):
        return False
    size, step, padding = (_number(n) for n in (layer.kernel_size, layer.stride, layer.padding))
    return size == step and padding == 0 and units % size == 0


def pool_size(layer: nn.Module) -> int:
    """Count the units that a layer pools."""
    assert isinstance(layer, nn.MaxPool1d | nn.AvgPool1d)
    return _number(layer.kernel_size)


def apply_all(layers: Iterable[nn.Module], x: Tensor) -> Tensor:
    """Call one layer after another; making an `nn.Sequential` at every step would cost more than small layers."""
    for layer in layers:
        x = layer(x)
    return x


def in_own_units(
    weight: Float[Tensor, "neurons inputs"], bias: Tensor | None, inputs: Standardize | None
) -> tuple[Tensor, Tensor | None]:
    """Weights and biases of a first layer that takes inputs in their own units."""
    return (weight, bias) if inputs is None else inputs.folded_into(weight, bias)


def plain_linear(weight: Float[Tensor, "neurons inputs"], bias: Tensor | None) -> nn.Linear:
    """Make a linear layer with copies of these weights."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None).to(weight)
    linear.weight.copy_(weight)
    if bias is not None:
        linear.bias.copy_(bias)
    return linear


def _number(size: int | tuple[int, ...]) -> int:
    return size[0] if isinstance(size, tuple) else size


def _flattens(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Flatten) and (layer.start_dim, layer.end_dim) == (1, -1)
