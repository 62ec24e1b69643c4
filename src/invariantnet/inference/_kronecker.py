r"""The curvature of a layer as a Kronecker product of two small matrices.

The curvature of the log likelihood in one layer's weights is approximated by $A \otimes B$. A is the mean of
$a a^\top$ over the layer's inputs, with a 1 appended for the bias. B is the sum of $b b^\top$ over the gradients
at its outputs. A layer applied to several copies of an input counts each copy.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.data.arrays import DiskArray, blocks
from invariantnet.likelihoods import Likelihood

BATCH = 256
"""Examples per backward pass: bounds the memory that the copies and patches of a batch take."""

Layer = nn.Linear | nn.Conv2d
"""A layer that has a posterior here."""


def layers_of(network: nn.Module, x: Float[Tensor, "n dim"]) -> dict[str, Layer]:
    """List the trainable linear and convolutional layers that `x` passes through.

    Args:
        network: The network; it is put into evaluation mode.
        x: Any inputs.

    Returns:
        The layers by name, in the order of their calls.
    """
    names = {m: name for name, m in network.named_modules() if isinstance(m, nn.Linear | nn.Conv2d)}
    with _recorded(list(names)) as calls, torch.no_grad():
        network.eval()(x)
    return {names[call.layer]: call.layer for call in calls if call.layer.weight.requires_grad}


@dataclass(frozen=True, eq=False)
class _Call:
    """One call of a layer."""

    layer: Layer
    input: Tensor
    output: Tensor


@contextlib.contextmanager
def _recorded(layers: Iterable[Layer]) -> Iterator[list[_Call]]:
    """Record every call of these layers inside the `with` block."""
    calls: list[_Call] = []

    def record(layer: Layer, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        calls.append(_Call(layer, inputs[0].detach(), output))

    hooks = [layer.register_forward_hook(record) for layer in layers]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


class Factors:
    """The Kronecker factors of one layer, summed batch by batch."""

    def __init__(self) -> None:
        self.inputs: Tensor | int = 0
        self.outputs: Tensor | int = 0
        self.rows: Tensor | int = 0

    def add_input(self, call: _Call, weight: Float[Tensor, " n"] | None) -> None:
        """Add the inputs of a call; the rows of an example, its copies and patches, share its weight."""
        a = _input_rows(call.layer, call.input)
        if weight is None:
            self.inputs, self.rows = self.inputs + a.mT @ a, self.rows + len(a)
            return
        each = weight.repeat_interleave(len(a) // len(weight))[:, None]
        self.inputs, self.rows = self.inputs + (a * each).mT @ a, self.rows + each.sum()

    def add_gradient(self, call: _Call, gradient: Tensor) -> None:
        """Add the gradients at the outputs of a call."""
        b = _output_rows(call.layer, gradient)
        self.outputs = self.outputs + b.mT @ b

    @property
    def input_factor(self) -> Float[Tensor, "inputs1 inputs1"]:
        r"""A, the mean of $a a^\top$ over the inputs."""
        assert isinstance(self.inputs, Tensor)
        return (self.inputs / self.rows).double().cpu()

    @property
    def output_factor(self) -> Float[Tensor, "outputs outputs"]:
        r"""B, the sum of $b b^\top$ over the gradients."""
        assert isinstance(self.outputs, Tensor)
        return self.outputs.double().cpu()


@torch.enable_grad()
def kronecker_factors(
    network: nn.Module,
    x: Tensor | DiskArray,
    likelihood: Likelihood,
    layers: Iterable[Layer],
    weight: Tensor | None,
) -> dict[Layer, Factors]:
    """Sum the factors of some layers over all examples.

    Every batch passes forwards once, and each root of the likelihood's curvature backwards.

    Args:
        network: The network; it is put into evaluation mode.
        x: Inputs.
        likelihood: Log density of the targets.
        layers: Layers that the inputs pass through.
        weight: Weight of each example.

    Returns:
        The factors of each layer.
    """
    network.eval()
    factors = {layer: Factors() for layer in layers}
    start = 0
    for part in blocks(x, BATCH):
        w = None if weight is None else weight[start : start + len(part)].to(part)
        start += len(part)
        with _recorded(factors) as calls:
            outputs = network(part)
        for call in calls:
            factors[call.layer].add_input(call, w)
        for root in likelihood.curvature_roots(outputs.detach()):
            root = (root if w is None else root * w.sqrt()[:, None]).to(outputs)
            ends = [call.output for call in calls]
            back = torch.autograd.grad(outputs, ends, root, retain_graph=True, materialize_grads=True)
            for call, gradient in zip(calls, back, strict=True):
                factors[call.layer].add_gradient(call, gradient)
    return factors


def _input_rows(layer: Layer, x: Tensor) -> Float[Tensor, "rows inputs1"]:
    """Return the vectors that the weights are multiplied with: one per copy and patch of an example."""
    if isinstance(layer, nn.Conv2d):
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        x = F.pad(x, layer._reversed_padding_repeated_twice, mode)  # also for padding="same"
        each = x.unflatten(1, (layer.groups, -1)).flatten(0, 1)  # channel groups share one factor
        x = F.unfold(each, layer.kernel_size, layer.dilation, 0, layer.stride).mT
    x = x.flatten(0, -2)
    return x if layer.bias is None else torch.cat([x, torch.ones_like(x[:, :1])], dim=1)


def _output_rows(layer: Layer, gradient: Tensor) -> Float[Tensor, "rows outputs"]:
    """Return the gradients at the outputs, in the order of `_input_rows`."""
    return (gradient.movedim(1, -1) if isinstance(layer, nn.Conv2d) else gradient).flatten(0, -2)
