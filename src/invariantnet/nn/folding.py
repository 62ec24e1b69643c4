"""Trained networks as plain layers."""

from torch import nn

from invariantnet.nn.invariant import InvariantLinear
from invariantnet.nn.symmetrized import Symmetrized


def folded(network: nn.Module) -> nn.Module:
    """Fold a network into plain layers that compute the same.

    Args:
        network: Any trained network.

    Returns:
        Plain layers where that is possible, else the network itself.
    """
    if isinstance(network, nn.Sequential) and isinstance(network[0], InvariantLinear):
        return nn.Sequential(network[0].fold(), *list(network)[1:])
    try:
        return network.fold() if isinstance(network, Symmetrized) else network
    except ValueError:
        return network


def is_exact(network: nn.Module) -> bool:
    """Tell whether a network is invariant up to rounding.

    A mixture of weight-sharing schemes is not, nor is an average over sampled elements of a group.

    Args:
        network: Any trained network.

    Returns:
        True if it is.
    """
    layers = [m for m in network.modules() if isinstance(m, InvariantLinear)]
    return all(bool(m.probabilities.max() == 1) for m in layers) and bool(getattr(network, "exact", True))
