"""Average the features before the last layer."""

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.choices import Pool
from invariantnet.nn.placements._layers import (
    MONOTONE,
    POINTWISE,
    apply_all,
    check_first_layer,
    in_own_units,
    is_plain_linear,
    is_plain_sequence,
    plain_linear,
    pool_size,
    pools_units,
)
from invariantnet.nn.placements._moved import MoveWeights, gather_indices
from invariantnet.nn.placements._split import call_pooled, find_head
from invariantnet.nn.placements.base import Averaging, OverElements
from invariantnet.nn.standardize import Standardize
from invariantnet.symmetries.ranges import AnySymmetry


class NoHeadError(ValueError):
    """A network has no layer before which the features of copies can be pooled."""


class Features(OverElements):
    r"""$\sum_g \mu_\pi(g)\, \varphi(T_g x)$ before the last layer: no information is lost.

    The head is the last layer of a plain sequence. If such a sequence starts with `nn.Linear`, the weights of this
    layer are transformed instead of the inputs. In any other network the head is the last linear layer that is
    called, or the layer that the user names.
    """

    pools = ("mean", "max")

    def __init__(self, module: nn.Module, symmetries: Sequence[AnySymmetry], averaging: Averaging) -> None:
        check_first_layer(module, symmetries[0], averaging.input_shape)
        super().__init__(module, symmetries, averaging)
        self.head = _name_of_the_head(module, averaging, symmetries[0].dim)
        """Name of the head inside the network; None for the last layer of a plain sequence."""
        self.prepares_copies &= self.head is None
        self.pool: Pool = averaging.pool
        is_index = self.range is None and not self.elements.is_floating_point()
        self.only_identity = is_index and torch.equal(self.elements, torch.arange(symmetries[0].dim)[None])
        self.gathers = is_index and not self.only_identity and self.input_shape is None
        if self.gathers:
            forward, backward = gather_indices(self.elements)
            self.register_buffer("forward_indices", forward, persistent=False)
            self.register_buffer("backward_indices", backward, persistent=False)

    def average(
        self, module: nn.Module, x: Float[Tensor, "*batch dim"], pi: Float[Tensor, "..."]
    ) -> Float[Tensor, "*batch outputs"]:
        """Call all layers but the head on every copy, pool the features, and call the head on the result."""
        weights, used = self.weighted_elements(pi)
        if self.head is not None:
            return self._pooled_inside(module, x, weights, used)
        *body, head = _layers(module)
        return head(self._pooled(self._features(body, x, used), weights))

    def finish(self, module: nn.Module, z: Float[Tensor, "n prepared"]) -> Float[Tensor, "n outputs"]:
        """Call all layers but the head on prepared copies, pool the features, and call the head on the result."""
        if not self.prepares_copies:
            return super().finish(module, z)
        *body, head = _layers(module)
        features = apply_all(body, self.prepared_copies(z)).flatten(1).unflatten(0, (len(z), -1))
        return head(self._pooled(features, self.haar[:, 0]))

    def copies(self, module: nn.Module) -> int:
        """Every element makes one, unless weights are transformed instead."""
        return 1 if self.head is None and self._moves_weights(_layers(module)[0]) else len(self.haar)

    def moved_weight(self, module: nn.Module) -> Tensor | None:
        """Return the weight of the first layer if it is gathered by index."""
        if self.head is not None:
            return None
        first = _layers(module)[0]
        return first.weight if self.gathers and is_plain_linear(first) else None

    def fold(self, module: nn.Module, pi: Float[Tensor, " symmetries"], inputs: Standardize | None) -> nn.Module:
        """Make one hidden layer with a unit for every copy of a neuron."""
        if self.head is not None:
            return super().fold(module, pi, inputs)
        first, *between, head = _layers(module)
        units = self._units(between, first)
        if not self._moves_weights(first) or not isinstance(head, nn.Linear) or units is None:
            return super().fold(module, pi, inputs)
        assert isinstance(first, nn.Linear)
        weights, used = self.weighted_elements(pi)
        copies = self._moved_weights(first.weight, used)
        # The copies of a neuron are neighbours, so that a maximum over them is a plain pooling layer.
        count, moved = copies.shape[1], copies.permute(2, 1, 0).flatten(0, 1)
        bias = None if first.bias is None else first.bias.repeat_interleave(count)
        wide = plain_linear(*in_own_units(moved, bias, inputs))
        activation = copy.deepcopy(next(layer for layer in between if isinstance(layer, POINTWISE)))
        if self.pool == "max":
            return nn.Sequential(wide, activation, nn.MaxPool1d(count * units), copy.deepcopy(head))
        spread = (weights / units).expand(units, count).flatten()
        mean = plain_linear((head.weight[:, :, None] * spread).flatten(1), head.bias)
        return nn.Sequential(wide, activation, mean)

    def _units(self, between: list[nn.Module], first: nn.Module) -> int | None:
        """Count the units of a feature, if only an activation and their pool stand before the head."""
        pools = [layer for layer in between if not isinstance(layer, POINTWISE)]
        if not isinstance(first, nn.Linear) or len(between) != len(pools) + 1 or len(pools) > 1:
            return None
        if not pools:
            return 1
        kind = nn.MaxPool1d if self.pool == "max" else nn.AvgPool1d
        if not isinstance(pools[0], kind) or not pools_units(pools[0], first.out_features):
            return None
        # A maximum may stand before an activation that keeps the order of numbers, or behind it.
        in_order = between[-1] is pools[0] or (self.pool == "max" and isinstance(between[-1], MONOTONE))
        return pool_size(pools[0]) if in_order else None

    def _moves_weights(self, first: nn.Module) -> bool:
        # Transformed weights serve all inputs of a batch, but interpolating them costs more than the inputs.
        return self.input_shape is None and self.range is None and is_plain_linear(first)

    def _pooled(
        self, features: Float[Tensor, "*batch n features"], weights: Float[Tensor, "n ..."]
    ) -> Float[Tensor, "*batch features"]:
        if features.shape[-2] == 1 and self.uniform:
            return features.squeeze(-2)
        # Unlike amax(), max() remembers where the maximum is, which makes its backward pass cheap.
        return features.max(-2).values if self.pool == "max" else self.mean(features, weights)

    def _pooled_inside(
        self,
        module: nn.Module,
        x: Float[Tensor, "*batch dim"],
        weights: Float[Tensor, "n ..."],
        used: Tensor | slice,
    ) -> Float[Tensor, "*batch outputs"]:
        """Call the whole network on every copy; the features are pooled where they enter the head."""
        copies, axes = self.transformed(x, used)
        assert self.head is not None

        def pool(features: Tensor) -> Tensor:
            each = features.flatten(1).unflatten(0, axes)
            return self._pooled(each, weights).flatten(0, -2).unflatten(-1, features.shape[1:])

        return call_pooled(module, module.get_submodule(self.head), copies, pool).unflatten(0, axes[:-1])

    def _features(
        self, body: list[nn.Module], x: Float[Tensor, "*batch dim"], used: Tensor | slice
    ) -> Float[Tensor, "*batch n features"]:
        first = body[0]
        # Call hooked layers normally, so that their hooks fire.
        copies_inputs = not self.only_identity and _is_small_step(x, first)
        if self._moves_weights(first) and not has_hooks(first) and not copies_inputs:
            assert isinstance(first, nn.Linear)
            return self._features_of_moved_weights(first, body[1:], x, used)
        copies, axes = self.transformed(x, used)
        return apply_all(body, copies).flatten(1).unflatten(0, axes)

    def _features_of_moved_weights(
        self, first: nn.Linear, rest: list[nn.Module], x: Float[Tensor, "*batch dim"], used: Tensor | slice
    ) -> Float[Tensor, "*batch n features"]:
        # w·T_g x = (T_gᵀ w)·x: transforming the weights costs one gather, however large the batch.
        moved = self._moved_weights(first.weight, used)
        axes = moved.shape[1:]
        bias = None if first.bias is None else first.bias.expand(axes).flatten()
        hidden = F.linear(x, moved.flatten(1).mT, bias)
        if all(isinstance(layer, POINTWISE) or pools_units(layer, axes[1]) for layer in rest):
            return apply_all(rest, hidden).unflatten(-1, (axes[0], -1))
        copies = hidden.unflatten(-1, axes)
        return apply_all(rest, copies.flatten(0, -2)).flatten(1).unflatten(0, copies.shape[:-1])

    def _moved_weights(
        self, weight: Float[Tensor, "neurons dim"], used: Tensor | slice
    ) -> Float[Tensor, "dim n neurons"]:
        r"""$T_g^\top w$ for every element and neuron; all weights of one input are neighbours in memory."""
        if self.only_identity:
            return weight.mT[:, None]
        elements = self.elements[used]
        if elements.is_floating_point():
            return (weight @ elements.to(weight.dtype)).permute(2, 0, 1)
        if isinstance(used, slice):
            forward, backward = self.get_buffer("forward_indices"), self.get_buffer("backward_indices")
        else:
            forward, backward = gather_indices(elements)
        return MoveWeights.apply(weight, forward, backward, self.signed)  # type: ignore[no-untyped-call]


