r"""Ranges of continuous transformations: rotations by up to 30°, shifts by up to two pixels.

A group has its Haar measure, a range a uniform one, $\mu_\theta = U[-\theta, \theta]$. Copies of an input are a
quadrature of this measure. A network that pools over them is nearly invariant inside the range; how nearly is
measured (`deviation`), never promised.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Float64, Shaped
from numpy import ndarray
from torch import Tensor

from invariantnet.symmetries._affine import Affine
from invariantnet.symmetries._lattice import lattice
from invariantnet.symmetries._warp import stacked, warped
from invariantnet.symmetries.families import Family, Step
from invariantnet.symmetries.group import Group, transform
from invariantnet.symmetries.plain import plain_name
from invariantnet.symmetries.shapes import Shape

NODES = {1: 15, 2: 45}
"""Points of the largest rung of a ladder, by the number of parameters, the last for more: odd, so that they lie
evenly on both sides of the identity."""

UNEVEN = 1 / 7
"""Largest share by which the units of a rung, copies times untied units, differ from those of the largest rung."""

WIDER = 0.1
"""Share by which the gaps between the copies of a rung may be wider than those of the largest rung."""

CIRCLE_NODES = 16
"""Points of a full circle: a multiple of 4, so that quarter turns are among them, next to the number above."""

MOST_COPIES = 64
"""Most copies of an input: a training step costs as many steps of a plain network."""


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

    @property
    def closes(self) -> bool:
        """Whether the two ends of the range are the same transformation, as on a full circle."""
        return self.value == self.family.period

    @property
    def reach(self) -> float:
        """Distance of its ends from the identity."""
        return math.log(self.value) if self.family.factor else self.value

    def share_of_ladder(self, shape: Shape) -> float:
        """Share that the range has, by length or area, of the largest rung of its ladder; at most 1."""
        largest = Extent(self.family, float(self.family.ladder(shape)[-1]))
        return min(1.0, self.reach / largest.reach) ** self.family.parameters


@dataclass(frozen=True, repr=False)
class Range:
    """All transformations of one or several families up to a value, and optionally the elements of a group.

    Take ranges by name with `symmetry`. Ranges compare like sets: `a <= b` if b contains every transformation of
    a.

    Args:
        extents: How far each family reaches; applied in this order.
        shape: Shape of one input.
        group: A group whose elements are applied first. A network that pools over the copies is exactly invariant
            to it; None stands for no group.
        nodes: Points of the quadrature; None takes as many as suit its extent.

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
        if self.copies > MOST_COPIES or self._nodes < self._fewest_nodes:
            raise ValueError(
                f"{self.name} would need more than {MOST_COPIES} copies of an input: use a group of at most "
                f"{MOST_COPIES // self._fewest_nodes} elements, or compare the two apart."
            )
        if self.group is not None:
            # List the elements now: a list made while torch exports would hold no numbers.
            _ = self.group.elements

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
        """What it holds, such as "rotations up to 30°"."""
        return plain_name(self.name)

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
        return (self.group.order if self.group else 1) * (1.0 + sum(e.reach for e in self.extents))

    @cached_property
    def copies(self) -> int:
        """Number of copies that `act` makes of an input."""
        return (self.group.order if self.group else 1) * (1 if self._is_none else self._nodes)

    def act(self, x: Shaped[Tensor, "*batch dim"]) -> Float[Tensor, "*batch copies dim"]:
        """Make the copies of flat inputs; the first is the input itself, bit for bit.

        Args:
            x: Inputs of any floating-point type, on any device.

        Returns:
            The copies, of the type of `x`.

        Raises:
            ValueError: The inputs have another length, or are no floating-point numbers.
        """
        self._check(x)
        inputs = x.unsqueeze(-2)
        if self.group is not None:
            # Signs are known beforehand: looking for them in the elements could not be exported.
            inputs = transform(x, self.group.elements, signed=not self.group.is_permutation_group)
        if self._is_none:
            return inputs
        copies = (self.move(inputs, position) for position in self.positions)
        return stacked(copies, inputs, self._nodes).flatten(-3, -2)

    @property
    def positions(self) -> Float64[ndarray, "nodes parameters"]:
        """Where the copies of an input lie in the range, from -1 to 1; the input itself is the first."""
        return lattice(1 if self._is_none else self._nodes, self.parameters)

    def move(
        self, x: Shaped[Tensor, "*batch dim"], position: Sequence[float] | Float64[ndarray, " parameters"]
    ) -> Float[Tensor, "*batch dim"]:
        """Transform inputs by one transformation of the range.

        Args:
            x: Flat inputs.
            position: From -1 to 1 for each parameter: the share of the value, 0 for the identity.

        Returns:
            The moved inputs.

        Raises:
            ValueError: The inputs have another length, or are no floating-point numbers.
        """
        self._check(x)
        if not any(position):
            return x
        moved = x.reshape(-1, *self.shape)
        for step in self.steps(tuple(float(t) for t in position)):
            moved = warped(moved, step) if isinstance(step, Affine) else step(moved)
            if moved.shape[1:] != self.shape:
                raise ValueError(
                    f"{self.name} made inputs of shape {tuple(moved.shape[1:])} from {self.shape}: return the "
                    "shape that the function was given, the batch first."
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
        if self.dim != other.dim:
            return False
        if self.group is not None and other <= self.group:
            return True
        if other.order > self.copies:
            return False
        # A group is inside if each of its elements is among the copies, bit for bit, of an input without symmetry.
        probe = torch.rand(self.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        ours = {copy.numpy().tobytes() for copy in self.act(probe)}
        return all(copy.numpy().tobytes() in ours for copy in other.act(probe))

    def __repr__(self) -> str:
        return f"Range({self.name!r}, copies={self.copies}, dim={self.dim})"

    @property
    def _is_none(self) -> bool:
        return all(e.is_none for e in self.extents)

    @property
    def _fewest_nodes(self) -> int:
        """The identity, and one point on either side of it for every parameter."""
        return 2 * self.parameters + 1

    @cached_property
    def _nodes(self) -> int:
        """Number of points: as many as keep them about as close together as on the largest rung of the ladder.

        Near copies of an input are nearly one copy. With equally many copies for all rungs, the units of a network
        that are tied over a small range would be few different ones, and the range would lose for this reason
        alone. With equal gaps and as many untied units as there are fewer copies, every rung has the same number
        of different units, as smaller groups have in comparison with larger ones.
        """
        if self.nodes is not None:
            return self.nodes
        affordable = MOST_COPIES // (self.group.order if self.group else 1)
        if len(self.extents) == 1 and self.extents[0].closes:
            return min(CIRCLE_NODES, affordable - affordable % 4)
        most = min(NODES.get(self.parameters, max(NODES.values())), affordable - 1 + affordable % 2)
        share = self.extents[0].share_of_ladder(self.shape)
        if len(self.extents) > 1 or share == 1:  # several families have few points for each already
            return most
        odd = range(self._fewest_nodes, most + 1, 2)
        even_units = [n for n in odd if abs(round(most / n) * n - most) <= UNEVEN * most]
        return min((n for n in even_units if n >= (1 - WIDER) * share * most), default=most)

    def steps(self, position: Sequence[float]) -> list[Step]:
        """Make the transformations at a position.

        Args:
            position: From -1 to 1 for each parameter, as in `move`.

        Returns:
            The transformations, to be made one after the other. Affine maps in a row are one, to interpolate once.
        """
        steps: list[Step] = []
        used = 0
        for extent in self.extents:
            own = position[used : used + extent.family.parameters]
            used += extent.family.parameters
            if not any(own):
                continue
            step = extent.family.at(extent.value, own)
            if steps and isinstance(step, Affine) and isinstance(steps[-1], Affine):
                steps[-1] = steps[-1].then(step)
            else:
                steps.append(step)
        return steps

    def _check(self, x: Tensor) -> None:
        if x.shape[-1] != self.dim:
            raise ValueError(
                f"{self.name} acts on {self.dim} inputs, x has {x.shape[-1]} in its last axis: use one shape."
            )
        if not x.is_floating_point():
            raise ValueError(f"{self.name} acts on floating-point tensors, not {x.dtype}: use x.float().")


AnySymmetry = Group | Range
"""What can be compared, and what a network can be averaged over."""


def combined(first: Range, second: Range) -> Range:
    """Join two ranges: the transformations of both, one after the other.

    Args:
        first: A range; its group is kept.
        second: A range without a group, for inputs of the same shape.

    Returns:
        The join; a family of both takes the larger value.

    Raises:
        ValueError: There are too many copies.
    """
    reach: dict[str, Extent] = {}
    for extent in (*first.extents, *second.extents):
        known = reach.get(extent.family.name)
        if known is None or extent.value > known.value:
            reach[extent.family.name] = extent
    return Range(tuple(reach.values()), first.shape, first.group)
