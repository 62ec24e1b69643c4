"""Heads on the features of a pretrained body: what stands for a hypothesis, and how the final one is trained."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.data.arrays import DiskArray
from invariantnet.data.examples import Examples
from invariantnet.inference.hypotheses import Hypothesis, compared_units
from invariantnet.inference.models import LINEAR_HEADS, Model
from invariantnet.inference.prices import predict_moved
from invariantnet.inference.seen import SeenCopies
from invariantnet.likelihoods import Likelihood
from invariantnet.nn import Ensemble, Symmetrized
from invariantnet.nn.copies import MeanOverCopies
from invariantnet.nn.standardize import InputStatistics
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.training.loop import predict

TRAINED = ("module.1.", "calibrate.")
"""Beginnings of the names of all weights that a network on features shares with the network of body and head."""


@dataclass(frozen=True, eq=False)
class ComparedHeads:
    """Makes the networks of a comparison on features.

    All hypotheses see the features of the same copies. Without ranges, a group is a constraint on how a network
    may use them: it exchanges copies, and all that holds for groups on inputs holds here. With a range among the
    candidates, every hypothesis is one head on single copies, whose predictions are averaged over the copies of
    its symmetry.

    Args:
        symmetries: Every candidate with its copies.
        lifted: Every candidate as a group that exchanges copies; empty if there are ranges.
        statistics: Units of the features.
        copies: Number of copies of each input.
        settings: Width of hidden layers, and number of outputs.
        likelihood: Says what outputs mean.
    """

    symmetries: dict[str, tuple[int, ...]]
    lifted: dict[str, Group]
    statistics: InputStatistics
    copies: int
    settings: tuple[int, int]
    likelihood: Likelihood
    orders: list[int] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        seen: SeenCopies,
        z: Float[Tensor, "n dim"],
        symmetries: list[AnySymmetry],
        settings: tuple[int, int],
        likelihood: Likelihood,
    ) -> "ComparedHeads":
        """Prepare the networks.

        Args:
            seen: The copies.
            z: Their compressed features.
            symmetries: Every candidate.
            settings: Width of hidden layers, and number of outputs.
            likelihood: Says what outputs mean.

        Returns:
            The networks of all hypotheses.
        """
        numbers = {s.name: seen.copies.numbers(s) for s in symmetries}
        each, count = z.shape[1] // seen.copies.count, seen.copies.count
        lifted = {}
        if not any(isinstance(s, Range) for s in symmetries):
            lifted = {s.name: seen.copies.lifted(s, each) for s in symmetries if isinstance(s, Group)}
            statistics = InputStatistics.of(z, list(lifted.values()), (z.shape[1],))
        else:
            statistics = InputStatistics.of(z.reshape(-1, each), [_trivial(each)], (each,))
        orders = [s.copies for s in symmetries]
        return cls(numbers, lifted, statistics, count, settings, likelihood, orders)

    def make_network(self, hypothesis: Hypothesis) -> nn.Module:
        """The network that stands for a hypothesis.

        Args:
            hypothesis: A candidate with a head.

        Returns:
            The untrained network.
        """
        name, model = hypothesis.symmetry.name, hypothesis.model
        probabilities = self.likelihood.averages_probabilities
        if not self.lifted:
            head = self._made(model, len(self.statistics.mean))
            used = self.symmetries[name]
            scale = self.statistics.pooled()
            return MeanOverCopies(head, self.copies, used, scale, probabilities=probabilities)
        group = self.lifted[name]
        is_linear = model.name in LINEAR_HEADS
        units = compared_units(hypothesis.copies, self.orders)
        return Symmetrized(
            self._made(model, group.dim, units),
            [group],
            "weights" if is_linear else "features",
            "mean" if is_linear else "max",
            standardize=self.statistics.for_symmetry(group),
            probabilities=probabilities,
            outputs=self.settings[1],
        )

    def predict_moved(
        self, network: nn.Module, symmetry: AnySymmetry, x: Tensor | DiskArray, likelihood: Likelihood
    ) -> Tensor | None:
        """Predict inputs that are moved by a group, which exchanges their copies; unknown with ranges."""
        if self.lifted:
            return predict_moved(network, self.lifted[symmetry.name], x, likelihood)
        return predict(network, x, likelihood) if symmetry.name == TRIVIAL else None

    def _made(self, model: Model, inputs: int, units: int = 1) -> nn.Module:
        assert model.make is not None
        hidden, outputs = self.settings
        return model.make((inputs,), outputs, hidden, units=units, pool="max")


def on_features(head: nn.Module, features: Float[Tensor, "n features"], outputs: int) -> Symmetrized:
    """Make a network from features to outputs, whose weights are named as in the network of body and head.

    Args:
        head: The untrained head.
        features: Features to learn from, which give their units.
        outputs: Number of outputs.

    Returns:
        The untrained network.
    """
    trivial = _trivial(features.shape[1])
    units = InputStatistics.of(features, [trivial], (features.shape[1],)).pooled()
    module = nn.Sequential(nn.Identity(), nn.Sequential(units, head))
    return Symmetrized(module, [trivial], "features", "mean", outputs=outputs)


def attached(trained: nn.Module, whole: Symmetrized, likelihood: Likelihood) -> nn.Module:
    """Put a trained head on its body.

    Args:
        trained: A network on features, or an ensemble of such networks.
        whole: The network of body and head.
        likelihood: Says how predictions of an ensemble are averaged.

    Returns:
        The network from inputs to outputs.
    """
    inner = trained.network if isinstance(trained, Ensemble) else trained
    weights = {name: value for name, value in inner.state_dict().items() if name.startswith(TRAINED)}
    whole.load_state_dict(weights, strict=False)
    whole.to(next(iter(weights.values())).device).eval()
    if not isinstance(trained, Ensemble):
        return whole
    drawn = dict(zip(trained.names, trained.buffers(recurse=False), strict=True))
    return Ensemble(whole, {n: v for n, v in drawn.items() if n.startswith(TRAINED)}, likelihood).eval()


def head_maker(model: Model, hidden: int) -> Callable[[int, int], nn.Module]:
    """Make heads of a model from the number of features and of outputs."""

    def make(features: int, outputs: int) -> nn.Module:
        assert model.make is not None
        return model.make((features,), outputs, hidden, units=1, pool="mean")

    return make


def pooled_examples(seen: SeenCopies, symmetry: AnySymmetry, examples: Examples) -> Examples:
    """Examples whose inputs are features, averaged over the copies of a symmetry."""
    features = seen.mean_over(seen.copies.numbers(symmetry)).to(examples.device)
    return Examples(features, examples.y, examples.weight)


def _trivial(dim: int) -> Group:
    return Group(TRIVIAL, torch.arange(dim)[None].numpy(), known_order=1)
