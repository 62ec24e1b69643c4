"""A pretrained body as a backbone: it stays as it is, and only heads on its features are trained."""

import copy
import hashlib
import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.nn.standardize import Standardize

BODY_BATCH = 32
"""Inputs that pass through a frozen body at once: activations of photographs take tens of megabytes each."""

Preprocess = Callable[[Tensor], Tensor]
"""From inputs in their shape, the batch first, to what a body takes."""

MakeHead = Callable[[int, int], nn.Module]
"""Makes a head from the number of features and of outputs."""


class Pretrained:
    """A backbone of which only the head is trained.

    Pass it as `backbone=` to an estimator. All copies of all examples pass through the body once; every hypothesis
    is then a head on their features, and so is the final network. With symmetries `"auto"`, groups are left out
    with which there would be more than 64 copies.

    Args:
        body: A trained network, which takes inputs (n, *input_shape) after `preprocess` and gives features or,
            with `head`, anything. It is put into evaluation mode.
        head: Name of the layer of the body whose inputs are the features, such as `"classifier"`; by default the
            outputs of the body are the features.
        preprocess: Brings inputs into the form that the body was trained with: resizing, scaling. It gets a batch
            of inputs in their shape and units.
        unfreeze: Whether the final network is trained further, body and head together, once its head is trained.

    Raises:
        ValueError: If there is no such body or layer.

    >>> from torch import nn
    >>> body = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU())
    >>> Pretrained(body)((4, 4), 3)(torch.zeros(5, 4, 4)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        body: nn.Module,
        head: str | None = None,
        preprocess: Preprocess | None = None,
        *,
        unfreeze: bool = False,
    ) -> None:
        if not isinstance(body, nn.Module):
            raise ValueError(f"body is a {type(body).__name__}: pass a torch module with its weights.")
        if head is not None and (not isinstance(head, str) or not head or head not in dict(body.named_modules())):
            known = ", ".join(name for name, _ in body.named_modules() if name)[-100:]
            raise ValueError(f"the body has no layer {head!r}: name one of its layers, such as {known}.")
        if preprocess is not None and not callable(preprocess):
            raise ValueError(f"preprocess is {preprocess!r}: pass a function from a batch to a batch.")
        if unfreeze and not any(p.requires_grad for p in body.parameters()):
            raise ValueError("unfreeze=True, but the body has gradients off: call body.requires_grad_() first.")
        self.body, self.head, self.preprocess, self.unfreeze = body, head, preprocess, unfreeze

    def __call__(
        self, input_shape: tuple[int, ...], outputs: int, make_head: MakeHead = nn.Linear
    ) -> nn.Sequential:
        """Make a network of a copy of the body and an untrained head.

        Args:
            input_shape: Shape of one input.
            outputs: Number of outputs.
            make_head: Makes the head from the number of features and of outputs.

        Returns:
            The body, and the head with the units of its features.
        """
        body = self.extractor()
        features = body.count_features(input_shape)
        # The copy must not share weights with the user's body, which loading a model would change.
        return nn.Sequential(
            copy.deepcopy(body), nn.Sequential(Standardize.identity(features), make_head(features, outputs))
        )

    def extractor(self, device: torch.device | None = None) -> "Body":
        """The body as a module from inputs to features.

        Args:
            device: Where it computes; by default where the user's body is. Elsewhere it is a copy, so that the
                user's body stays where it is.

        Returns:
            The module.
        """
        own = Body(self.body, self.head, self.preprocess)
        return own if device in (None, own.device) else copy.deepcopy(own).to(device)

    def digest(self, input_shape: tuple[int, ...]) -> str:
        """Recognise the body, its preprocessing and their versions by what they make of a random input."""
        generator = torch.Generator().manual_seed(0)
        body = self.extractor()
        features = body(torch.rand(2, *input_shape, generator=generator).to(body.device))
        return hashlib.sha256(features.cpu().numpy().tobytes()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"Pretrained({type(self.body).__name__})"


class Body(nn.Module):
    """A frozen network from inputs in their shape to features.

    Args:
        body: The network.
        head: Name of its layer whose inputs are the features; None for its outputs.
        preprocess: Brings inputs into the form that the body takes.
    """

    def __init__(self, body: nn.Module, head: str | None = None, preprocess: Preprocess | None = None) -> None:
        super().__init__()
        self.body, self.head, self.preprocess = body, head, preprocess
        self.frozen = True
        self.eval()

    @property
    def device(self) -> torch.device:
        """Where the body is."""
        return next((p.device for p in self.body.parameters()), torch.device("cpu"))

    def train(self, mode: bool = True) -> "Body":
        """Leave a frozen body in evaluation mode: its running statistics stay as they are."""
        return super().train(mode and not self.frozen)

    def forward(self, x: Float[Tensor, "n *shape"]) -> Float[Tensor, "n features"]:
        """Compute the features of inputs; a frozen body needs memory for a part of them only."""
        if not self.frozen:
            return self._features(x)
        with torch.no_grad():
            if torch.compiler.is_exporting() or len(x) <= BODY_BATCH:
                return self._features(x)
            parts = [self._features(part) for part in x.split(BODY_BATCH)]
        lengths = sorted({part.shape[1] for part in parts})
        if len(lengths) > 1:
            raise ValueError(
                f"the body gives features of two lengths, {lengths[0]} and {lengths[-1]}: let it give equally "
                "many for every input."
            )
        return torch.cat(parts)

    @torch.no_grad()
    def count_features(self, shape: tuple[int, ...]) -> int:
        """Count the features that inputs of a shape have.

        Args:
            shape: Shape of one input.

        Returns:
            The number of features.

        Raises:
            ValueError: If the body or its preprocessing fails on such inputs, or changes their number.
        """
        x = torch.full((2, *shape), 0.5, device=self.device)
        found = self._features(x).shape[1]
        if self._features(x[:1]).shape[1] != found:
            raise ValueError(
                "the body gives features of two lengths, for one input and for two: let it keep inputs apart."
            )
        return found

    def _features(self, x: Float[Tensor, "n *shape"]) -> Float[Tensor, "n features"]:
        if torch.compiler.is_exporting():
            return self._called(self._prepared(x)).flatten(1)
        shape = tuple(x.shape[1:])
        try:
            prepared = self._prepared(x)
        except Exception as error:
            raise ValueError(
                f"preprocess failed on inputs of shape {shape} ({_fault(error)}): mend it."
            ) from error
        _check_batch("preprocess", prepared, len(x))
        try:
            features = self._called(prepared)
        except Exception as error:
            given = tuple(prepared.shape[1:])
            raise ValueError(
                f"the body failed on inputs of shape {given} ({_fault(error)}): pass a preprocess that makes what "
                "it takes, or another input_shape."
            ) from error
        _check_batch("the body", features, len(x))
        if not bool(features.isfinite().all()):
            raise ValueError("the body gives NaN or infinite features: check its weights and preprocess.")
        return features.flatten(1).float()

    def _prepared(self, x: Tensor) -> Tensor:
        return x if self.preprocess is None else self.preprocess(x)

    def _called(self, x: Tensor) -> Any:
        if self.head is None:
            return self.body(x)
        seen: list[Tensor] = []
        layer = self.body.get_submodule(self.head)
        hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            self.body(x)
        finally:
            hook.remove()
        if len(seen) != 1:
            raise ValueError(f"layer {self.head!r} is called {len(seen)} times, not once")
        return seen[0]


def _check_batch(what: str, values: Any, inputs: int) -> None:
    if not isinstance(values, Tensor):
        raise ValueError(f"{what} returned a {type(values).__name__}: let it return one tensor, the batch first.")
    if values.is_complex():
        raise ValueError(f"{what} returned complex numbers: let it return real ones.")
    if values.ndim < 2 or len(values) != inputs or not math.prod(values.shape[1:]):
        raise ValueError(
            f"{what} made shape {tuple(values.shape)} of {inputs} inputs: let it keep the batch as the first axis."
        )


def _fault(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]


def set_frozen(network: nn.Module, *, frozen: bool) -> nn.Module:
    """Freeze the bodies inside a network, or let them learn.

    Args:
        network: The network.
        frozen: Whether its bodies keep their weights.

    Returns:
        The network; in evaluation mode if its bodies are frozen.
    """
    for part in network.modules():
        if isinstance(part, Body):
            part.frozen = frozen
            part.body.requires_grad_(not frozen)
    return network.train(not frozen)
