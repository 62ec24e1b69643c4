"""The networks of an estimator: how they are made for a symmetry, and how they are trained."""

import math
from dataclasses import replace
from typing import Any, ClassVar

from torch import nn

from invariantnet.choices import Placement, Pool, Uncertainty
from invariantnet.estimator.persistence import Trainings
from invariantnet.estimator.stored import StoredEstimator
from invariantnet.inference import HeldOut
from invariantnet.inference.hypotheses import compared_units
from invariantnet.inference.models import DECAYED, DEEP, LITTLE_DECAY, Compared
from invariantnet.nn import InvariantLinear, Symmetrized, convnet, invariant_net, mlp
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.group import Group
from invariantnet.training.config import Training

FINAL = Training(
    batch_size=128, learning_rate=1e-2, weight_decay=0.1, validation=0.0, schedule="one-cycle", min_steps=500
)
"""Chosen by validation on rotated MNIST, 5,000 examples, with images outside of these."""


class NetworkMaker(StoredEstimator):
    """An estimator that knows how its networks are made and trained."""

    comparison: ClassVar[Compared] = DECAYED
    """How MLPs are trained to be compared."""
    placement: Placement
    pool: Pool
    uncertainty: Uncertainty
    epochs: int | None
    tolerance: float

    @property
    def trainings(self) -> Trainings:
        """How the networks of a fit are trained."""
        if self.method == "paper":
            return Trainings(None, Training() if self.epochs is None else Training(epochs=self.epochs))
        compared = HeldOut().training if self.method == "heldout" else self._compared.training
        final = final_training(self.epochs, 50 if self.backbone == "mlp" else 12)
        # With Bayes by Backprop, the prior of the weights takes the place of their decay.
        return Trainings(compared, replace(final, weight_decay=0.0) if self.uncertainty == "bbb" else final)

    def make_network(self, symmetry: Group) -> nn.Module:
        """The final network as it would be for a symmetry, untrained.

        Args:
            symmetry: One of `hypotheses_`.

        Returns:
            The backbone, averaged over the symmetry.
        """
        pool: Pool = self.pool if self.placement == "features" else "mean"
        return self._symmetrized(self._module(self.hidden), symmetry, pool)

    def make_final_network(self) -> nn.Module:
        """The network for `symmetry_`, untrained."""
        if self.method == "paper":
            network = invariant_net([g for g in self.hypotheses_ if g.name != TRIVIAL], self.outputs_, self.hidden)
            layer = network[0]
            assert isinstance(layer, InvariantLinear)
            if not layer.sums.rows:
                raise ValueError(
                    "no linear function is invariant to these groups, so the paper's layer sees nothing: add a "
                    "group, or use another method."
                )
            return network
        return self.make_network(self.symmetry_)

    @property
    def _compared(self) -> Compared:
        if self.backbone != "mlp":
            return DEEP
        # What invariance costs is asked of networks that predict as well as they can.
        return LITTLE_DECAY if self.tolerance > 0 else self.comparison

    def _compared_network(self, width: float, group: Group) -> nn.Module:
        module = self._module(math.ceil(width * self.hidden), units=compared_units(group, self.hypotheses_))
        return self._symmetrized(module, group, "mean")

    def _symmetrized(self, module: nn.Module, group: Group, pool: Pool) -> Symmetrized:
        return Symmetrized(
            module,
            [group],
            self.placement,
            pool,
            scale=self.scale_,
            probabilities=self.likelihood.averages_probabilities,
            input_shape=self._network_shape,
        )

    @property
    def _network_shape(self) -> tuple[int, ...] | None:
        """Shape in which the backbone takes an input; built-in ones take flat inputs."""
        return self.input_shape_ if callable(self.backbone) else None

    def _module(self, hidden: int, **options: Any) -> nn.Module:
        if callable(self.backbone):
            return self.backbone(self.input_shape_, self.outputs_)
        make = mlp if self.backbone == "mlp" else convnet
        return make(self.input_shape_, self.outputs_, hidden, **options)


def final_training(epochs: int | None, usual: int) -> Training:
    """Of a network on all examples: for as long as was asked, else as usual, but for some steps at least."""
    return replace(FINAL, epochs=usual) if epochs is None else replace(FINAL, epochs=epochs, min_steps=0)
