r"""Any network, averaged over a mixture of groups, in one of three places.

| placement | formula |
|---|---|
| `weights` | $\sigma(W R_\pi x + b)$ with $R_\pi = \sum_k \pi_k R_k$: only orbit means of the input are kept |
| `features` | $\sum_g \mu_\pi(g)\, \varphi(T_g x)$ before the last layer: nothing is lost |
| `outputs` | $\log \sum_g \mu_\pi(g)\, \mathrm{softmax} f(T_g x)$: any network |
"""

import copy
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.groups import Group, transform
from invariantnet.measures import Measure
from invariantnet.nn.scheme import Scheme
from invariantnet.priors import Dirichlet, as_prior
from invariantnet.reynolds import invariant_basis, reynolds_operator

Placement = Literal["weights", "features", "outputs"]
Pool = Literal["mean", "max"]
SAMPLED = 64
POINTWISE = (nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid, nn.ELU, nn.LeakyReLU, nn.Identity)


class Symmetrized(Scheme):
    """A network averaged over groups; exactly invariant to a group that has all the probability.

    Args:
        module: the network. For `weights` its first layer must be linear; for `features` it is a sequence whose
            last layer is the head; for `outputs` any map from flat inputs to logits.
        groups: one group, to which the network is then invariant; or several, with learned probabilities π.
        placement: where to average.
        pool: `mean`, or `max` over the elements of a single group, with `features`.
        prior: Dirichlet on π, or its α; by default uniform.
        sampled: so many random elements stand for a group that has more; the network is then only nearly
            invariant, and `exact` is False. `weights` is exact for groups of any size.

    >>> from invariantnet import check_invariance, group
    >>> from invariantnet.nn import mlp
    >>> turns = group("rot90", shape=(8, 8))
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
        prior: Dirichlet | float | Sequence[float] | None = 1.0,
        sampled: int = SAMPLED,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not groups:
            raise ValueError("no groups to average over: pass at least one.")
        if pool == "max" and (len(groups) > 1 or placement != "features"):
            raise ValueError("the maximum is for a single group and placement 'features': use pool='mean'.")
        self.module, self.placement, self.pool = module, placement, pool
        self.groups = tuple(groups)
        self.names = tuple(g.name for g in groups)
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
        if len(groups) > 1:
            self.prior = as_prior(prior, len(groups))
            self.logits = nn.Parameter(torch.zeros(len(groups)))
        else:
            self.register_buffer("logits", torch.zeros(1), persistent=False)

    def forward(self, x: Float[Tensor, "*batch dim"], pi: Tensor | None = None) -> Float[Tensor, "*batch outputs"]:
        """The averaged network; `pi` replaces the learned probabilities."""
        pi = F.softmax(self.logits, dim=-1) if pi is None else pi
        if self.placement == "weights":
            return self.module(self._mean_input(x, pi))
        weights, elements = self._weighted_elements(pi)
        if self.placement == "outputs":
            copies = self.module(transform(x, elements).flatten(0, -2)).log_softmax(-1)
            log_copies = copies.unflatten(0, (*x.shape[:-1], len(elements)))
            return torch.logsumexp(log_copies + weights.log()[:, None], dim=-2)
        body, head = self._split()
        features = self._features(body, x, elements)
        pooled = features.amax(-2) if self.pool == "max" else torch.einsum("g,...gf->...f", weights, features)
        return head(pooled)

    @torch.no_grad()
    def fold(self) -> nn.Module:
        """Plain torch layers with the same outputs, for `weights`, and for `features` with one hidden layer."""
        pi = F.softmax(self.logits, dim=-1)
        if self.placement == "weights":
            folded = copy.deepcopy(self.module)
            weight = _first_linear(folded).weight
            identity = torch.eye(weight.shape[1], device=weight.device, dtype=weight.dtype)
            weight.copy_(weight @ self._mean_input(identity, pi).mT)
            return folded
        layers = list(self.module) if isinstance(self.module, nn.Sequential) else []
        if self.placement == "features" and len(layers) == 3:
            first, activation, head = layers
            if isinstance(first, nn.Linear) and isinstance(head, nn.Linear):
                return self._fold_features(first, activation, head, *self._weighted_elements(pi))
        raise ValueError("only 'weights', and 'features' with one hidden layer, fold into plain layers.")

    def _fold_features(
        self, first: nn.Linear, activation: nn.Module, head: nn.Linear, weights: Tensor, elements: Tensor
    ) -> nn.Sequential:
        # Neuron by neuron, the copies of one side by side, so that a maximum is a plain pooling layer.
        moved = _moved_weights(first.weight, elements).flatten(0, 1)
        wide = nn.Linear(first.in_features, len(moved)).to(moved)
        wide.weight.copy_(moved)
        wide.bias.copy_(first.bias.repeat_interleave(len(elements)))
        activation = copy.deepcopy(activation)
        if self.pool == "max":
            return nn.Sequential(wide, activation, nn.MaxPool1d(len(elements)), copy.deepcopy(head))
        out = nn.Linear(len(moved), head.out_features).to(moved)
        out.weight.copy_((head.weight[:, :, None] * weights).flatten(1))
        out.bias.copy_(head.bias)
        return nn.Sequential(wide, activation, out)

    def _weighted_elements(self, pi: Tensor) -> tuple[Tensor, Tensor]:
        """Elements that have weight, and their weights: a one-hot π pays only for its own group."""
        haar, elements = self.get_buffer("haar"), self.get_buffer("elements")
        if not self.learns_scheme:
            return haar[:, 0].to(pi), elements
        weights = haar.to(pi) @ pi
        kept = weights.detach() > 0
        return (weights, elements) if bool(kept.all()) else (weights[kept], elements[kept])

    def _features(self, body: nn.Sequential, x: Tensor, elements: Tensor) -> Float[Tensor, "*batch n features"]:
        first = body[0]
        if isinstance(first, nn.Linear):
            # w·T_g x = (T_gᵀ w)·x: moving the weights costs one gather, however large the batch.
            moved = _moved_weights(first.weight, elements)
            hidden = F.linear(x, moved.flatten(0, 1), first.bias.repeat_interleave(len(elements)))
            rest = nn.Sequential(*list(body)[1:])
            if all(isinstance(m, POINTWISE) for m in rest):
                return rest(hidden).unflatten(-1, moved.shape[:2]).transpose(-1, -2)
            return rest(hidden.unflatten(-1, moved.shape[:2]).transpose(-1, -2))
        features = body(transform(x, elements).flatten(0, -2))
        return features.flatten(1).unflatten(0, (*x.shape[:-1], len(elements)))

    def _split(self) -> tuple[nn.Sequential, nn.Module]:
        if not isinstance(self.module, nn.Sequential) or len(self.module) < 2:
            raise ValueError(
                "'features' needs a sequence of layers that ends with the head: use nn.Sequential, or 'outputs'."
            )
        layers = list(self.module)
        return nn.Sequential(*layers[:-1]), layers[-1]

    def _mean_input(self, x: Tensor, pi: Tensor) -> Tensor:
        r"""$R_\pi x = \sum_k \pi_k R_k x$."""
        flat = x.reshape(-1, x.shape[-1])
        mean = torch.zeros_like(flat)
        for k, (group, p) in enumerate(zip(self.groups, pi, strict=True)):
            if group.is_matrix_group:
                mean = mean + p * (flat @ self.get_buffer(f"R{k}").to(x.dtype).mT)
            else:
                V = self.get_buffer(f"V{k}").to(x.dtype)
                mean = mean + p * (V.mT @ (V @ flat.mT)).mT
        return mean.reshape(x.shape)


def _first_linear(module: nn.Module) -> nn.Linear:
    first = module[0] if isinstance(module, nn.Sequential) else module
    if not isinstance(first, nn.Linear):
        raise ValueError("'weights' needs a network whose first layer is nn.Linear: use 'features' or 'outputs'.")
    return first


def _moved_weights(weight: Float[Tensor, "neurons dim"], elements: Tensor) -> Float[Tensor, "neurons n dim"]:
    r"""$T_g^\top w$ for every neuron and element."""
    if elements.is_floating_point():
        return (weight @ elements.to(weight.dtype)).transpose(0, 1)
    return _Moved.apply(weight, elements)  # type: ignore[no-untyped-call]


class _Moved(torch.autograd.Function):
    """One gather by the inverse elements; the gradient gathers by the elements, so that nothing is scattered."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, elements: Tensor) -> Tensor:
        ctx.save_for_backward(elements)
        return _gather(weight, _inverse(elements).flatten()).unflatten(1, elements.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (elements,) = ctx.saved_tensors
        total = torch.zeros_like(grad[:, 0])
        for g, element in enumerate(elements):
            total += _gather(grad[:, g], element)
        return total, None


def _gather(x: Float[Tensor, "rows dim"], index: Tensor) -> Float[Tensor, "rows n"]:
    if bool((index >= x.shape[1]).any()):
        x = torch.cat([x, -x], dim=1)
    return x.index_select(1, index)


def _inverse(elements: Tensor) -> Tensor:
    """The transpose of an index array is its inverse; a sign stays with the entry it multiplies."""
    dim = elements.shape[-1]
    place = torch.arange(dim, device=elements.device).expand_as(elements)
    signed = torch.where(elements < dim, place, place + dim)
    return torch.empty_like(elements).scatter_(1, elements % dim, signed)
