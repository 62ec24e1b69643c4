"""Average the weights of the first layer, by averaging its inputs."""

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.nn.bayesian import BayesianLinear
from invariantnet.nn.placements._layers import check_first_layer, first_layer, in_own_units, plain_linear
from invariantnet.nn.placements.base import Averaging, BasePlacement
from invariantnet.nn.standardize import Standardize
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.ranges import AnySymmetry
from invariantnet.symmetries.reynolds import invariant_basis, product, reynolds_operator


class Weights(BasePlacement):
    r"""$\sigma(W R_\pi x + b)$ with $R_\pi = \sum_k \pi_k R_k$: only orbit means of the input are kept.

    The network takes flat inputs, and its first layer is linear, after an `nn.Flatten` if it has one. Exact for
    groups of any size.
    """

    def __init__(self, module: nn.Module, symmetries: Sequence[AnySymmetry], averaging: Averaging) -> None:
        super().__init__(module, symmetries, averaging)
        groups = [s for s in symmetries if isinstance(s, Group)]
        if len(groups) < len(symmetries):
            raise ValueError(
                "'weights' averages inputs over groups, not over ranges: use 'features' or 'outputs'."
            )
        check_first_layer(module, symmetries[0], None)
        if not isinstance(first_layer(module), nn.Linear | BayesianLinear):
            raise ValueError(
                "'weights' needs a network whose first layer is nn.Linear: use 'features' or 'outputs'."
            )
        self.operators = nn.ModuleList(_ReynoldsOperator(group) for group in groups)

    def average(
        self, module: nn.Module, x: Float[Tensor, "*batch dim"], pi: Float[Tensor, "..."]
    ) -> Float[Tensor, "*batch outputs"]:
        """Call the network on the averaged inputs."""
        return module(self._mean_input(x, pi))

    def prepare(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n prepared"]:
        """Average the inputs."""
        return self._mean_input(x, x.new_ones(1))

    def finish(self, module: nn.Module, z: Float[Tensor, "n prepared"]) -> Float[Tensor, "n outputs"]:
        """Call the network on inputs that are averaged already."""
        return module(z)

    def fold(self, module: nn.Module, pi: Float[Tensor, " symmetries"], inputs: Standardize | None) -> nn.Module:
        """Multiply the weights of the first layer by the Reynolds operator."""
        first = first_layer(module)
        if not isinstance(first, nn.Linear):
            return super().fold(module, pi, inputs)
        weight = first.weight
        identity = torch.eye(weight.shape[1], device=weight.device, dtype=weight.dtype)
        plain = plain_linear(*in_own_units(weight @ self._mean_input(identity, pi).mT, first.bias, inputs))
        if first is module:
            return plain
        folded = copy.deepcopy(module)
        assert isinstance(folded, nn.Sequential)
        folded[list(folded).index(first_layer(folded))] = plain
        return folded

    def _mean_input(self, x: Float[Tensor, "*batch dim"], pi: Tensor) -> Float[Tensor, "*batch dim"]:
        r"""$R_\pi x = \sum_k \pi_k R_k x$."""
        flat = x.reshape(-1, x.shape[-1])
        mean = torch.zeros_like(flat)
        for operator, p in zip(self.operators, pi, strict=True):
            mean = mean + p * operator(flat)
        return mean.reshape(x.shape)


class _ReynoldsOperator(nn.Module):
    r"""$x \mapsto R x$: through the invariant basis of a permutation group, or as a matrix."""

    def __init__(self, group: Group) -> None:
        super().__init__()
        self.dense = group.is_matrix_group
        matrix = reynolds_operator(group) if self.dense else invariant_basis(group)
        self.register_buffer("matrix", matrix, persistent=False)

    def forward(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n dim"]:
        matrix = self.get_buffer("matrix")
        if self.dense:
            return x @ matrix.to(x.dtype).mT
        return product(matrix.mT, product(matrix, x.mT)).mT
