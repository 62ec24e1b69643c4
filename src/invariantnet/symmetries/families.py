"""The named families of ranges: what each does to an input by how much, and which values make its ladder.

A family is one function from parameters to a transformation. Spatial ones return an affine map, so that several of
them interpolate once; others return a function of a batch of inputs in their shape. Both commute with every change
of the units of a channel (x → ax + b): what enters the frame repeats its border, contrast acts around the mean of
a channel, and brightness is measured in standard deviations of the channel itself. So the scale of the data
changes no verdict.

Nothing here imports torch, so the command line lists the families at once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from invariantnet.symmetries._affine import Affine
from invariantnet.symmetries.catalogue import IMAGE, SEQUENCE
from invariantnet.symmetries.shapes import Shape

Step = Affine | Callable[[Any], Any]
"""One transformation: an affine map, or a function of a tensor of inputs in their shape, the batch first."""

Values = Callable[[Shape], Sequence[float]]
"""Rungs of a ladder for a shape, in ascending order."""

LARGEST_SHIFT = 0.3
"""Share of a side by which the last rung of a ladder shifts an input: beyond it, little is left in the frame."""

DISTANCES = tuple(float(base * 2**k) for k in range(14) for base in ((1,) if k == 0 else (1, 1.5)))
"""Distances in pixels or steps from which ladders are made: 1, 2, 3, 4, 6, 8, 12, …"""

RUNGS = 7
"""Most rungs of a ladder: with "no symmetry", eight hypotheses."""

MOST_BESIDE = 8
"""Elements of a group that leave room for the copies of a range beside it."""

FACTORS = (1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5)
"""Ladder of factors of size, in steps that move the border of a 28×28 digit by one to two pixels."""

STRENGTHS = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
"""Ladder of factors of contrast and amplitude."""

OFFSETS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0)
"""Ladder of offsets, in standard deviations of the input itself."""


def _unlimited(shape: Shape) -> float:
    return math.inf


@dataclass(frozen=True)
class Family:
    """One kind of continuous transformation.

    Args:
        name: Name by which users ask for it.
        plain: What people call such transformations, in the plural; verdicts show it beside the name.
        description: What it does to an input, for the command line.
        shapes: Input shapes that it acts on, for the command line.
        unit: What the value of a range counts, such as "°" or "pixels".
        step: Makes the transformation for values of its parameters.
        ladder: Values of the default ladder, for a shape.
        axes: Numbers of axes of the input shapes that it acts on.
        parameters: Number of independent parameters, each of which takes every value of the range.
        factor: Whether the parameter multiplies, from one over the value to the value, evenly in its logarithm;
            else it adds, from minus the value to the value.
        most: Largest value, for a shape.
        period: Value at which both ends of the range are the same transformation, if there is one.
    """

    name: str
    plain: str
    description: str
    shapes: str
    unit: str
    step: Callable[..., Step]
    ladder: Values
    axes: tuple[int, ...]
    parameters: int = 1
    factor: bool = False
    most: Callable[[Shape], float] = _unlimited
    period: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # A family of the table is pickled by its name; one that is not registered elsewhere takes its functions
        # along.
        if FAMILIES.get(self.name) is self and self.name in CATALOGUED:
            return _catalogued, (self.name,)
        return Family, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def none(self) -> float:
        """Value of the range that holds only the identity."""
        return 1.0 if self.factor else 0.0

    @property
    def counts(self) -> str:
        """What a value is, in the plural."""
        return "factors" if self.factor else {"°": "degrees", "": "values"}.get(self.unit, self.unit)

    def at(self, value: float, positions: Sequence[float]) -> Step:
        """Make the transformation at a position in a range.

        Args:
            value: Value of the range.
            positions: From -1 to 1 for each parameter; 0 is the identity.

        Returns:
            The transformation.
        """
        return self.step(*((value**t if self.factor else value * t) for t in positions))

    def words(self, value: float) -> str:
        """Describe a range, such as "rotations up to 30°"."""
        number = f"{value:.10g}"
        if self.factor:
            return f"{self.plain} up to {number}-fold"
        unit = self.unit if self.unit in ("", "°") else f" {self.unit}"
        return f"{self.plain} up to {number}{unit}"

    def check(self, value: float, shape: Shape) -> None:
        """Raise a ValueError that names the remedy if there is no such range for inputs of a shape."""
        if len(shape) not in self.axes:
            raise ValueError(f"{self.name} acts on inputs of shape {self.shapes}, got {shape}: pass such a shape.")
        if not math.isfinite(value) or value < self.none:
            raise ValueError(
                f"{self.name}:{value:g} is no range: {self.name} takes {self.counts} of at least {self.none:g}."
            )
        if value > self.most(shape):
            raise ValueError(
                f"{self.name}:{value:g} is too far for shape {shape}: {self.name} goes up to {self.most(shape):g}."
            )


FAMILIES: dict[str, Family] = {}
"""All families, by name, in the order in which the command line lists them; registered ones come last."""


def _catalogued(name: str) -> Family:
    return FAMILIES[name]


def _family(
    name: str, plain: str, description: str, shapes: str, unit: str, ladder: Values, **options: Any
) -> Callable[[Callable[..., Step]], Callable[..., Step]]:
    axes = (2, 3) if shapes == IMAGE else (1, 2)

    def add(step: Callable[..., Step]) -> Callable[..., Step]:
        FAMILIES[name] = Family(name, plain, description, shapes, unit, step, ladder, axes, **options)
        return step

    return add


def _always(*values: float) -> Values:
    return lambda shape: values


def _most(value: float) -> Callable[[Shape], float]:
    return lambda shape: value


def _distances(side: int) -> Sequence[float]:
    """Largest distances that leave most of an input in its frame; on large inputs small ones have no effect."""
    return [d for d in DISTANCES if d <= max(1.0, LARGEST_SHIFT * side)][-RUNGS:]


@_family("rotation", "rotations", "turns of an image about its centre", IMAGE, "°",
         _always(15.0, 30.0, 45.0, 60.0, 90.0, 135.0, 180.0), most=_most(180.0), period=180.0)  # fmt: skip
def _rotation(degrees: float) -> Step:
    return Affine.rotation(degrees)


@_family("translation", "shifts", "shifts in both directions; what leaves the frame is gone", IMAGE, "pixels",
         lambda shape: _distances(min(shape[-2:])), parameters=2,
         most=lambda shape: float(min(shape[-2:])))  # fmt: skip
def _translation(down: float, right: float) -> Step:
    return Affine(shift=(-down, -right))


@_family("scaling", "changes of size", "smaller and larger images, about their centre", IMAGE, "×",
         _always(*FACTORS), factor=True, most=_most(8.0))  # fmt: skip
def _scaling(factor: float) -> Step:
    return Affine(((1 / factor, 0.0), (0.0, 1 / factor)))


@_family("shear", "slants", "images that lean to the left or right", IMAGE, "°",
         _always(5.0, 10.0, 15.0, 20.0, 30.0, 40.0), most=_most(75.0))  # fmt: skip
def _shear(degrees: float) -> Step:
    return Affine(((1.0, 0.0), (math.tan(math.radians(degrees)), 1.0)))


@_family("brightness", "changes of brightness", "a constant added to every channel", IMAGE,
         "standard deviations of the channel", _always(*OFFSETS))  # fmt: skip
def _brightness(amount: float) -> Step:
    return lambda x: x + amount * _spread(x, (-2, -1))


@_family("contrast", "changes of contrast", "every channel stretched around its mean", IMAGE, "×",
         _always(*STRENGTHS), factor=True, most=_most(100.0))  # fmt: skip
def _contrast(factor: float) -> Step:
    return lambda x: _mean(x, (-2, -1)) + factor * (x - _mean(x, (-2, -1)))


@_family("time-shift", "shifts in time", "earlier or later; what leaves the window is gone", SEQUENCE, "steps",
         lambda shape: _distances(shape[0]), most=lambda shape: float(shape[0]))  # fmt: skip
def _time_shift(later: float) -> Step:
    return Affine(shift=(-later, 0.0))


@_family("time-scale", "changes of speed", "slower or faster, about the middle", SEQUENCE, "×",
         _always(*FACTORS), factor=True, most=_most(8.0))  # fmt: skip
def _time_scale(factor: float) -> Step:
    return Affine(((1 / factor, 0.0), (0.0, 1.0)))


@_family("amplitude", "changes of amplitude", "every feature stretched around its mean over time", SEQUENCE, "×",
         _always(*STRENGTHS), factor=True, most=_most(100.0))  # fmt: skip
def _amplitude(factor: float) -> Step:
    return lambda x: _mean(x, (1,)) + factor * (x - _mean(x, (1,)))


@_family("offset", "added constants", "a constant added to every feature", SEQUENCE,
         "standard deviations of the feature", _always(*OFFSETS))  # fmt: skip
def _offset(amount: float) -> Step:
    return lambda x: x + amount * _spread(x, (1,))


def _mean(x: Any, axes: tuple[int, ...]) -> Any:
    return x.mean(axes, keepdim=True)


def _spread(x: Any, axes: tuple[int, ...]) -> Any:
    """Standard deviation; written out, because that of a single value has to be 0."""
    return _mean((x - _mean(x, axes)) ** 2, axes).sqrt()


CATALOGUED = frozenset(FAMILIES)
"""Names of the families of this module, which every process knows."""