def count_features(module: nn.Module, head: str | None) -> int:
    """Count the numbers that the head of a network takes.

    Args:
        module: The network.
        head: Name of its head; None for the last layer of a plain sequence.

    Returns:
        The number of features.

    Raises:
        ValueError: If the head is not `nn.Linear`.

    """
    layer = _layers(module)[-1] if head is None else module.get_submodule(head)
    if not isinstance(layer, nn.Linear):
        raise ValueError("one π per feature needs a network that ends with nn.Linear: use posterior='point'.")
    return layer.in_features


def has_hooks(layer: nn.Module) -> bool:
    """Whether a call of the layer would also call a hook."""
    return bool(layer._forward_hooks or layer._forward_pre_hooks)


def _is_small_step(x: Float[Tensor, "*batch dim"], first: nn.Module) -> bool:
    """Whether a training step has fewer inputs than neurons, so that copying inputs costs less than weights."""
    if not torch.is_grad_enabled() or torch.compiler.is_exporting() or x.requires_grad:
        return False
    return isinstance(first, nn.Linear) and x.shape[:-1].numel() < first.out_features


def _layers(module: nn.Module) -> list[nn.Module]:
    assert isinstance(module, nn.Sequential)
    return list(module)


def _name_of_the_head(module: nn.Module, averaging: Averaging, dim: int) -> str | None:
    if is_plain_sequence(module) and averaging.head in (None, str(len(module) - 1)):
        return None
    found = find_head(module, averaging.input_shape or (dim,), averaging.head)
    if found is None:
        raise NoHeadError("'features' needs a layer before which copies can be pooled")
    return found
