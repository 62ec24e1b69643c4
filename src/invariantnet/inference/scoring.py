"""How well networks predict one block."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from invariantnet.data.arrays import DiskArray
from invariantnet.data.examples import Examples
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.prices import predict_moved, priced_examples
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.training.calibrated import Trained, train_and_calibrate_heat
from invariantnet.training.loop import predict

PredictMoved = Callable[[nn.Module, AnySymmetry, Tensor | DiskArray, Likelihood], Tensor | None]
"""Predicts inputs that are moved by a symmetry; None where that is not known."""

WELL_KNOWN = 0.2
"""Share of the loss of a guess up to which a network knows its inputs well enough to be tried by moving them. With
a larger loss, 300 digits in eight poses looked like digits turned by any angle; with less, 1,000 did not."""

MakeNetwork = Callable[[Hypothesis], nn.Module]
"""Makes the untrained network of a hypothesis."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A network that takes part in one block of a race.

    Args:
        hypothesis: The symmetry and the model of the network.
        network: Its number among the networks of its hypothesis; decides what it is calibrated on.
        seed: Decides its start and the order of its examples.
        tried: Whether it also predicts inputs that are moved.
    """

    hypothesis: Hypothesis
    network: int
    seed: int
    tried: bool = True


@dataclass(frozen=True, eq=False)
class BlockScore:
    """How one network predicted its block."""

    log_likelihood: Float[np.ndarray, " n"]
    """Log probability of every label in the block."""
    accuracy: dict[str, float]
    """Accuracy on inputs of the block moved by each symmetry, by its name."""
    moved: dict[str, Float[np.ndarray, " shown"]] = field(default_factory=dict)
    """Log probability of the first labels of the block, their inputs moved by each symmetry, by its name; only of
    a network without symmetry, which can tell an input from its copies."""
    strain: dict[str, float] = field(default_factory=dict)
    """By what share moving the inputs by each probe raises the loss of a first network, by `Scorer.strain`."""


@dataclass(frozen=True)
class Scorer:
    """Trains networks and scores what they predict.

    Args:
        make_network: Makes the network of a hypothesis.
        likelihood: Log density of the targets.
        doubt: Share of a background prediction mixed into every network's, so that one surprise costs a bounded
            number of nats.
        predict_moved: Predicts inputs that are moved by a symmetry.
        probes: Ranges by which first networks are tried.
    """

    make_network: MakeNetwork
    likelihood: Likelihood
    doubt: float
    predict_moved: PredictMoved = predict_moved
    probes: Sequence[Range] = ()

    def score(
        self, entries: Sequence[Entry], past: Examples, block: Examples, moved_by: Sequence[AnySymmetry] = ()
    ) -> list[BlockScore]:
        """Train networks on the past, calibrate them, and score their predictions of the block.

        Args:
            entries: The networks of one heat.
            past: Examples to learn from, in random order.
            block: Examples to predict.
            moved_by: Symmetries by which inputs of the block are moved to measure the accuracy of networks.

        Returns:
            The score of each network.
        """
        trained = train_and_calibrate_heat(
            [partial(self.make_network, entry.hypothesis) for entry in entries],
            past,
            entries[0].hypothesis.model.training,
            [entry.seed for entry in entries],
            [entry.network for entry in entries],
            self.likelihood,
        )
        return [
            self._scored(entry, network, block, moved_by if entry.tried else (), past)
            for entry, network in zip(entries, trained, strict=True)
        ]

    def _scored(
        self, entry: Entry, trained: Trained, block: Examples, moved_by: Sequence[AnySymmetry], past: Examples
    ) -> BlockScore:
        hypothesis, network, calibration = entry.hypothesis, trained.network, trained.calibration

        def calibrated(outputs: Tensor) -> Tensor:
            return outputs.cpu() * calibration.scale + calibration.shift

        predicted = predict(network, block.x, self.likelihood)
        outputs = calibrated(predicted)
        if not bool(outputs.isfinite().all()):
            warnings.warn(
                f"a network of {hypothesis.name} diverged on {len(past)} examples, so it falls behind: look for "
                "extreme values in the data, or use another backbone.",
                RuntimeWarning,
                stacklevel=2,
            )
        shown = block[: priced_examples(len(moved_by), min(hypothesis.copies, SAMPLED))]
        tried = {
            g.name: predicted[: len(shown)]
            if _is_invariant(network, hypothesis.symmetry, g)
            else self.predict_moved(network, g, shown.x, self.likelihood)
            for g in moved_by
        }
        moved = {name: outputs for name, outputs in tried.items() if outputs is not None}
        likely = self.log_likelihood(outputs, block.y.cpu())
        probes = {probe.name: probe for probe in (self.probes if entry.tried else ())}
        probed = {name: self.predict_moved(network, p, shown.x, self.likelihood) for name, p in probes.items()}
        losses = {
            name: -self.log_likelihood(calibrated(outputs), shown.y.cpu())
            for name, outputs in probed.items()
            if outputs is not None
        }
        return BlockScore(
            likely,
            {name: self.likelihood.score(outputs, shown.y) for name, outputs in moved.items()},
            {name: self.log_likelihood(calibrated(outputs), shown.y.cpu()) for name, outputs in moved.items()}
            if hypothesis.symmetry.name == TRIVIAL
            else {},
            {name: self.strain(-likely[: len(shown)], loss, past, shown) for name, loss in losses.items()},
        )

    def strain(
        self,
        loss: Float[np.ndarray, " shown"],
        moved: Float[np.ndarray, " shown"],
        past: Examples,
        shown: Examples,
    ) -> float:
        """Say how much the loss grows when inputs are moved.

        Args:
            loss: Loss of each label.
            moved: The same, with moved inputs.
            past: What was learned from.
            shown: The examples.

        Returns:
            The growth as a share of the loss; infinity unless the loss is small beside that of a guess, because
            moves hardly change what a network says that knows little.
        """
        mean, guessed = float(loss.mean()), float(-self.guess(past, shown).mean())
        return float((moved - loss).mean()) / mean if 0 < mean <= WELL_KNOWN * guessed else math.inf

    def guess(self, past: Examples, block: Examples) -> Float[np.ndarray, " block"]:
        """Log probability of a block's labels, predicted from earlier labels alone."""
        return self.log_likelihood(self._guessed(past, block), block.y)

    def background(self, past: Examples, block: Examples) -> Float[np.ndarray, " block"]:
        """Log probability of a block's labels under a prediction that knows nothing, not even earlier labels."""
        return self.likelihood.background(self._guessed(past, block).double(), block.y).cpu().numpy()

    def _guessed(self, past: Examples, block: Examples) -> Float[Tensor, "block outputs"]:
        weight = torch.ones(len(past), device=past.y.device) if past.weight is None else past.weight
        return self.likelihood.guess(past.y, weight, block.y)

    def log_likelihood(
        self, output: Float[Tensor, "n outputs"], y: Shaped[Tensor, "n *k"]
    ) -> Float[np.ndarray, " n"]:
        r"""$\log\big((1-\epsilon)\, p(y_i \mid x_i) + \epsilon\, p_0(y_i)\big)$ for each example."""
        output = output.double()
        y = y.double() if y.is_floating_point() else y
        # A network that diverged predicts nothing: its hypothesis loses, and the others go on.
        known = self.likelihood.log_prob(output, y).nan_to_num(nan=-math.inf) + math.log1p(-self.doubt)
        unknown = self.likelihood.background(output, y) + (math.log(self.doubt) if self.doubt else -math.inf)
        return torch.logaddexp(known, unknown).cpu().numpy()

    def diverged(self, log_likelihood: Float[np.ndarray, " n"]) -> bool:
        """Whether a network never beats the background prediction."""
        return bool(log_likelihood.max() <= (math.log(self.doubt) if self.doubt else -math.inf))


def _is_invariant(network: nn.Module, symmetry: AnySymmetry, moved_by: AnySymmetry) -> bool:
    """Whether a network is known to predict moved inputs as they are predicted unmoved."""
    return bool(getattr(network, "exact", False)) and _is_part(moved_by, symmetry)


@lru_cache(maxsize=4096)
def _is_part(smaller: AnySymmetry, larger: AnySymmetry) -> bool:
    return smaller <= larger


def network_seed(seed: int, network: int, block: int) -> int:
    """Seed of one network; equal for all hypotheses, so that they are compared in pairs."""
    return int(np.random.SeedSequence([seed, network, block]).generate_state(1)[0])
