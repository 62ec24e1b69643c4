r"""Ranges of continuous transformations: rotations by up to 30°, shifts by up to two pixels.

A group has its Haar measure, a range a uniform one, $\mu_\theta = U[-\theta, \theta]$. Copies of an input are a
quadrature of this measure. A network that pools over them is nearly invariant inside the range; how nearly is measured
(`deviation`), never promised.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Float64
from numpy import ndarray
from torch import Tensor
from torch.nn import functional as F

from invariantnet.symmetries._affine import Affine
from invariantnet.symmetries._lattice import lattice
from invariantnet.symmetries.families import Family, Step
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.shapes import Shape

COPIES = {1: 16, 2: 32}
"""Copies of an input by the number of parameters: enough that a network bridges the gaps between them.

Equal for all rungs of a ladder, however far they reach: pooling over more copies makes a better network whether
the symmetry is there or not, so a rung with more copies would win for the wrong reason.
"""

MOST_COPIES = 64
"""Copies of a range with three or more parameters, and most copies of any: a step costs as many plain ones."""

FEWEST_NODES = 4
"""Fewest points of a range that are worth combining with a group."""


@dataclass(frozen=True)
class Extent:
    """How far one family reaches.

    Args:
        family: Kind of transformation.
        value: Its value, in the unit of the family.
    """

    family: Family
    value: float

    @property
    def name(self) -> str:
        """Name by which users ask for it, such as `rotation:30`."""
        return f"{self.family.name}:{self.value:.10g}"

    @property
    def is_none(self) -> bool:
        """Whether the range holds only the identity."""
        return self.value == self.family.none


@dataclass(frozen=True, repr=False)
class Range:
    """All transformations of one or several families up to a value, and optionally the elements of a group.

    Take ranges by name with `symmetry`. Ranges compare like sets: `a <= b` if every transformation of a is one of b.

    Args:
        extents: How far each family reaches; applied in this order.
        shape: Shape of one input.
        group: A group whose elements are applied first. A network that pools over the copies is exactly invariant
            to it; None stands for no group.
        nodes: Points of the quadrature; None takes as many as suit the number of parameters.

    Example:
        >>> from invariantnet import symmetry
        >>> turns = symmetry("rotation:180", shape=(3, 3))
        >>> turns
        Range('rotation:180', copies=16, dim=9)
        >>> turns.act(torch.arange(9.0))[4].reshape(3, 3)
        tensor([[2., 5., 8.],
                [1., 4., 7.],
                [0., 3., 6.]])
    """

    extents: tuple[Extent, ...]
    shape: Shape
    group: Group | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        for extent in self.extents:
            extent.family.check(extent.value, self.shape)
        if self._nodes < FEWEST_NODES and not self._is_none:
            raise ValueError(
                f"{self.name} would need more than {MOST_COPIES} copies of an input: use a group of at most "
                f"{MOST_COPIES // FEWEST_NODES} elements, or compare the two apart."
            )

    @property
    def name(self) -> str:
        """Name by which users ask for it, such as `rotation:30` or `hflip+rotation:30`."""
        return "+".join([*([self.group.name] if self.group else []), *(e.name for e in self.extents)])

    @property
    def family(self) -> str:
        """Name of its ladder, such as `rotation` or `hflip+rotation`."""
        return "+".join([*([self.group.name] if self.group else []), *(e.family.name for e in self.extents)])

    @property
    def value(self) -> float:
        """Value of its last family: the one that a ladder varies."""
        return self.extents[-1].value

    @property
    def unit(self) -> str:
        """Unit of the value, such as "°" or "pixels"."""
        return self.extents[-1].family.unit

    @property
    def words(self) -> str:
        """What it holds, such as "rotation by up to ±30°"."""
        return " and ".join(
            [*([self.group.name] if self.group else []), *(e.family.words(e.value) for e in self.extents)]
        )

    @property
    def dim(self) -> int:
        """Numbers in one input."""
        return math.prod(self.shape)

    @property
    def parameters(self) -> int:
        """Number of continuous parameters."""
        return sum(e.family.parameters for e in self.extents)

    @property
    def exact(self) -> bool:
        """Whether a network that pools over the copies is invariant up to rounding: only without any extent."""
        return self._is_none

    @property
    def size(self) -> float:
        """Larger for a larger range of the same family."""
        reach = sum(math.log(e.value) if e.family.factor else e.value for e in self.extents)
        return (self.group.order if self.group else 1) * (1.0 + reach)

    @cached_property
    def copies(self) -> int:
        """Number of copies that `act` makes of an input."""
        return (self.group.order if self.group else 1) * (1 if self._is_none else self._nodes)

    def act(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch copies dim"]:
        """Make the copies of flat inputs; the first is the input itself, bit for bit.

        Args:
            x: Inputs of any floating-point type, on any device.

        Returns:
            The copies, of the type of `x`.

        Raises:
            ValueError: The inputs have another length, or are no floating-point numbers.
        """
        self._check(x)
        inputs = x.unsqueeze(-2) if self.group is None else self.group.act(x)
        if self._is_none:
            return inputs
        copies = (self.move(inputs, position) for position in lattice(self._nodes, self.parameters))
        return _stacked(copies, inputs, self._nodes).flatten(-3, -2)

    def move(
        self, x: Float[Tensor, "*batch dim"], position: Sequence[float] | Float64[ndarray, " parameters"]
    ) -> Float[Tensor, "*batch dim"]:
        """Transform inputs by one transformation of the range.

        Args:
            x: Flat inputs.
            position: From -1 to 1 for each parameter: the share of the value, 0 for the identity.

        Raises:
            ValueError: The inputs have another length, or are no floating-point numbers.
        """
        self._check(x)
        if not any(position):
            return x
        moved = x.reshape(-1, *self.shape)
        for step in self._steps(tuple(float(t) for t in position)):
            moved = _warped(moved, step) if isinstance(step, Affine) else step(moved)
            if moved.shape[1:] != self.shape:
                raise ValueError(
                    f"{self.name} made inputs of shape {tuple(moved.shape[1:])} from {self.shape}: return the shape "
                    "that the function was given, the batch first."
                )
        return moved.reshape(x.shape)

    def __le__(self, other: object) -> bool:
        if isinstance(other, Range):
            reach = {e.family.name: e.value for e in other.extents}
            within = all(e.is_none or e.value <= reach.get(e.family.name, -math.inf) for e in self.extents)
            return self.shape == other.shape and within and (self.group is None or self.group <= other)
        if isinstance(other, Group):
            return self._is_none and self.dim == other.dim and (self.group is None or self.group <= other)
        return NotImplemented

    def __ge__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        if self.dim != other.dim or not other.can_list_elements:
            return False
        if self.group is not None and other <= self.group:
            return True
        # A group is inside if each of its elements is among the copies, bit for bit, of an input without symmetry.
        probe = torch.rand(self.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        ours = {copy.numpy().tobytes() for copy in self.act(probe)}
        return other.order <= len(ours) and all(copy.numpy().tobytes() in ours for copy in other.act(probe))

    def __repr__(self) -> str:
        return f"Range({self.name!r}, copies={self.copies}, dim={self.dim})"

    @property
    def _is_none(self) -> bool:
        return all(e.is_none for e in self.extents)

    @property
    def _nodes(self) -> int:
        wanted = self.nodes or COPIES.get(self.parameters, MOST_COPIES)
        return wanted if self.group is None else min(wanted, MOST_COPIES // self.group.order)

    def _steps(self, position: Sequence[float]) -> list[Step]:
        """Transformations at a position; neighbouring affine maps become one, so that inputs are interpolated once."""
        steps: list[Step] = []
        used = 0
        for extent in self.extents:
            step = extent.family.at(extent.value, position[used : used + extent.family.parameters])
            used += extent.family.parameters
            if steps and isinstance(step, Affine) and isinstance(steps[-1], Affine):
                steps[-1] = steps[-1].then(step)
            else:
                steps.append(step)
        return steps

    def _check(self, x: Tensor) -> None:
        if x.shape[-1] != self.dim:
            raise ValueError(
                f"{self.name} acts on {self.dim} inputs, x has {x.shape[-1]} in its last axis: use one shape for both."
            )
        if not x.is_floating_point():
            raise ValueError(f"{self.name} acts on floating-point tensors, not {x.dtype}: use x.float().")


def combined(first: Range, second: Range | Group) -> Range:
    """Join a range with a range or a group: the transformations of both, one after the other.

    Args:
        first: A range.
        second: A range for inputs of the same shape, or a group on inputs of the same length.

    Returns:
        The larger one if it contains the other. Families of both take the larger value.

    Raises:
        ValueError: The inputs differ, both have a group, or there are too many copies.
    """
    if first.dim != second.dim:
        raise ValueError(f"{first.name} and {second.name} act on inputs of different lengths: make both for one shape.")
    if second <= first:
        return first
    if isinstance(second, Group):
        if first.group is not None:
            raise ValueError(f"{first.name} has a group already: join the groups first, then the range.")
        return replace(first, group=second)
    if first <= second:
        return second
    if first.group is not None and second.group is not None:
        raise ValueError(f"{first.name} and {second.name} both have a group: join the groups first, then the ranges.")
    reach: dict[str, Extent] = {}
    for extent in (*first.extents, *second.extents):
        known = reach.get(extent.family.name)
        if known is None or extent.value > known.value:
            reach[extent.family.name] = extent
    return Range(tuple(reach.values()), first.shape, first.group or second.group)


def _stacked(copies: Iterator[Tensor], like: Tensor, count: int) -> Float[Tensor, "*batch count dim"]:
    """Stack copies before the last axis; without gradients into one array, so that memory holds them once."""
    if torch.compiler.is_exporting() or like.requires_grad:
        return torch.stack(list(copies), dim=-2)
    stacked = like.new_empty((*like.shape[:-1], count, like.shape[-1]))
    for k, copy in enumerate(copies):
        stacked[..., k, :] = copy
    return stacked


def _warped(x: Float[Tensor, "batch *shape"], affine: Affine) -> Float[Tensor, "batch *shape"]:
    """Interpolate images, or sequences as images of one column per feature."""
    height, width = x.shape[-2:] if x.ndim > 2 else (x.shape[1], 1)
    indices, shares = affine.corners(int(height), int(width))
    index = torch.from_numpy(indices).to(x.device)
    share = torch.from_numpy(shares).to(x)
    planes = x.reshape(-1, height * width)
    if torch.compiler.is_exporting():
        # ONNX has no embedding bag: gather all four corners at once, which takes more memory.
        return (planes[:, index.long()] * share).sum(-1).reshape(x.shape)
    mixed = F.embedding_bag(index, planes.T.contiguous(), per_sample_weights=share, mode="sum")
    return mixed.T.reshape(x.shape)
