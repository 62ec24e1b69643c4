"""Copies along ranges for the page: affine maps as numbers, and sliders that move an input."""

from collections.abc import Sequence
from dataclasses import dataclass

from invariantnet.report.answers import Estimator
from invariantnet.symmetries._affine import Affine
from invariantnet.symmetries.ranges import Extent, Range

STOPS = 49
"""Positions of a slider: odd, so that the input itself is in the middle; every 7.5° of a full circle."""

MOST_SLIDERS = 3
"""Sliders on a page: one for each of the first families that were compared."""

Map = Sequence[float]
"""Four numbers of a matrix, row by row, and two of a shift, in rows and columns of pixels."""


@dataclass(frozen=True)
class Slider:
    """Moves an input along one range.

    Args:
        name: What it does, such as "rotation".
        labels: How far each stop moves the input, in words.
        maps: The affine map of each stop.
    """

    name: str
    labels: tuple[str, ...]
    maps: tuple[Map, ...]

    @property
    def middle(self) -> int:
        """The stop that leaves the input as it is."""
        return len(self.labels) // 2


def maps_of(symmetry: Range) -> list[Map] | None:
    """List the affine maps that make the copies of an input, without its group; None if they are no affine maps.

    Args:
        symmetry: A range.

    Returns:
        One map per copy; None if they are no affine maps.
    """
    return _maps(symmetry, symmetry.positions.tolist())


def sliders(clf: Estimator) -> list[Slider]:
    """Make a slider for each family of affine ranges that was compared.

    Args:
        clf: The fitted estimator.

    Returns:
        The sliders, one per family.
    """
    extents = [e for s in clf.candidates_ if isinstance(s, Range) for e in s.extents]
    found = []
    for name in dict.fromkeys(e.family.name for e in extents):
        largest = max((e for e in extents if e.family.name == name), key=lambda e: e.value)
        made = _slider(largest, clf.input_shape_)
        found += [] if made is None else [made]
    return found[:MOST_SLIDERS]


def _slider(extent: Extent, shape: tuple[int, ...]) -> Slider | None:
    """A slider over all of a range; of several parameters, such as down and right, it moves the last one."""
    family = extent.family
    shares = [2 * k / (STOPS - 1) - 1 for k in range(STOPS)]
    fixed = [0.0] * (family.parameters - 1)
    maps = _maps(Range((extent,), shape), [[*fixed, share] for share in shares])
    if maps is None:
        return None
    labels = tuple(_label(extent, share) for share in shares)
    return Slider(family.name, labels, tuple(maps))


def _label(extent: Extent, share: float) -> str:
    family = extent.family
    if family.factor:
        return f"×{extent.value**share:.2f}"
    unit = family.unit if family.unit in ("", "°") else f" {family.unit}"
    return f"{extent.value * share:+.3g}{unit}" if share else f"0{unit}"


def _maps(symmetry: Range, positions: Sequence[Sequence[float]]) -> list[Map] | None:
    found: list[Map] = []
    for position in positions:
        steps = symmetry.steps(position) or [Affine()]
        if len(steps) > 1 or not isinstance(steps[0], Affine):
            return None
        found.append(steps[0].numbers)
    return found
