"""Networks of one architecture, computed side by side as one network."""

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.nn.placements._layers import is_plain_linear


class LinearSideBySide(nn.Module):
    r"""$y_k = W_k x_k + b_k$ for several layers at once.

    Args:
        layers: Layers of one shape.
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().mT for layer in layers]))
        biases = [layer.bias.detach()[None] for layer in layers if layer.bias is not None]
        self.bias = nn.Parameter(torch.stack(biases)) if biases else None

    def forward(self, x: Float[Tensor, "rows *axes inputs"]) -> Float[Tensor, "rows *axes outputs"]:
        """Apply each layer to its share of the rows: the first rows belong to the first layer."""
        own = x.reshape(len(self.weight), -1, x.shape[-1])
        y = own @ self.weight if self.bias is None else torch.baddbmm(self.bias, own, self.weight)
        return y.reshape(*x.shape[:-1], -1)

    @torch.no_grad()
    def copy_to(self, layers: Sequence[nn.Linear]) -> None:
        """Write the weights into plain layers.

        Args:
            layers: As many layers as there are here.
        """
        for k, layer in enumerate(layers):
            layer.weight.copy_(self.weight[k].mT)
            if self.bias is not None:
                layer.bias.copy_(self.bias[k, 0])


class SideBySide(nn.Module):
    """Networks of one architecture, as one network.

    Small networks spend most of their time between computations; together, they spend it once. Every operation but
    linear layers must treat rows alike, because all networks share it.

    Args:
        networks: Networks that differ in nothing but their weights.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.count = len(networks)
        self.network = copy.deepcopy(networks[0])
        self.names = [name for name, layer in self.network.named_modules() if isinstance(layer, nn.Linear)]
        for name in self.names:
            parent, _, last = name.rpartition(".")
            setattr(self.network.get_submodule(parent), last, LinearSideBySide(_layers(networks, name)))

    @classmethod
    def of(cls, networks: Sequence[nn.Module]) -> "SideBySide | None":
        """Combine networks, if all their weights are those of plain linear layers of equal shapes.

        Args:
            networks: Networks of one architecture.

        Returns:
            The joint network; None if there is one network only, or if one has other weights.
        """
        plans = [_shapes(network) for network in networks]
        possible = len(networks) > 1 and plans[0] is not None and all(plan == plans[0] for plan in plans)
        return cls(networks) if possible else None

    def forward(self, x: Float[Tensor, "rows networks dim"]) -> Float[Tensor, "rows networks outputs"]:
        """Compute every network on its own inputs."""
        outputs = self.network(x.transpose(0, 1).flatten(0, 1))
        return outputs.unflatten(0, (self.count, len(x))).transpose(0, 1)

    def copy_to(self, networks: Sequence[nn.Module]) -> None:
        """Write the weights into the networks that this one was made of.

        Args:
            networks: These networks.
        """
        for name in self.names:
            layer = self.network.get_submodule(name)
            assert isinstance(layer, LinearSideBySide)
            layer.copy_to(_layers(networks, name))


def _shapes(network: nn.Module) -> list[tuple[str, torch.Size]] | None:
    """Names and shapes of all weights; None if some do not belong to plain linear layers of their own."""
    linear = [m for m in network.modules() if is_plain_linear(m)]
    parameters = dict(network.named_parameters(remove_duplicate=False))
    if len(parameters) != sum(len(list(layer.parameters(recurse=False))) for layer in linear):
        return None
    return [(name, p.shape) for name, p in parameters.items()]


def _layers(networks: Sequence[nn.Module], name: str) -> list[nn.Linear]:
    layers = [network.get_submodule(name) for network in networks]
    return [layer for layer in layers if isinstance(layer, nn.Linear)]
