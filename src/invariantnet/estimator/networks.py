"""The networks of an estimator: how they are made for a hypothesis, and how they are trained."""

import hashlib
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor, nn

from invariantnet._system.torch_state import seeded
from invariantnet.choices import Placement, Pool, Precision, Uncertainty
from invariantnet.data.arrays import DiskArray
from invariantnet.estimator.heads import head_maker
from invariantnet.estimator.persistence import Trainings
from invariantnet.estimator.stored import StoredEstimator
from invariantnet.estimator.units import InputUnits, in_every_unit
from invariantnet.inference import HeldOut
from invariantnet.inference.hypotheses import Hypothesis, all_hypotheses, compared_units
from invariantnet.inference.models import models_for
from invariantnet.nn import InvariantLinear, Symmetrized, invariant_net
from invariantnet.nn.placements import check_outputs
from invariantnet.nn.pretrained import Pretrained
from invariantnet.nn.standardize import Standardize
from invariantnet.nn.symmetrized import NO_HEAD
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.named import symmetry as named_symmetry
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.training.config import Training

DRAWN = 4
"""Random copies along a range that a training step learns from: a quarter of the cost of all 16. A single copy
would cost less still, but such networks find ranges that are too narrow, because no copy can leave the answer to
another (1,250 digits turned by up to 90°, CNN, seed 1000: with one copy, 60° is ahead of 90° by 42 nats; with
four, 90° is ahead by 20)."""

LONGER = 4
"""Factor of the steps of a final network with a range, which learns from one random copy a step. On 312 digits
turned by any angle (CNN, seed 1001) 800 such steps gave 90.9 % in 7 CPU seconds, 200 steps of four copies 89.2 %
in 7, and 200 steps that pool the features of all copies by their maximum 91.3 % in 29."""


