"""What every module with a distribution over symmetries has: π, its prior, its estimate."""

import copy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.priors import Dirichlet


class Mixture(nn.Module):
    """A module with one probability π per symmetry, learned as logits or given."""

    names: tuple[str, ...]
    """Names of the symmetries, in the order of π."""
    logits: Tensor
    prior: Dirichlet
    prior_weight: float = 1.0
    """Factor of the log prior against the log likelihood of the whole data set."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Mixture":
        # torch cannot deep-copy sparse tensors, such as the bases of groups, so clone them first.
        memo |= {id(b): b.clone() for b in self.buffers() if b.layout == torch.sparse_csr}
        twin = memo[id(self)] = type(self).__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    @property
    def learns_pi(self) -> bool:
        """Whether π is learned rather than given."""
        return isinstance(self.logits, nn.Parameter)

    @property
    def log_probabilities(self) -> Float[Tensor, " symmetries"]:
        """Logarithm of the estimate of π."""
        return F.log_softmax(self.logits, dim=-1)

    @property
    def probabilities(self) -> Float[Tensor, " symmetries"]:
        """Estimate of π, in the order of `names`."""
        return F.softmax(self.logits, dim=-1).detach()

    def log_prior(self) -> Float[Tensor, ""]:
        r"""Compute $\log p(\pi \mid \alpha)$ times its weight; 0 for a given π."""
        if not self.learns_pi:
            return self.logits.new_zeros(())
        density = self.prior.log_density(self.log_probabilities)
        return density if self.prior_weight == 1 else self.prior_weight * density


def make_buffers_dense(network: nn.Module) -> nn.Module:
    """Replace the sparse buffers of a network by dense ones, for programs without sparse products, such as ONNX.

    Args:
        network: The network; it is changed in place.

    Returns:
        The same network.
    """
    for module in network.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.layout == torch.sparse_csr:
                module.register_buffer(name, buffer.to_dense(), persistent=False)
    return network
