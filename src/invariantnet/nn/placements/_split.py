"""Find the head of any network: the layer before which the features of all copies are pooled."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from invariantnet.nn.bayesian import BayesianLinear

PoolCopies = Callable[[Tensor], Tensor]
"""From features of shape (inputs x copies, ...) to features of shape (inputs, ...)."""

TRIED, COPIES = 3, 2
"""Inputs and copies of each in a trial: sizes that do not broadcast, so that a path around the head is noticed."""

LONGEST_FAULT = 200
"""Characters of a network's own error that a message repeats: two or three lines."""

FAULTS = (RuntimeError, ValueError, TypeError, IndexError)
"""What a network raises that cannot go on with fewer rows than it began with."""


def find_head(module: nn.Module, shape: tuple[int, ...], name: str | None = None) -> str | None:
    """Find the last linear layer that every output depends on, and nothing passes by.

    Args:
        module: The network; it is called with zeros.
        shape: Shape of one input.
        name: Name of the head, if the user has said which layer it is.

    Returns:
        The name of the layer; None if there is no such layer.

    Raises:
        ValueError: If the layer that the user named does not exist, or is none that copies can be pooled before.
    """
    layers = dict(module.named_modules())
    if name is not None:
        if not name or name not in layers:
            known = ", ".join(n for n, layer in layers.items() if isinstance(layer, nn.Linear))
            raise ValueError(f"the network has no layer {name!r}: name one of its layers, such as {known or '0'}.")
        if not _can_pool_before(module, layers[name], shape):
            raise ValueError(
                f"copies cannot be pooled before layer {name!r}, which is not called once, or not with one row "
                "per input, or which something passes by: name another layer, or use placement 'outputs'."
            )
        return name
    names = {layer: n for n, layer in layers.items() if n}
    for layer in reversed(_linear_layers_called(module, shape)):
        if _can_pool_before(module, layer, shape):
            return names[layer]
    return None


def call_pooled(module: nn.Module, head: nn.Module, copies: Tensor, pool: PoolCopies) -> Tensor:
    """Call a network on copies of inputs, and pool them where they enter the head.

    Args:
        module: The network.
        head: One of its layers.
        copies: Copies of all inputs, along the first axis.
        pool: Makes one row of each input's copies.

    Returns:
        The outputs, one row per input.
    """

    def pooled(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (pool(inputs[0]), *inputs[1:])

    hook = head.register_forward_pre_hook(pooled)
    try:
        outputs: Tensor = module(copies)
    finally:
        hook.remove()
    return outputs


def check_outputs(module: nn.Module, shape: tuple[int, ...], outputs: int) -> None:
    """Refuse a network that does not make one row of outputs of every input.

    Args:
        module: The network; it is called with zeros.
        shape: Shape in which it takes an input.
        outputs: Number of outputs.

    Raises:
        ValueError: If it fails, or returns something else.
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"the backbone made a {type(module).__name__}: let it make a torch module.")
    with _tried(module) as (like, device):
        try:
            found = module(torch.zeros(TRIED, *shape, dtype=like, device=device))
        except FAULTS as error:
            fault = " ".join(str(error).split())[:LONGEST_FAULT]
            raise ValueError(
                f"the network of your backbone failed on inputs of shape {shape} ({fault}): let it take a batch "
                "of these, or pass another input_shape."
            ) from error
    if not isinstance(found, Tensor):
        raise ValueError(
            f"the network of your backbone returned a {type(found).__name__}: let it return one tensor, with a "
            f"row of {outputs} outputs per input."
        )
    if found.shape != (TRIED, outputs):
        raise ValueError(
            f"the network of your backbone made shape {tuple(found.shape)} of {TRIED} inputs: let it return a row "
            f"of {outputs} outputs per input."
        )


def _linear_layers_called(module: nn.Module, shape: tuple[int, ...]) -> list[nn.Module]:
    """The linear layers of a network, in the order of their last calls; none if it cannot be called with zeros."""
    called: list[nn.Module] = []
    linear = [m for m in module.modules() if isinstance(m, nn.Linear | BayesianLinear) and m is not module]
    hooks = [m.register_forward_hook(lambda layer, *_: called.append(layer)) for m in linear]
    try:
        with _tried(module) as (like, device), contextlib.suppress(*FAULTS):
            module(torch.zeros(TRIED, *shape, dtype=like, device=device))
    finally:
        for hook in hooks:
            hook.remove()
    return list(dict.fromkeys(reversed(called)))[::-1]


def _can_pool_before(module: nn.Module, layer: nn.Module, shape: tuple[int, ...]) -> bool:
    seen = []

    def pool(features: Tensor) -> Tensor:
        seen.append(len(features))
        return features.unflatten(0, (TRIED, COPIES)).mean(1)

    with _tried(module) as (like, device):
        try:
            found = call_pooled(
                module, layer, torch.zeros(TRIED * COPIES, *shape, dtype=like, device=device), pool
            )
        except FAULTS:
            return False
    return seen == [TRIED * COPIES] and isinstance(found, Tensor) and found.ndim > 1 and len(found) == TRIED


@contextlib.contextmanager
def _tried(module: nn.Module) -> Iterator[tuple[torch.dtype, torch.device]]:
    """Call a network without consequences: no gradients, no running statistics, no random numbers used up."""
    modes = {m: m.training for m in module.modules()}
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            module.eval()
            yield like.dtype, like.device
    finally:
        for m, training in modes.items():
            m.training = training