class NetworkMaker(StoredEstimator):
    """An estimator that knows how its networks are made and trained."""

    placement: Placement
    placement_: Placement
    """Where networks are averaged: `outputs` instead of `features` for a backbone without a head."""
    head: str | None
    pool: Pool
    uncertainty: Uncertainty
    epochs: int | None
    precision: Precision
    prior: float | Sequence[float]
    joins: bool
    inputs_: InputUnits
    """Means and scales of the inputs; only while fitting, because every network stores its own."""

    @property
    def trainings(self) -> Trainings:
        """How the networks of a fit are trained."""
        if self.method == "paper":
            return Trainings({}, Training() if self.epochs is None else Training(epochs=self.epochs))
        if self.method == "heldout":
            return Trainings({"heldout": HeldOut().training}, self.final_training(self.hypotheses_[0]))
        compared = {h.model.name: h.model.training for h in self.hypotheses_}
        return Trainings(compared, self.final_training(self._chosen))

    def make_network(self, hypothesis: Hypothesis) -> nn.Module:
        """The network of a hypothesis, untrained; the same to be compared and to be used.

        Args:
            hypothesis: A symmetry and a model.

        Returns:
            The backbone, averaged over the symmetry.
        """
        if self._is_averaged_as_compared(hypothesis):
            return self._symmetrized(hypothesis, "mean", "outputs", drawn=1)
        return self._symmetrized(hypothesis, self._pool)

    def make_compared_network(self, hypothesis: Hypothesis) -> nn.Module:
        """Make the network that stands for a hypothesis in the comparison.

        A maximum over copies is extra capacity. Built-in backbones give smaller groups as much, by features of
        several units; a backbone of the user's own cannot, so it is compared with the mean.

        With a range among the candidates, every hypothesis is compared as a mean of predictions over its copies,
        groups and no symmetry too: the same network, averaged over different measures. Copies of a range that lie
        close together are nearly one copy, so no number of untied units is fair to all rungs of a ladder, and
        pooled features favour ranges that are too wide (measured on turned digits: 90° where 45° is true). A
        training step learns from a few random copies, so that a wide range costs no more than a narrow one.

        Args:
            hypothesis: One of `hypotheses_`.

        Returns:
            The untrained network.
        """
        if self._compares_ranges:
            return self._symmetrized(hypothesis, "mean", "outputs")
        return self._symmetrized(hypothesis, "mean" if callable(self.backbone) else self._pool)

    def make_final_network(self) -> nn.Module:
        """The network for `symmetry_`, untrained."""
        if self.method == "paper":
            network = invariant_net([g for g in self._groups if g.name != TRIVIAL], self.outputs_, self.hidden)
            layer = network[0]
            assert isinstance(layer, InvariantLinear)
            if not layer.sums.rows:
                raise ValueError(
                    "no linear function is invariant to these groups, so the paper's layer sees nothing: add a "
                    "group, or use another method."
                )
            return network
        whole = self.make_network(self._chosen)
        if not hasattr(self, "trained_symmetry_"):
            return whole
        assert isinstance(whole, Symmetrized)
        return whole.restricted_to(self.symmetry_)

    def measure_inputs(self, x: Tensor | DiskArray) -> None:
        """Learn the units of the inputs, which new networks standardise; a pretrained body has units of its own.

        Args:
            x: Inputs to learn from.
        """
        if isinstance(self.backbone, Pretrained):
            return
        self.inputs_ = InputUnits.of(x, self.candidates_, self.input_shape_)

    def hypothesis_of(self, symmetry: AnySymmetry) -> Hypothesis:
        """Find the model that predicted best with a symmetry.

        Args:
            symmetry: One of `candidates_`.

        Returns:
            The symmetry with this model.
        """
        ours = [h for h in self.hypotheses_ if h.symmetry is symmetry]
        best = dict(zip(self.posterior_.names, self.posterior_.best_models, strict=False)).get(symmetry.name)
        return next((h for h in ours if h.model.name == best), ours[0])

    def without_symmetry(self) -> Hypothesis:
        """No symmetry, with the model of the final network if it needs none."""
        trivial = next(g for g in self.candidates_ if g.name == TRIVIAL)
        ours = [h for h in self.hypotheses_ if h.symmetry is trivial]
        return next((h for h in ours if h.model.name == self._chosen.model.name), self.hypothesis_of(trivial))

    def _restrict(self, symmetry: str | AnySymmetry) -> None:
        """Set `symmetry_` to a part of what the network was trained for."""
        known = {s.name: s for s in self.candidates_}
        found = symmetry
        if isinstance(found, str):
            found = known[found] if found in known else named_symmetry(found, self.input_shape_)
        if not found <= self.symmetry_:
            raise ValueError(
                f"{found.name} is no part of {self.symmetry_.name}: name one of its subgroups, or trivial."
            )
        self.trained_symmetry_ = getattr(self, "trained_symmetry_", self.symmetry_)
        self.symmetry_, self.restricted_to_ = found, found.name

    @property
    def _groups(self) -> list[Group]:
        return [s for s in self.candidates_ if isinstance(s, Group)]

    @property
    def _compares_ranges(self) -> bool:
        return any(isinstance(s, Range) for s in self.candidates_)

    def _is_averaged_as_compared(self, hypothesis: Hypothesis) -> bool:
        """Whether the final network averages outputs as the compared one does: for ranges, and beside them."""
        if not self._compares_ranges or isinstance(self.backbone, Pretrained):
            return False
        return isinstance(hypothesis.symmetry, Range) or hypothesis.symmetry.name == TRIVIAL

    def _combine_symmetries_and_models(self) -> None:
        """Set `hypotheses_`; placement `weights` is exact for any group, but needs a linear first layer."""
        if self._compares_ranges and (self.placement == "weights" or self.method != "evidence"):
            option = "placement 'weights'" if self.placement == "weights" else f"method {self.method!r}"
            raise ValueError(
                f"{option} is for groups, not for ranges: leave out the ranges, or use method 'evidence' with "
                "placement 'features' or 'outputs'."
            )
        if self.placement == "weights":
            models = models_for("mlp" if self.backbone == "auto" else self.backbone, self.input_shape_)
            self.hypotheses_ = [Hypothesis(s, model) for s in self.candidates_ for model in models]
        else:
            self.hypotheses_ = all_hypotheses(self.candidates_, self.backbone, self.input_shape_)
        units: InputUnits | None = getattr(self, "inputs_", None)
        if self._units_compete and (units is None or (units.of_columns and units.differ(self.hypotheses_[0]))):
            self.hypotheses_ = in_every_unit(self.hypotheses_, units)
        if not self.likelihood.averages_probabilities:
            self.hypotheses_ = [replace(h, model=h.model.for_numbers()) for h in self.hypotheses_]
        if self.precision != "32-true":
            self.hypotheses_ = [replace(h, model=h.model.computing_in(self.precision)) for h in self.hypotheses_]

    @property
    def _units_compete(self) -> bool:
        """Whether inputs may be rows of a table, whose columns have units of their own."""
        is_body = isinstance(self.backbone, Pretrained)
        return (
            len(self.input_shape_) == 1 and self.method == "evidence" and not self._compares_ranges and not is_body
        )

    def _placement_of_the_backbone(self) -> Placement:
        """The placement that was asked for, or `outputs` if a backbone of the user's own has no head."""
        if not callable(self.backbone) or isinstance(self.backbone, Pretrained) or self.placement == "weights":
            return self.placement
        # Found once, on a network that is not used: else every network of a fit would warn.
        with warnings.catch_warnings(), seeded(0):
            warnings.filterwarnings("ignore", re.escape(NO_HEAD[:40]), UserWarning)
            module = self.backbone(self.input_shape_, self.outputs_)
            check_outputs(module, self.input_shape_, self.outputs_)
            if self.placement == "outputs":
                return self.placement
            trivial = next(s for s in self.candidates_ if s.name == TRIVIAL)
            shape = self._network_shape
            return Symmetrized(module, [trivial], "features", input_shape=shape, head=self.head).averages

    def _backbone_of_the_final_network(self) -> nn.Module:
        return self._module(self._chosen, self._pool, equal=self._is_averaged_as_compared(self._chosen))

    def _about_scores(self) -> dict[str, object]:
        """What the scores of compared networks depend on, besides the arguments of the comparison itself."""
        backbone: object = self.backbone
        if isinstance(backbone, Pretrained):
            backbone = backbone.digest(self.input_shape_)
        elif not isinstance(backbone, str):
            backbone = getattr(backbone, "__qualname__", "own")
        return {
            "data": self.fingerprint_,
            "shape": self.input_shape_,
            "backbone": backbone,
            "hidden": self.hidden,
            "placement": self.placement_,
            "head": self.head,
            "pool": self.pool,
            "rivals": self._about_rivals(),
        }

    def _about_rivals(self) -> list[object]:
        """What the network of one hypothesis depends on that follows from all of them."""
        if self._compares_ranges or isinstance(self.backbone, Pretrained):
            return [symmetry.name for symmetry in self.candidates_]
        pools = hashlib.sha256(self.inputs_.shared.pools.tobytes()).hexdigest()
        return [compared_units(1, [h.copies for h in self.hypotheses_]), pools]

    @property
    def _chosen(self) -> Hypothesis:
        return self.hypothesis_of(getattr(self, "trained_symmetry_", self.symmetry_))

    @property
    def _goes_on(self) -> bool:
        """Whether `"auto"` compares more symmetries, once it knows what predicts best."""
        asked = self.symmetries == "auto" and self.joins and np.ndim(self.prior) == 0
        return asked and not isinstance(self.backbone, Pretrained)

    @property
    def _alpha(self) -> float | list[float]:
        """The prior as plain numbers, whatever a search over it has passed."""
        return np.asarray(self.prior, float).tolist()

    @property
    def _pool(self) -> Pool:
        if isinstance(self.backbone, Pretrained):
            return "mean"  # as its heads are compared
        return self.pool if self.placement_ == "features" else "mean"

    def final_training(self, hypothesis: Hypothesis) -> Training:
        """Decide how the final network is trained if it is the one of this hypothesis.

        Args:
            hypothesis: A symmetry and a model.

        Returns:
            The settings.
        """
        final = hypothesis.model.final
        if self.epochs is not None:
            final = replace(final, epochs=self.epochs, min_steps=0)
        elif isinstance(hypothesis.symmetry, Range) and not isinstance(self.backbone, Pretrained):
            final = replace(final, epochs=LONGER * final.epochs, min_steps=LONGER * final.min_steps)
        # With Bayes by Backprop, the prior of the weights takes the place of their decay.
        return replace(final, weight_decay=0.0) if self.uncertainty == "bbb" else final

    def _symmetrized(
        self, hypothesis: Hypothesis, pool: Pool, placement: Placement | None = None, drawn: int = DRAWN
    ) -> Symmetrized:
        equal = placement is not None
        placement = placement or hypothesis.model.placement or self.placement_
        pool = "mean" if placement == "weights" else hypothesis.model.pool or pool
        return Symmetrized(
            self._module(hypothesis, pool, equal=equal),
            [hypothesis.symmetry],
            placement,
            pool,
            standardize=self._standardize(hypothesis),
            probabilities=self.likelihood.averages_probabilities,
            input_shape=self._network_shape,
            outputs=self.outputs_,
            native=hypothesis.native,
            head=self.head if placement == "features" else None,
            drawn=drawn,
        )

    def _standardize(self, hypothesis: Hypothesis) -> Standardize:
        """Statistics of the inputs; of a model that is loaded, they come with its weights."""
        if isinstance(self.backbone, Pretrained):
            return Standardize.identity(self.n_features_in_)  # a body has units of its own
        units: InputUnits | None = getattr(self, "inputs_", None)
        return Standardize.identity(self.n_features_in_) if units is None else units.standardize(hypothesis)

    @property
    def _network_shape(self) -> tuple[int, ...] | None:
        """Shape in which the backbone takes an input; built-in ones take flat inputs."""
        return self.input_shape_ if callable(self.backbone) else None

    def _module(self, hypothesis: Hypothesis, pool: Pool, *, equal: bool = False) -> nn.Module:
        """The backbone, untrained; as many units for each symmetry as its copies ask for, or one.

        A maximum over copies is extra capacity, which untied units make up for. A mean over copies is none: the
        network is the projection of a plain one of the same width.
        """
        if isinstance(self.backbone, Pretrained):
            make_head = head_maker(hypothesis.model, self.hidden)
            return self.backbone(self.input_shape_, self.outputs_, make_head)
        if callable(self.backbone):
            return self.backbone(self.input_shape_, self.outputs_)
        assert hypothesis.model.make is not None
        equal = equal or hypothesis.model.pool == "mean"
        units = 1 if equal else compared_units(hypothesis.copies, [h.copies for h in self.hypotheses_])
        return hypothesis.model.make(self.input_shape_, self.outputs_, self.hidden, units=units, pool=pool)
