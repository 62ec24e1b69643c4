"""Several networks of one architecture that predict together: their disagreement is what they do not know."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call

from invariantnet.likelihoods import Likelihood

PREFIX = "drawn "
"""Begins the names of the stored weights that differ between networks; part of the format of model files."""


class Ensemble(nn.Module):
    """Networks that differ in some of their weights, and predict with the average of their predictions.

    The weights come from networks that were trained apart, or are draws from a posterior. If every network is
    invariant, so is the whole predictive distribution, not only its mean.

    Args:
        network: The architecture, and the weights that all networks share.
        weights: The weights that differ, by their names in the network; the first axis counts the networks.
        likelihood: Says how predictions are averaged.

    >>> from invariantnet.likelihoods import Categorical
    >>> network = nn.Linear(2, 3)
    >>> ensemble = Ensemble(network, {"bias": torch.randn(5, 3)}, Categorical())
    >>> ensemble.predict_each(torch.rand(4, 2)).shape, ensemble(torch.rand(4, 2)).shape
    (torch.Size([5, 4, 3]), torch.Size([4, 3]))
    """

    def __init__(
        self, network: nn.Module, weights: Mapping[str, Shaped[Tensor, "networks ..."]], likelihood: Likelihood
    ) -> None:
        super().__init__()
        self.network = network
        self.likelihood = likelihood
        self.names = tuple(weights)
        for name, values in weights.items():
            self.register_buffer(_as_buffer(name), values)

    @classmethod
    def from_networks(cls, networks: Sequence[nn.Module], likelihood: Likelihood) -> "Ensemble":
        """Combine networks that were trained apart.

        Args:
            networks: Networks of one architecture.
            likelihood: Says how predictions are averaged.

        Returns:
            The ensemble; it reuses the first network.
        """
        states = [network.state_dict() for network in networks]
        # A layer that is used twice has two names in the state; one of them is enough.
        unique = {name for name, _ in (*networks[0].named_parameters(), *networks[0].named_buffers())}
        differing = [name for name, value in states[0].items() if value.is_floating_point() and name in unique]
        weights = {name: torch.stack([state[name] for state in states]) for name in differing}
        return cls(networks[0], weights, likelihood)

    @classmethod
    def for_state(cls, network: nn.Module, state: Mapping[str, Tensor], likelihood: Likelihood) -> nn.Module:
        """Make a module that can load a stored state.

        Args:
            network: The architecture.
            state: What `state_dict` of an ensemble, or of the network alone, once returned.
            likelihood: Says how predictions are averaged.

        Returns:
            An ensemble if the state is one, otherwise the network itself; the state is not loaded yet.
        """
        # In the default type, whatever the stored one: the weights are multiplied with those of the network.
        stored = {name: torch.empty(value.shape) for name, value in state.items() if name.startswith(PREFIX)}
        if not stored:
            return network
        return cls(network, {_from_buffer(name): value for name, value in stored.items()}, likelihood)

    @property
    def exact(self) -> bool:
        """Whether the network is invariant up to rounding."""
        return bool(getattr(self.network, "exact", True))

    def predict_each(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "networks n outputs"]:
        """Compute the normalised outputs of every network.

        Args:
            x: Flat inputs.

        Returns:
            One row per network and input.
        """
        differing = {name: self.get_buffer(_as_buffer(name)) for name in self.names}
        count = len(next(iter(differing.values())))
        states = [{name: values[i] for name, values in differing.items()} for i in range(count)]
        return torch.stack(
            [self.likelihood.normalised(functional_call(self.network, state, (x,))) for state in states]
        )

    def forward(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n outputs"]:
        """Average the predictions of all networks."""
        return self.likelihood.combined(self.predict_each(x))


def _as_buffer(name: str) -> str:
    # The name of a buffer must not contain dots.
    return PREFIX + name.replace(".", "/")


def _from_buffer(name: str) -> str:
    return name.removeprefix(PREFIX).replace("/", ".")
