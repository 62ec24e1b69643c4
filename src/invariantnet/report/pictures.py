"""Small pictures of inputs, as text that goes into a page."""

import base64
import io
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image

from invariantnet.inference.models import SHORTEST_SEQUENCE
from invariantnet.report.answers import Estimator
from invariantnet.symmetries.shapes import has_features

SIDE = 64
"""Pixels of a picture's longest side: a page shows it this large."""
COLOURS = ("#dcdcdc", "#f0b44c", "#6cb2f0", "#8fd18a")
"""Of the features of a sequence, on a dark ground; a fifth feature has the first colour again."""
GROUND = "#141414"
"""Behind everything but pixels."""
PLANE = (2, 3)
"""Numbers of each point of a set that is drawn as points: of three, the first two are drawn."""

Kind = Literal["pixels", "bars", "curves", "points"]


@dataclass(frozen=True, eq=False)
class Frame:
    """How inputs of one shape are drawn, all of them in the same range.

    Args:
        shape: Shape of one input.
        kind: Pixels of images, one bar per column of a table, one curve per feature of a sequence, or points.
        low: The number at the lower border, or black; for curves one per feature.
        high: The number at the upper border, or white.
    """

    shape: tuple[int, ...]
    kind: Kind
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, estimator: Estimator, *inputs: np.ndarray) -> "Frame":
        """Choose how inputs of an estimator are drawn, so that pictures of all of them can be compared.

        Args:
            estimator: A fitted one; if its network ignores the order of entries, they are bars or points.
            inputs: What will be drawn: rows of flat inputs.

        Returns:
            The frame.
        """
        ordered = "permutations" not in estimator.symmetry_.name.split("+")
        return cls.around(estimator.input_shape_, *inputs, ordered=ordered)

    @classmethod
    def around(cls, shape: tuple[int, ...], *inputs: np.ndarray, ordered: bool = True) -> "Frame":
        """The frame of inputs of a shape, from their least to their greatest numbers."""
        kind = _kind(shape, ordered)
        features = shape[1] if kind == "curves" and len(shape) > 1 else 1
        numbers = np.concatenate([np.zeros((0, features)), *(x.reshape(-1, features) for x in inputs)])
        if not len(numbers):
            return cls(shape, kind, np.zeros(features), np.ones(features))
        low = numbers.min(0)
        return cls(shape, kind, low, np.maximum(numbers.max(0), low + 1e-6))

    def picture(self, x: np.ndarray) -> str:
        """Draw one input.

        Args:
            x: Its numbers.

        Returns:
            A data URI: of a PNG for pixels, of an SVG for anything else.
        """
        rows = x.reshape(-1, len(self.low))
        bright = np.clip((rows - self.low) / (self.high - self.low), 0, 1)
        if self.kind == "pixels":
            return _uri("png", _pixels(bright.ravel(), self.shape))
        draw = {"bars": _bars, "curves": _curves, "points": _points}[self.kind]
        start = f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIDE}" height="{SIDE}" viewBox="-1 -1 66 66">'
        whole = f'{start}<path fill="{GROUND}" d="M-1-1h66v66h-66z"/>'
        return _uri("svg+xml", f"{whole}{draw(bright.reshape(len(bright), -1), self.shape)}</svg>".encode())


def _kind(shape: tuple[int, ...], ordered: bool) -> Kind:
    if len(shape) == 1:
        return "curves" if ordered and shape[0] >= SHORTEST_SEQUENCE else "bars"
    if not has_features(shape):
        return "pixels"
    return "points" if not ordered and shape[1] in PLANE else "curves"


def _pixels(bright: np.ndarray, shape: tuple[int, ...]) -> bytes:
    """A PNG; three channels are colours, of any other number of channels the first is drawn."""
    if len(shape) == 3 and shape[0] == 3:
        pixels = np.moveaxis(bright.reshape(shape) * 255, 0, -1)
    else:
        pixels = bright.reshape(-1, shape[-1])[: shape[-2]] * 255
    image = Image.fromarray(pixels.astype(np.uint8))
    image.thumbnail((SIDE, SIDE), Image.Resampling.BOX)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _bars(bright: np.ndarray, shape: tuple[int, ...]) -> str:
    """One bar per number, or per part of many numbers."""
    heights = np.array([part.mean() for part in np.array_split(bright.ravel(), min(SIDE, len(bright)))])
    wide = SIDE / len(heights)
    bars = "".join(f"M{i * wide:.4g} {SIDE}v{-SIDE * h:.4g}h{wide:.4g}V{SIDE}z" for i, h in enumerate(heights))
    return f'<path fill="{COLOURS[0]}" d="{bars}"/>'


def _curves(bright: np.ndarray, shape: tuple[int, ...]) -> str:
    """One curve per feature; of many steps, the least and the greatest of every part."""
    curves = []
    for i, steps in enumerate(bright.T):
        if len(steps) > 2 * SIDE:
            steps = np.array([end for part in np.array_split(steps, SIDE) for end in (part.min(), part.max())])
        across = np.linspace(0, SIDE, len(steps))
        line = " ".join(f"{u:.4g},{SIDE * (1 - v):.4g}" for u, v in zip(across, steps, strict=True))
        colour = COLOURS[i % len(COLOURS)]
        curves.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>')
    return "".join(curves)


def _points(bright: np.ndarray, shape: tuple[int, ...]) -> str:
    """A dot per point, at its first two numbers."""
    places = SIDE * bright.reshape(shape)[:, :2]
    dots = "".join(f"M{u:.4g} {SIDE - v:.4g}h0" for u, v in places)
    return f'<path fill="none" stroke="{COLOURS[0]}" stroke-width="3.5" stroke-linecap="round" d="{dots}"/>'


def _uri(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
