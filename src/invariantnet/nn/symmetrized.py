r"""Any network, averaged over a mixture of symmetries, in one of three places.

| placement | formula |
|---|---|
| `weights` | $\sigma(W R_\pi x + b)$ with $R_\pi = \sum_k \pi_k R_k$: only orbit means of the input are kept |
| `features` | $\sum_g \mu_\pi(g)\, \varphi(T_g x)$ before the last layer: nothing is lost |
| `outputs` | $\log \sum_g \mu_\pi(g)\, \mathrm{softmax} f(T_g x)$: any network |

Each placement is a class of `invariantnet.nn.placements`.
"""

import math
import warnings
from collections.abc import Sequence
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.choices import Placement, Pool, require_choice
from invariantnet.nn.calibrate import Calibrate
from invariantnet.nn.mixture import Mixture
from invariantnet.nn.placements import PLACEMENTS, Averaging
from invariantnet.nn.placements.features import Features, NoHeadError, count_features
from invariantnet.nn.standardize import Standardize
from invariantnet.priors import Dirichlet, as_prior
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.ranges import AnySymmetry

SAMPLED = 128
"""Elements that stand for a larger group: a training step then costs at most 128 times that of a plain network.
Five numbers in any order, 120 of them, are listed."""
COPIES_AT_ONCE = 4096
"""Copies of inputs in memory at once where no gradient is needed, so that memory does not grow with the batch."""
NUMBERS_AT_ONCE = 2**25
"""Numbers of these copies, which are fewer where inputs are large: 128 MB."""
NO_HEAD = (
    "the network has no linear layer before which copies can be pooled, so outputs are averaged instead of "
    "features: name the layer with head='…', or ask for placement='outputs'."
)
"""What users are told whose network cannot be split."""


