"""Read image files: upright, in 8 bits, and never larger than memory."""

import contextlib
import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from invariantnet._system.sizes import must_fit
from invariantnet.choices import Color

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
"""Endings of files that are read as images; other files are ignored."""

DEEP_MODES = {"I;16", "I;16B", "I;16L", "I;16N"}
"""Pillow's names for images of 16 bits."""

GREY_MODES = {"1", "L", "LA", "I", "F"} | DEEP_MODES
"""Pillow's names for images without colours."""


def check_size(size: tuple[int, int] | None) -> None:
    """Raise a ValueError for a height and width that no image can have.

    Args:
        size: Height and width; None is fine.
    """
    if size is None:
        return
    if min(size) < 1:
        raise ValueError(f"size {size} is no height and width: pass whole numbers, at least 1.")
    must_fit(4 * math.prod(size), f"an image of {size[0]}×{size[1]} pixels", "choose a smaller size")


def image_files(folder: Path) -> list[Path]:
    """List all images in a folder and below, ordered by name; hidden files are left out."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    ]


def is_grey(file: Path) -> bool:
    """Whether an image has no colours.

    Args:
        file: The image.

    Returns:
        True if it has none, transparency aside.

    Raises:
        ValueError: The file is no readable image.
    """
    from PIL import Image

    with _damage_as_one_line(file), Image.open(file) as image:
        if image.mode == "P":  # a palette may hold nothing but greys
            pixels = np.asarray(image.convert("RGB"))
            return bool((pixels == pixels[..., :1]).all())
        return image.mode in GREY_MODES


def read_image(file: Path, size: tuple[int, int] | None, color: Color) -> np.ndarray:
    """Read an image, turned upright as its camera noted; 16 bits become 8, and transparent pixels white.

    Args:
        file: The image.
        size: Height and width to which it is resized; None keeps its own.
        color: `grey`, or anything else for colours.

    Returns:
        Bytes of shape (H, W) for grey, (3, H, W) for colours.

    Raises:
        ValueError: The file is no readable image.
    """
    from PIL import Image, ImageOps

    with _damage_as_one_line(file), Image.open(file) as stored:
        image = ImageOps.exif_transpose(stored)
        if stored.format == "PPM" and image.mode == "I":  # Pillow scales a PGM of any depth to 16 bits
            image = Image.fromarray(np.asarray(image).astype(np.uint16))
        if image.mode in ("I", "F"):
            raise ValueError("numbers of 32 bits have no known range: save 8 or 16 bits, or an .npz")
        if image.mode in DEEP_MODES:
            image = Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
        if image.has_transparency_data:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        pixels = image.convert("L" if color == "grey" else "RGB")
        if size is not None:
            pixels = pixels.resize((size[1], size[0]), Image.Resampling.BILINEAR)
        values = np.asarray(pixels)
    return values if values.ndim == 2 else np.moveaxis(values, -1, 0)


@contextlib.contextmanager
def _damage_as_one_line(file: Path) -> Iterator[None]:
    """Turn whatever a decoder raises for damaged or far too large images into a ValueError of one line."""
    from PIL import Image

    try:
        if not file.is_file():
            raise ValueError("no such file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except Exception as error:
        raise ValueError(f"{file}: not a readable image ({error}): mend or remove it.") from None
