r"""Any network, averaged over a mixture of groups, in one of three places.

| placement | formula |
|---|---|
| `weights` | $\sigma(W R_\pi x + b)$ with $R_\pi = \sum_k \pi_k R_k$: only orbit means of the input are kept |
| `features` | $\sum_g \mu_\pi(g)\, \varphi(T_g x)$ before the last layer: nothing is lost |
| `outputs` | $\log \sum_g \mu_\pi(g)\, \mathrm{softmax} f(T_g x)$: any network |
"""

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.choices import Placement, Pool
from invariantnet.nn._moved import Moved, ways
from invariantnet.nn.bayesian import BayesianLinear
from invariantnet.nn.mixture import Mixture
from invariantnet.priors import Dirichlet, as_prior
from invariantnet.symmetries.group import Group, changes_signs, transform
from invariantnet.symmetries.measure import Measure
from invariantnet.symmetries.reynolds import invariant_basis, product, reynolds_operator

SAMPLED = 64
COPIES = 4096
"""Copies of inputs that are made at once, where no gradient is asked for."""
POINTWISE = (nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid, nn.ELU, nn.LeakyReLU, nn.Identity)


class Symmetrized(Mixture):
    """A network averaged over groups; exactly invariant to a group that has all the probability.

    Args:
        module: the network. For `weights` its first layer must be linear; for `features` it is a sequence whose
            last layer is the head; for `outputs` any map from flat inputs to logits.
        groups: one group, to which the network is then invariant; or several, with learned probabilities π.
        placement: where to average.
        pool: `mean`, or `max` over the elements of a single group, with `features`.
        scale: inputs are multiplied by it first; for inputs that are far from order one.
        prior: Dirichlet on π, or its α; by default uniform.
        probabilities: whether outputs are logits, so that `outputs` averages their probabilities; else it
            averages the outputs themselves.
        sampled: so many random elements stand for a group that has more; the network is then only nearly
            invariant, and `exact` is False. `weights` is exact for groups of any size.

    >>> from invariantnet import check_invariance, symmetry
    >>> from invariantnet.nn import mlp
    >>> turns = symmetry("rot90", shape=(8, 8))
    >>> network = Symmetrized(mlp((8, 8), classes=3), [turns])
    >>> check_invariance(network, turns, torch.rand(5, 64)) < 1e-5
    True

    """

    def __init__(
        self,
        module: nn.Module,
        groups: Sequence[Group],
        placement: Placement = "features",
        pool: Pool = "mean",
        *,
        scale: float = 1.0,
        prior: Dirichlet | float | Sequence[float] | None = 1.0,
        probabilities: bool = True,
        sampled: int = SAMPLED,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not groups:
            raise ValueError("no groups to average over: pass at least one.")
        if pool == "max" and (len(groups) > 1 or placement != "features"):
            raise ValueError("the maximum is for a single group and placement 'features': use pool='mean'.")
        self.module, self.placement, self.pool, self.scale = module, placement, pool, scale
        self.averages_probabilities = probabilities
        self.groups = tuple(groups)
        self.names = tuple(g.name for g in groups)
        first = _first_layer(module)
        if _is_plain_linear(first) and first.in_features not in (0, groups[0].dim):  # 0 is not known yet
            raise ValueError(
                f"the first layer takes {first.in_features} inputs, but {groups[0].name} acts on {groups[0].dim} "
                "inputs: make both for the same shape."
            )
        self.exact = placement == "weights" or all(g.can_list_elements and g.order <= sampled for g in groups)
        if placement == "weights":
            _first_linear(module)
            for k, group in enumerate(groups):
                if group.is_matrix_group:
                    self.register_buffer(f"R{k}", reynolds_operator(group), persistent=False)
                else:
                    self.register_buffer(f"V{k}", invariant_basis(group), persistent=False)
        else:
            measure = Measure.of(groups, sampled=sampled, seed=seed)
            self.register_buffer("elements", measure.elements, persistent=False)
            self.register_buffer("haar", measure.haar, persistent=False)
            # Facts about the elements that no graph of a forward pass needs to find out again.
            self.signed = changes_signs(measure.elements)
            self.uniform = len(groups) == 1 and bool((measure.haar == measure.haar[0]).all())
            is_index = not measure.elements.is_floating_point()
            self.alone = is_index and torch.equal(measure.elements, torch.arange(groups[0].dim)[None])
            self.moves_weights = is_index and placement == "features" and not self.alone
            if self.moves_weights:
                there, back = ways(measure.elements)
                self.register_buffer("there", there, persistent=False)
                self.register_buffer("back", back, persistent=False)
        if len(groups) > 1:
            self.prior = as_prior(prior, len(groups))
            self.logits = nn.Parameter(torch.zeros(len(groups)))
        else:
            self.register_buffer("logits", torch.zeros(1), persistent=False)

    def forward(self, x: Float[Tensor, "*batch dim"], pi: Tensor | None = None) -> Float[Tensor, "*batch outputs"]:
        """The averaged network; `pi` replaces the learned probabilities, with a row per feature if need be."""
        pi = self._estimate() if pi is None else pi
        if self._too_many_copies(x):
            return torch.cat(
                [self(part, pi) for part in x.split(max(1, COPIES // len(self.get_buffer("elements"))))]
            )
        x = x if self.scale == 1 else x * self.scale
        if self.placement == "weights":
            return self.module(self._mean_input(x, pi))
        weights, kept = self._weighted_elements(pi)
        if self.placement == "outputs":
            elements = self.get_buffer("elements")[kept]
            outputs = self.module(transform(x, elements, self.signed).flatten(0, -2))
            copies = outputs.unflatten(0, (*x.shape[:-1], len(elements)))
            if not self.averages_probabilities:
                return self._mean(copies, weights)
            return torch.logsumexp(copies.log_softmax(-1) + weights.log()[:, None], dim=-2)
        *body, head = self._layers()
        features = self._features(body, x, kept)
        return head(features.amax(-2) if self.pool == "max" else self._mean(features, weights))

    @torch.no_grad()
    def fold(self) -> nn.Module:
        """Plain torch layers with the same outputs, for `weights`, and for `features` with one hidden layer."""
        pi = self._estimate()
        if self.placement == "weights":
            first = _first_linear(self.module)
            if isinstance(first, nn.Linear):
                weight = first.weight
                identity = torch.eye(weight.shape[1], device=weight.device, dtype=weight.dtype)
                plain = _linear(self.scale * weight @ self._mean_input(identity, pi).mT, first.bias)
                if first is self.module:
                    return plain
                folded = copy.deepcopy(self.module)
                assert isinstance(folded, nn.Sequential)
                folded[0] = plain
                return folded
        elif self.placement == "features" and len(layers := self._layers()) == 3:
            wide, activation, head = layers
            if _is_plain_linear(wide) and isinstance(head, nn.Linear) and isinstance(activation, POINTWISE):
                return self._fold_features(wide, activation, head, *self._weighted_elements(pi))
        raise ValueError("only 'weights', and 'features' with one hidden layer, fold into plain layers.")

    def _fold_features(
        self, first: nn.Linear, activation: nn.Module, head: nn.Linear, weights: Tensor, kept: Any
    ) -> nn.Sequential:
        # Neuron by neuron, the copies of one side by side, so that a maximum is a plain pooling layer.
        copies = self._moved_weights(first.weight, kept)
        count, moved = copies.shape[1], copies.permute(2, 1, 0).flatten(0, 1)
        wide = _linear(self.scale * moved, None if first.bias is None else first.bias.repeat_interleave(count))
        activation = copy.deepcopy(activation)
        if self.pool == "max":
            return nn.Sequential(wide, activation, nn.MaxPool1d(count), copy.deepcopy(head))
        return nn.Sequential(wide, activation, _linear((head.weight[:, :, None] * weights).flatten(1), head.bias))

    def _estimate(self) -> Tensor:
        return F.softmax(self.logits, dim=-1) if self.learns_scheme else torch.ones_like(self.logits)

    def _too_many_copies(self, x: Tensor) -> bool:
        """Whether the copies of a batch should be made a few inputs at a time: memory stays bounded."""
        if torch.is_grad_enabled() or torch.compiler.is_exporting() or x.ndim != 2 or self.placement == "weights":
            return False
        copied = self.placement == "outputs" or not _is_plain_linear(self._layers()[0])
        return copied and len(x) > 1 and len(x) * len(self.get_buffer("elements")) > COPIES

    def _weighted_elements(self, pi: Tensor) -> tuple[Tensor, Any]:
        """Weights of the elements that have any, and which they are: a one-hot π pays only for its own group."""
        haar = self.get_buffer("haar")
        if not self.learns_scheme:
            return haar[:, 0].to(pi), slice(None)
        weights = haar.to(pi) @ pi.mT if pi.ndim == 2 else haar.to(pi) @ pi
        kept = (weights.detach() > 0).reshape(len(weights), -1).any(1)
        return (weights, slice(None)) if bool(kept.all()) else (weights[kept], kept)

    def _features(self, body: list[nn.Module], x: Tensor, kept: Any) -> Float[Tensor, "*batch n features"]:
        first = body[0]
        # Who has hooked the layer wants to see it called.
        if _is_plain_linear(first) and not (first._forward_hooks or first._forward_pre_hooks):
            # w·T_g x = (T_gᵀ w)·x: moving the weights costs one gather, however large the batch.
            moved = self._moved_weights(first.weight, kept)
            copied = moved.shape[1:]
            bias = None if first.bias is None else first.bias.expand(copied).flatten()
            hidden = F.linear(x, moved.flatten(1).mT, bias)
            if all(isinstance(m, POINTWISE) for m in body[1:]):
                return _through(body[1:], hidden).unflatten(-1, copied)
            copies = hidden.unflatten(-1, copied)
            return _through(body[1:], copies.flatten(0, -2)).flatten(1).unflatten(0, copies.shape[:-1])
        copies = transform(x, self.get_buffer("elements")[kept], self.signed)
        return _through(body, copies.flatten(0, -2)).flatten(1).unflatten(0, copies.shape[:-1])

    def _mean(
        self, copies: Float[Tensor, "*batch n features"], weights: Tensor
    ) -> Float[Tensor, "*batch features"]:
        if self.uniform:
            return copies.mean(-2)
        return torch.einsum("gf,...gf->...f" if weights.ndim == 2 else "g,...gf->...f", weights, copies)

    def _moved_weights(self, weight: Float[Tensor, "neurons dim"], kept: Any) -> Float[Tensor, "dim n neurons"]:
        r"""$T_g^\top w$ for every element and neuron, an input's weights side by side: whole rows are moved."""
        if self.alone:
            return weight.mT[:, None]
        elements = self.get_buffer("elements")[kept]
        if elements.is_floating_point():
            return (weight @ elements.to(weight.dtype)).permute(2, 0, 1)
        whole = isinstance(kept, slice)
        there, back = (self.get_buffer("there"), self.get_buffer("back")) if whole else ways(elements)
        return Moved.apply(weight, there, back, self.signed)  # type: ignore[no-untyped-call]

    @property
    def features(self) -> int:
        """How many numbers are averaged over the groups, with placement `features`."""
        head = self._layers()[-1]
        if not isinstance(head, nn.Linear):
            raise ValueError("a scheme for each feature needs a network that ends with nn.Linear.")
        return head.in_features

    def _layers(self) -> list[nn.Module]:
        module = self.module
        # Whoever has a forward pass of his own would not see it used.
        if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward and len(module) > 1:
            return list(module)
        raise ValueError(
            "'features' needs a sequence of layers that ends with the head: use nn.Sequential, or 'outputs'."
        )

    def _mean_input(self, x: Tensor, pi: Tensor) -> Tensor:
        r"""$R_\pi x = \sum_k \pi_k R_k x$."""
        flat = x.reshape(-1, x.shape[-1])
        mean = torch.zeros_like(flat)
        for k, (group, p) in enumerate(zip(self.groups, pi, strict=True)):
            if group.is_matrix_group:
                mean = mean + p * (flat @ self.get_buffer(f"R{k}").to(x.dtype).mT)
            else:
                V = self.get_buffer(f"V{k}")
                mean = mean + p * product(V.mT, product(V, flat.mT)).mT
        return mean.reshape(x.shape)


def transpose_moved_weights(network: nn.Module) -> list[Tensor]:
    """Lay weights in memory as they are moved: so they, and their gradients, are not copied at every step.

    They keep their values and shapes. Returned are those that were laid anew, to be made contiguous again.
    """
    made = [p for p in network.parameters() if not nn.parameter.is_lazy(p)]
    places = Counter(p.untyped_storage().data_ptr() for p in made)
    # Whoever shares memory with others would leave them with the old values.
    alone = {id(p) for p in made if places[p.untyped_storage().data_ptr()] == 1}
    found = []
    for m in network.modules():
        if isinstance(m, Symmetrized) and m.placement == "features" and m.moves_weights:
            first = _first_layer(m.module)
            if _is_plain_linear(first) and id(first.weight) in alone:
                first.weight.data = first.weight.data.mT.contiguous().mT
                found.append(first.weight)
    return found


def _through(layers: list[nn.Module], x: Tensor) -> Tensor:
    # A module made of them would cost more, at every step, than small layers do.
    for layer in layers:
        x = layer(x)
    return x


def _linear(weight: Float[Tensor, "neurons inputs"], bias: Tensor | None) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None).to(weight)
    linear.weight.copy_(weight)
    if bias is not None:
        linear.bias.copy_(bias)
    return linear


def _first_layer(module: nn.Module) -> nn.Module:
    return module[0] if isinstance(module, nn.Sequential) and len(module) else module


def _is_plain_linear(layer: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether its weights are all there is to know: a subclass may compute something else."""
    return isinstance(layer, nn.Linear) and type(layer).forward is nn.Linear.forward


def _first_linear(module: nn.Module) -> nn.Linear | BayesianLinear:
    first = _first_layer(module)
    if not isinstance(first, nn.Linear | BayesianLinear):
        raise ValueError("'weights' needs a network whose first layer is nn.Linear: use 'features' or 'outputs'.")
    return first