class Symmetrized(Mixture):
    """A network averaged over symmetries; exactly invariant to a symmetry that has all the probability.

    Args:
        module: The network. For `weights`, its first layer must be linear; for `features`, it has a head, before
            which features are averaged; for `outputs`, any map from inputs to outputs.
        symmetries: One symmetry, to which the network is then invariant, exactly for a group and nearly for a
            range; or several groups, with learned probabilities π.
        placement: Where to average.
        pool: The mean over the elements of all symmetries, or, with a single symmetry and `features`, the maximum.
        standardize: Brings inputs to order one; it must commute with the symmetries.
        prior: Dirichlet on π, or its α; uniform by default.
        probabilities: Whether outputs are logits, so that `outputs` averages their probabilities; if not, it
            averages the outputs themselves.
        sampled: Number of random elements that stand for a larger group; the network is then only nearly
            invariant, and `exact` is False. `weights` is exact for groups of any size.
        seed: Seed of the sampled elements.
        input_shape: Shape in which `module` takes an input; flat by default, and always with `weights`. The
            inputs of `Symmetrized` itself are flat either way.
        outputs: Number of outputs; weights of a network with another number are then refused. By default any.
        native: A subgroup that `module` is invariant to by construction; one copy per coset of it is then enough.
        head: Name of the layer before which `features` averages, such as `"classifier.1"`. By default, that is
            the last layer of a sequence, and the last linear layer that is called of any other network. If there
            is none, outputs are averaged instead, with a warning; `averages` tells which.
        drawn: Number of random copies of an input that a training step learns from, with placement `outputs` and a
            range; None takes all copies. Predictions always average over all of them.

    Raises:
        ValueError: If the arguments contradict each other.

    >>> from invariantnet import check_invariance, symmetry
    >>> from invariantnet.nn import mlp
    >>> turns = symmetry("rot90", shape=(8, 8))
    >>> network = Symmetrized(mlp((8, 8), classes=3), [turns])
    >>> check_invariance(network, turns, torch.rand(5, 64)) < 1e-5
    True

    """

    def __init__(
        self,
        module: nn.Module,
        symmetries: Sequence[AnySymmetry],
        placement: Placement = "features",
        pool: Pool = "mean",
        *,
        standardize: Standardize | None = None,
        prior: Dirichlet | float | Sequence[float] | None = 1.0,
        probabilities: bool = True,
        sampled: int = SAMPLED,
        seed: int = 0,
        input_shape: tuple[int, ...] | None = None,
        outputs: int | None = None,
        native: Group | None = None,
        head: str | None = None,
        drawn: int | None = None,
    ) -> None:
        super().__init__()
        if not symmetries:
            raise ValueError("no symmetries to average over: pass at least one.")
        require_choice("placement", placement, PLACEMENTS)
        require_choice("pool", pool, get_args(Pool))
        if pool == "max" and (len(symmetries) > 1 or pool not in PLACEMENTS[placement].pools):
            raise ValueError("the maximum is for a single symmetry and placement 'features': use pool='mean'.")
        self.module, self.standardize, self.calibrate = module, standardize, Calibrate(outputs)
        self.symmetries = tuple(symmetries)
        self.names = tuple(s.name for s in symmetries)
        shape = _several_axes(input_shape, symmetries[0])
        averaging = self.averaging = Averaging(pool, probabilities, sampled, seed, shape, native, head, drawn)
        self.averages: Placement = placement
        """Where the network is averaged: the placement that was asked for, or `outputs` if there is no head."""
        try:
            self.placement = PLACEMENTS[placement](module, symmetries, averaging)
        except NoHeadError:
            warnings.warn(NO_HEAD, UserWarning, stacklevel=2)
            self.averages = "outputs"
            self.placement = PLACEMENTS["outputs"](module, symmetries, averaging)
        if len(symmetries) > 1:
            self.prior = as_prior(prior, len(symmetries))
            self.logits = nn.Parameter(torch.zeros(len(symmetries)))
        else:
            self.register_buffer("logits", torch.zeros(1), persistent=False)

    @property
    def exact(self) -> bool:
        """Whether the network is invariant up to rounding: not for ranges, nor for sampled elements of a group."""
        return self.placement.exact

    @property
    def features(self) -> int:
        """Number of features that are averaged, with placement `features`."""
        if not isinstance(self.placement, Features):
            raise ValueError("one π per feature needs features that are averaged: use posterior='point'.")
        return count_features(self.module, self.placement.head)

    def forward(self, x: Float[Tensor, "*batch dim"], pi: Tensor | None = None) -> Float[Tensor, "*batch outputs"]:
        """Compute the averaged network.

        Args:
            x: Flat inputs.
            pi: Replaces the learned probabilities; with `features`, it may have a row per feature.

        Returns:
            One row of outputs per input.

        """
        pi = self._estimate() if pi is None else pi
        outputs = [self.placement.average(self.module, self._standardized(part), pi) for part in self._parts(x)]
        return self.calibrate(outputs[0] if len(outputs) == 1 else torch.cat(outputs))

    def can_prepare(self, numbers: int) -> bool:
        """Whether `prepare` is possible: not with several symmetries, nor if all copies take too much memory.

        Args:
            numbers: How many numbers all inputs have together.

        Returns:
            True if it is.
        """
        copies = len(self.placement.get_buffer("haar")) if self.placement.prepares_copies else 1
        return len(self.symmetries) == 1 and copies * numbers <= NUMBERS_AT_ONCE

    def prepare(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n prepared"]:
        """Compute what comes before the first weights, such as copies, so that no training step repeats it.

        Args:
            x: Flat inputs that are learned from.

        Returns:
            One row per input, for `from_prepared`.

        """
        return self.placement.prepare(self._standardized(x))

    def from_prepared(self, z: Float[Tensor, "n prepared"]) -> Float[Tensor, "n outputs"]:
        """Compute the averaged network from what `prepare` returned, before any calibration.

        Args:
            z: Prepared inputs.

        Returns:
            One row of outputs per input.

        """
        return self.placement.finish(self.module, z)

    def restricted_to(self, symmetry: AnySymmetry) -> "Symmetrized":
        """Make a network of the same weights that is averaged over a smaller symmetry.

        Args:
            symmetry: A part of the symmetry of this network.

        Returns:
            The network; it shares all weights with this one.

        Raises:
            ValueError: If the symmetry is no part, or the network has several symmetries.
        """
        if len(self.symmetries) > 1:
            raise ValueError("a mixture of symmetries cannot be restricted: restrict a network that has one.")
        whole, how = self.symmetries[0], self.averaging
        if not symmetry <= whole:
            raise ValueError(f"{symmetry.name} is no part of {whole.name}: name one of its subgroups, or trivial.")
        if how.native is not None and not how.native <= symmetry:
            raise ValueError(
                f"the network is invariant to {how.native.name} by its construction, which {symmetry.name} lacks: "
                "fit again."
            )
        network = Symmetrized(
            self.module,
            [symmetry],
            self.averages,
            how.pool,
            standardize=self.standardize,
            probabilities=how.probabilities,
            sampled=how.sampled,
            seed=how.seed,
            input_shape=how.input_shape,
            native=how.native,
            head=how.head,
            drawn=how.drawn,
        )
        network.calibrate = self.calibrate
        return network.train(self.training)

    @torch.no_grad()
    def fold(self) -> nn.Module:
        """Make plain torch layers with the same outputs: for `weights`, and for `features` with one hidden layer.

        Returns:
            The plain network.

        Raises:
            ValueError: If there are no such layers.

        """
        folded = self.placement.fold(self.module, self._estimate(), self.standardize)
        last = folded[-1] if isinstance(folded, nn.Sequential) else folded
        if not isinstance(last, nn.Linear):
            raise ValueError("a network that does not end with nn.Linear does not fold into plain layers.")
        self.calibrate.folded_into(last)
        return folded

    def _standardized(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        return x if self.standardize is None else self.standardize(x)

    def _estimate(self) -> Float[Tensor, " symmetries"]:
        return F.softmax(self.logits, dim=-1) if self.learns_pi else torch.ones_like(self.logits)

    def _parts(self, x: Float[Tensor, "*batch dim"]) -> Sequence[Tensor]:
        """Split a batch if it would make too many copies, so that memory stays bounded."""
        if torch.is_grad_enabled() or torch.compiler.is_exporting() or x.ndim != 2:
            return [x]
        copies = self.placement.copies(self.module)
        at_once = max(1, min(COPIES_AT_ONCE, NUMBERS_AT_ONCE // x.shape[1]) // copies)
        if copies == 1 or len(x) <= at_once:
            return [x]
        # Batch norm in training mode needs the statistics of the whole batch.
        if any(m.training for m in self.module.modules()):
            return [x]
        return x.split(at_once)


def _several_axes(shape: tuple[int, ...] | None, symmetry: AnySymmetry) -> tuple[int, ...] | None:
    """The shape of inputs that a symmetry acts on; None if they are flat anyway."""
    if shape is None:
        return None
    if math.prod(shape) != symmetry.dim:
        raise ValueError(
            f"input_shape {shape} has {math.prod(shape)} numbers, but {symmetry.name} acts on {symmetry.dim}: "
            "make both for the same shape."
        )
    return shape if len(shape) > 1 else None
