"""Small pictures of inputs, as text that goes into a page."""

import base64
import io

import numpy as np
from PIL import Image

SIDE = 64
"""Pixels of a picture's longest side: a page shows it this large."""


def thumbnail(x: np.ndarray, shape: tuple[int, ...], low: float, high: float) -> str:
    """Draw one input as a small PNG: pixels of images; of anything else, its numbers as columns of light.

    Args:
        x: The numbers of one input.
        shape: Shape of one input. Three channels are colours; of any other number of channels, the first is drawn.
        low: The number that is drawn black.
        high: The number that is drawn white.

    Returns:
        A data URI.
    """
    bright = np.clip((x - low) / max(high - low, 1e-12), 0, 1)
    if len(shape) == 1:
        parts = np.array_split(bright, min(SIDE, len(bright)))
        columns = np.array([part.mean() for part in parts])
        levels = np.linspace(1, 0, SIDE // 2)[:, None]
        pixels = np.where(columns[None] >= levels, 220, 20).repeat(SIDE // len(columns), axis=1)
    elif len(shape) == 3 and shape[0] == 3:
        pixels = np.moveaxis(bright.reshape(shape) * 255, 0, -1)
    else:
        pixels = bright.reshape(-1, shape[-1])[: shape[-2]] * 255
    image = Image.fromarray(pixels.astype(np.uint8))
    image.thumbnail((SIDE, SIDE), Image.Resampling.BOX)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def brightness(*inputs: np.ndarray) -> tuple[float, float]:
    """The numbers to draw black and white, so that pictures of all these inputs can be compared."""
    some = [x for x in inputs if x.size]
    return min((float(x.min()) for x in some), default=0.0), max((float(x.max()) for x in some), default=1.0)
