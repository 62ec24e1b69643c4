"""What a group and a range have in common."""

from typing import Protocol

from jaxtyping import Shaped
from torch import Tensor

from invariantnet.symmetries.shapes import Shape


class Symmetry(Protocol):
    """Transformations of an input under which its label is expected to stay the same.

    Everything that compares, averages or reports symmetries needs no more than this. Groups hold all their
    elements and make a network exactly invariant; ranges hold a quadrature of a continuous measure and do so
    nearly.
    """

    @property
    def name(self) -> str:
        """Name by which users ask for it, such as `rot90` or `rotation:30`."""

    @property
    def dim(self) -> int:
        """Numbers in one input."""

    @property
    def shape(self) -> Shape | None:
        """Shape of one input, if known."""

    @property
    def copies(self) -> int:
        """Number of copies that `act` makes of an input."""

    @property
    def exact(self) -> bool:
        """Whether a network that pools over the copies is invariant up to rounding."""

    @property
    def size(self) -> float:
        """Larger for a larger symmetry: orders groups by elements, and ranges of one family by extent."""

    def act(self, x: Shaped[Tensor, "*batch dim"]) -> Shaped[Tensor, "*batch copies dim"]:
        """Transform flat inputs; the first copy is the input itself."""
