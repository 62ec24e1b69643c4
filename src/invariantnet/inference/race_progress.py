"""How far a race is."""

from collections.abc import Callable, Collection

from invariantnet._system.progress import Step
from invariantnet.inference.cache import NetworkKey

FIRST_RUN = 0.8
"""Share of the progress that the networks asked for take, where an open verdict may get more."""


class RaceProgress:
    """Tells after every network how much of a race is done; the share never falls.

    Args:
        n_networks: Networks per hypothesis that were asked for.
        most_networks: Networks per hypothesis that an open verdict may get.
        blocks: Number of blocks.
        on_network: Called after every network.
    """

    def __init__(
        self, n_networks: int, most_networks: int, blocks: int, on_network: Callable[[Step], None]
    ) -> None:
        self.n_networks, self.most_networks, self.blocks = n_networks, most_networks, blocks
        self.on_network = on_network
        self.start(n_networks, {})

    def start(self, networks: int, missing: dict[NetworkKey, float]) -> None:
        """Begin a run with this many networks per hypothesis.

        Args:
            networks: Networks per hypothesis.
            missing: Networks that are not trained yet, and what each costs.
        """
        self.networks, self.missing, self.planned = networks, dict(missing), sum(missing.values())

    def trained(self, key: NetworkKey, alive: Collection[str], log_evidence: dict[str, float]) -> None:
        """Note a trained network, and tell how much is done if no further hypothesis is dropped.

        Args:
            key: The network.
            alive: Names of the hypotheses still in the race.
            log_evidence: Log evidence of these after the last complete block.
        """
        self.missing.pop(key, None)
        ahead = sum(
            cost for other, cost in self.missing.items() if other.hypothesis in alive and other.block >= key.block
        )
        first, last = self._range()
        done = last - (last - first) * ahead / self.planned
        step = Step(key.hypothesis, key.network, self.networks, key.block, self.blocks, done, log_evidence)
        self.on_network(step)

    def _range(self) -> tuple[float, float]:
        """Where this run begins and ends in the progress of the whole race."""
        if self.most_networks == self.n_networks:
            return 0.0, 1.0
        if self.networks == self.n_networks:
            return 0.0, FIRST_RUN
        width = (1 - FIRST_RUN) / (self.most_networks - self.n_networks)
        last = FIRST_RUN + width * (self.networks - self.n_networks)
        return last - width, last
