"""How far a function is from being invariant inside a range, measured on inputs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from invariantnet.symmetries.ranges import Range

EVALUATIONS = 50_000
"""Copies of inputs that a network computes while it is measured: a few seconds for a CNN."""

POSITIONS = 65
"""Positions to try in a range with one parameter: four times as many as it has copies, the two ends included."""

MOST_POSITIONS = 1000
"""Most positions to try in a range with several parameters; each one is a pass of the function over all inputs."""


SMALL = 0.05
"""Change of a typical probability up to which a function is called nearly invariant."""


@dataclass(frozen=True)
class Deviation:
    """The change of a function's outputs under the transformations of a range.

    Args:
        largest: Largest change of any output of any input.
        mean: Mean over inputs of the largest change of any of their outputs.
        position: Where the largest change was found: from -1 to 1 for each parameter, the share of the range's
            value.
    """

    largest: float
    mean: float
    position: tuple[float, ...]

    @property
    def is_small(self) -> bool:
        """Whether a typical probability changes by so little that few answers change."""
        return self.mean <= SMALL

    def __str__(self) -> str:
        return f"{self.mean:.2g} for a typical input and {self.largest:.2g} at worst"


@torch.no_grad()
def deviation(
    function: Callable[[Tensor], Tensor],
    symmetry: Range,
    x: Float[Tensor, "n dim"],
    positions: int | None = None,
) -> Deviation:
    r"""Measure $\max_t |f(T_t x) - f(x)|$ over a fine grid of the range.

    Args:
        function: Function of a batch of flat inputs; to measure probabilities, let it return these.
        symmetry: The range; if it includes a group, every element is combined with every position.
        x: Inputs to try.
        positions: Positions to try for each parameter; None takes as many as are affordable.

    Returns:
        The largest change, its mean over inputs, and where it was found.

    Example:
        >>> from invariantnet import symmetry
        >>> turns = symmetry("rotation:30", shape=(4, 4))
        >>> deviation(lambda x: x[:, :1], turns, torch.eye(16)).largest > 0.3
        True
    """
    reference = function(x)
    worst = torch.zeros(len(x), dtype=reference.dtype, device=reference.device)
    largest, at = 0.0, (0.0,) * symmetry.parameters
    inputs = [x] if symmetry.group is None else symmetry.group.act(x).unbind(dim=-2)
    for position in product(_grid(symmetry, positions), repeat=symmetry.parameters):
        for copy in inputs:
            change = (function(symmetry.move(copy, position)) - reference).abs().reshape(len(x), -1).amax(dim=1)
            worst = torch.maximum(worst, change)
            if float(change.max()) > largest:
                largest, at = float(change.max()), position
    return Deviation(largest, float(worst.mean()), at)


def affordable_positions(symmetry: Range, inputs: int) -> int:
    """Positions for each parameter at which a network that pools over the range is measured in a few seconds.

    Args:
        symmetry: The range that the network pools over.
        inputs: Number of inputs to measure on.

    Returns:
        An odd number, at least 3.
    """
    order = 1 if symmetry.group is None else symmetry.group.order
    affordable = int((EVALUATIONS / (inputs * symmetry.copies * order)) ** (1 / symmetry.parameters))
    return max(3, min(POSITIONS, affordable - 1 + affordable % 2))


def _grid(symmetry: Range, positions: int | None) -> list[float]:
    """Equal steps from -1 to 1; an odd number of them by default, so that 0 is among them."""
    if positions is None:
        affordable = math.floor(MOST_POSITIONS ** (1 / max(1, symmetry.parameters)) + 1e-9)
        positions = min(POSITIONS, affordable - 1 + affordable % 2)
    return torch.linspace(-1, 1, positions, dtype=torch.float64).tolist()
