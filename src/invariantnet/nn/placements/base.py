"""What a placement must know, and what placements that transform inputs share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.choices import Pool
from invariantnet.nn.standardize import Standardize
from invariantnet.symmetries.cosets import coset_representatives
from invariantnet.symmetries.group import Group, changes_signs, transform
from invariantnet.symmetries.measure import Measure
from invariantnet.symmetries.ranges import AnySymmetry, Range


@dataclass(frozen=True)
class Averaging:
    """How a network is averaged over symmetries, whatever the placement.

    Args:
        pool: How the features of the copies become one feature vector.
        probabilities: Whether outputs are logits, so that their average is one of probabilities.
        sampled: Largest number of elements; groups with more are sampled.
        seed: Seed of the sampled elements.
        input_shape: Shape in which the network takes an input; None if it takes flat inputs.
        native: A subgroup that the network is invariant to by construction.
        head: Name of the layer before which features are pooled; None finds it.
        drawn: Random copies along a range that a training step of `outputs` learns from; None takes all copies.

    """

    pool: Pool
    probabilities: bool
    sampled: int
    seed: int
    input_shape: tuple[int, ...] | None
    native: Group | None = None
    head: str | None = None
    drawn: int | None = None

    def measure(self, symmetries: Sequence[Group]) -> Measure:
        """The transformations to average over: one per coset of what the network is invariant to already."""
        if self.native is not None and len(symmetries) == 1:
            found = coset_representatives(symmetries[0], self.native, self.sampled)
            if found is not None:
                elements = torch.from_numpy(found)
                return Measure(elements, torch.full((len(elements), 1), 1 / len(elements)))
        return Measure.of(symmetries, sampled=self.sampled, seed=self.seed)

    def is_exact(self, symmetries: Sequence[Group], measure: Measure) -> bool:
        """Whether no element of a group is left out."""
        if self.native is not None:
            return len(measure.elements) * self.native.order == symmetries[0].order
        return all(g.can_list_elements and g.order <= self.sampled for g in symmetries)


class BasePlacement(nn.Module, ABC):
    """Averages a network over symmetries in one place.

    A placement has no parameters, and its buffers are not stored, because they follow from the symmetries. It does
    not own the network either: `Symmetrized` passes it to every call.

    Args:
        module: The network; a placement refuses one that it cannot average.
        symmetries: The symmetries to average over.
        averaging: How to average.

    """

    pools: ClassVar[tuple[Pool, ...]] = ("mean",)
    """The pools that make sense in this place."""

    def __init__(self, module: nn.Module, symmetries: Sequence[AnySymmetry], averaging: Averaging) -> None:
        super().__init__()
        self.exact = True
        """Whether the network is invariant up to rounding, rather than averaged over sampled elements."""
        self.prepares_copies = False
        """Whether `prepare` makes a copy of every input for every element, rather than one row."""

    @abstractmethod
    def average(
        self, module: nn.Module, x: Float[Tensor, "*batch dim"], pi: Float[Tensor, "..."]
    ) -> Float[Tensor, "*batch outputs"]:
        """Compute the averaged network.

        Args:
            module: The network.
            x: Flat inputs.
            pi: Probability of each symmetry.

        Returns:
            One row of outputs per input.

        """

    def fold(self, module: nn.Module, pi: Float[Tensor, " symmetries"], inputs: Standardize | None) -> nn.Module:
        """Make plain torch layers with the same outputs.

        Args:
            module: The network.
            pi: Probability of each symmetry.
            inputs: What brings the inputs to order one.

        Returns:
            The plain network.

        Raises:
            ValueError: If there are no such layers.

        """
        raise ValueError("only 'weights', and 'features' with one hidden layer, fold into plain layers.")

    def copies(self, module: nn.Module) -> int:
        """Count the copies that are made of each input; where there are many, batches are split."""
        return 1

    def moved_weight(self, module: nn.Module) -> Tensor | None:
        """Return the weight that is transformed instead of the inputs, or None."""
        return None

    def prepare(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n prepared"]:
        """Compute what comes before the first weights, with a single symmetry; by default nothing does.

        Args:
            x: Flat inputs.

        Returns:
            One row per input, for `finish`.

        """
        return x

    def finish(self, module: nn.Module, z: Float[Tensor, "n prepared"]) -> Float[Tensor, "n outputs"]:
        """Compute the averaged network from what `prepare` returned.

        Args:
            module: The network.
            z: Prepared inputs.

        Returns:
            One row of outputs per input.

        """
        return self.average(module, z, z.new_ones(1))


class OverElements(BasePlacement):
    r"""A placement that averages over the elements of $\mu_\pi = \sum_k \pi_k \mu_k$, or over a range."""

    elements: Tensor
    haar: Tensor

    def __init__(self, module: nn.Module, symmetries: Sequence[AnySymmetry], averaging: Averaging) -> None:
        super().__init__(module, symmetries, averaging)
        self.input_shape = averaging.input_shape
        self.range, groups = single_range(symmetries)
        self.prepares_copies = self.range is None  # a step along a range learns from copies of its own
        if self.range is not None:
            self.exact, self.uniform, self.signed = self.range.exact, True, False
            share = torch.full((self.range.copies, 1), 1 / self.range.copies)
            self.register_buffer("elements", None)
            self.register_buffer("haar", share, persistent=False)
            return
        measure = averaging.measure(groups)
        self.exact = averaging.is_exact(groups, measure)
        self.register_buffer("elements", measure.elements, persistent=False)
        self.register_buffer("haar", measure.haar, persistent=False)
        # Found once, here: a traced forward pass cannot branch on the values of tensors.
        self.signed = changes_signs(measure.elements)
        self.uniform = len(symmetries) == 1 and bool((measure.haar == measure.haar[0]).all())

    def weighted_elements(self, pi: Float[Tensor, "..."]) -> tuple[Float[Tensor, "n ..."], Tensor | slice]:
        """Weights of the elements, and which elements have any: a one-hot π pays only for its own group.

        Args:
            pi: Probability of each symmetry, or a row of them per feature.

        Returns:
            The weights of the elements to use, and the mask or slice that selects these elements.

        """
        if self.haar.shape[1] == 1:
            return self.haar[:, 0].to(pi), slice(None)
        weights = self.haar.to(pi) @ (pi.mT if pi.ndim == 2 else pi)
        used = (weights.detach() > 0).reshape(len(weights), -1).any(1)
        return (weights, slice(None)) if bool(used.all()) else (weights[used], used)

    def transformed(
        self, x: Float[Tensor, "*batch dim"], used: Tensor | slice
    ) -> tuple[Float[Tensor, "copies *shape"], torch.Size]:
        """Make the copies of all inputs, in the shape that the network takes.

        Args:
            x: Flat inputs.
            used: Which elements to apply.

        Returns:
            The copies along one axis, and the axes (*batch, elements) that they stand for.

        """
        copies = self.range.act(x) if self.range is not None else transform(x, self.elements[used], self.signed)
        return self.in_shape(copies), copies.shape[:-1]

    def prepare(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n prepared"]:
        """Make the copies of all inputs."""
        return transform(x, self.elements, self.signed).flatten(1) if self.prepares_copies else x

    def prepared_copies(self, z: Float[Tensor, "n prepared"]) -> Float[Tensor, "copies *shape"]:
        """Line up prepared copies along one axis, in the shape that the network takes."""
        return self.in_shape(z.unflatten(1, (len(self.haar), -1)))

    def in_shape(self, copies: Float[Tensor, "*batch n dim"]) -> Float[Tensor, "copies *shape"]:
        """Line up flat copies along one axis, in the shape that the network takes."""
        flat = copies.flatten(0, -2)
        return flat if self.input_shape is None else flat.unflatten(-1, self.input_shape)

    def mean(
        self, values: Float[Tensor, "*batch n features"], weights: Float[Tensor, "n ..."]
    ) -> Float[Tensor, "*batch features"]:
        """Average the values of the copies by the weights of their elements."""
        if self.uniform:
            return values.mean(-2)
        return torch.einsum("gf,...gf->...f" if weights.ndim == 2 else "g,...gf->...f", weights, values)


def single_range(symmetries: Sequence[AnySymmetry]) -> tuple[Range | None, list[Group]]:
    """Tell a range to average over from groups.

    Args:
        symmetries: A single range, or any number of groups.

    Returns:
        The range, or None; and the groups.

    Raises:
        ValueError: If a range is one of several symmetries.
    """
    ranges = [s for s in symmetries if isinstance(s, Range)]
    if ranges and len(symmetries) > 1:
        raise ValueError(
            f"{ranges[0].name} is a range, and a mixture is over groups: average over one range alone, and "
            "compare ranges by method 'evidence'."
        )
    return ranges[0] if ranges else None, [s for s in symmetries if isinstance(s, Group)]
