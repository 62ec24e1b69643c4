"""One network and several draws of its weights: predictions that know what they do not know."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call

from invariantnet.likelihoods import Likelihood

PREFIX = "drawn "


class Draws(nn.Module):
    """Predicts with the average over draws of a network's weights.

    Each draw of an invariant network is invariant, so the whole predictive distribution is, not only its mean.

    Args:
        network: the architecture, and the weights that are the same in every draw.
        weights: by their names in the network, those that differ; the first axis counts the draws.
        likelihood: says how predictions are averaged.

    >>> from invariantnet.likelihoods import Categorical
    >>> network = nn.Linear(2, 3)
    >>> draws = Draws(network, {"bias": torch.randn(5, 3)}, Categorical())
    >>> draws.each(torch.rand(4, 2)).shape, draws(torch.rand(4, 2)).shape
    (torch.Size([5, 4, 3]), torch.Size([4, 3]))

    """

    def __init__(
        self, network: nn.Module, weights: Mapping[str, Shaped[Tensor, "draws ..."]], likelihood: Likelihood
    ) -> None:
        super().__init__()
        self.network = network
        self.likelihood = likelihood
        self.names = tuple(weights)
        for name, values in weights.items():
            self.register_buffer(_as_buffer(name), values)

    @classmethod
    def of_networks(cls, networks: Sequence[nn.Module], likelihood: Likelihood) -> "Draws":
        """An ensemble: networks of one architecture, trained apart."""
        states = [network.state_dict() for network in networks]
        # A layer that is used twice has two names; one of them is enough.
        once = {name for name, _ in (*networks[0].named_parameters(), *networks[0].named_buffers())}
        differ = [name for name, value in states[0].items() if value.is_floating_point() and name in once]
        weights = {name: torch.stack([state[name] for state in states]) for name in differ}
        return cls(networks[0], weights, likelihood)

    @classmethod
    def like(cls, network: nn.Module, state: Mapping[str, Tensor], likelihood: Likelihood) -> nn.Module:
        """A module for a stored state: draws if it has any, else the network itself."""
        # In the type of the network, whatever the stored one: both have to be multiplied.
        stored = {name: torch.empty(value.shape) for name, value in state.items() if name.startswith(PREFIX)}
        if not stored:
            return network
        names = {name.removeprefix(PREFIX).replace("/", "."): value for name, value in stored.items()}
        return cls(network, names, likelihood)

    @property
    def exact(self) -> bool:
        """Whether the network is exactly invariant."""
        return bool(getattr(self.network, "exact", True))

    def each(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "draws n outputs"]:
        """The normalised outputs of every draw."""
        drawn = {name: self.get_buffer(_as_buffer(name)) for name in self.names}
        count = len(next(iter(drawn.values())))
        return torch.stack(
            [
                self.likelihood.normalised(
                    functional_call(self.network, {name: values[s] for name, values in drawn.items()}, (x,))
                )
                for s in range(count)
            ]
        )

    def forward(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n outputs"]:
        """The average prediction."""
        return self.likelihood.combined(self.each(x))


def _as_buffer(name: str) -> str:
    # A buffer's name must not have dots.
    return PREFIX + name.replace(".", "/")
