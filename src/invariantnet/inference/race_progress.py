"""How far a race is."""

from collections.abc import Callable, Collection, Mapping, Sequence

from invariantnet._system.progress import Step
from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.rules import Block, expected_share, may_end
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.training.calibrated import FOLDS

COMMON_COST = 8
"""What a training step costs besides the copies of an example, in copies: as much as 8 of them, for an MLP."""
OTHERS = 0.5
"""Share of the networks after the first that a block trains: hypotheses far behind get no more networks."""


class RaceProgress:
    """Tells after every network how much of a race is done.

    A race has several parts, each with a share of its own from 0 to 1: until a verdict may be sure; and while
    it is open, learning from more examples, and with more networks for each hypothesis.

    Args:
        hypotheses: What is compared.
        blocks: The blocks of the race.
        on_network: Called after every network.
        seconds: CPU seconds of a training step by the name of a hypothesis, if they were measured.
    """

    def __init__(
        self,
        hypotheses: Sequence[Hypothesis],
        blocks: Sequence[Block],
        on_network: Callable[[Step], None],
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        self.blocks, self.on_network = blocks, on_network
        self.costs = {(h.name, b.number): _cost(h, b, seconds or {}) for h in hypotheses for b in blocks}
        self.usual = next((b.number for b in blocks if may_end(b, blocks)), blocks[-1].number)
        self.asked: int | None = None

    def start(self, networks: int, missing: Sequence[NetworkKey]) -> None:
        """Begin a run with this many networks per hypothesis.

        Args:
            networks: Networks per hypothesis.
            missing: Networks that are not trained yet.
        """
        self.networks, self.missing = networks, set(missing)
        self.asked = self.asked or networks
        self.part, self.spent, self.done = "", 0.0, 0.0

    def trained(self, key: NetworkKey, alive: Collection[str], log_evidence: dict[str, float]) -> None:
        """Note a trained network, and tell which share of its part is done; the share never falls.

        Args:
            key: The network.
            alive: Names of the hypotheses still in the race.
            log_evidence: Log evidence of these after the last complete block.
        """
        self.missing.discard(key)
        part, last = self._part(key)
        if part != self.part:
            self.part, self.spent, self.done = part, 0.0, 0.0
        self.spent += self._cost(key)
        ahead = (o for o in self.missing if o.hypothesis in alive and key.block <= o.block <= last)
        expected = sum(self._cost(other) * self._probability(other, key) for other in ahead)
        self.done = max(self.done, self.spent / (self.spent + expected))
        blocks = len(self.blocks)
        step = Step(key.hypothesis, key.network, self.networks, key.block, blocks, self.done, log_evidence, part)
        self.on_network(step)

    def _part(self, key: NetworkKey) -> tuple[str, int]:
        """Name the part of a network, and the last block of this part."""
        if self.networks != self.asked:
            return f"still open: network {self.networks} of each hypothesis", self.blocks[-1].number
        if key.block <= self.usual:
            return "", self.usual
        return f"still open: learning from {self.blocks[key.block].start:,} examples", key.block

    def _cost(self, key: NetworkKey) -> float:
        return self.costs[key.hypothesis, key.block]

    def _probability(self, other: NetworkKey, now: NetworkKey) -> float:
        """How probably a network that is ahead will be trained, if its hypothesis is still in the race."""
        needed = OTHERS if other.network and (other.block > now.block or not now.network) else 1.0
        then, here = (self.blocks[number].start - self.blocks[0].start for number in (other.block, now.block))
        return needed * expected_share(then) / expected_share(here)


def _cost(hypothesis: Hypothesis, block: Block, seconds: Mapping[str, float]) -> float:
    """Cost of a network that learns from all examples before a block."""
    training = hypothesis.model.training
    copies = (COMMON_COST + min(hypothesis.copies, SAMPLED)) * training.batch_size
    steps = training.steps(max(1, block.start * (FOLDS - 1) // FOLDS))
    return steps * seconds.get(hypothesis.name, float(copies))
