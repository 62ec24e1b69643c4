"""Images from files: as their owner sees them, and never more than memory holds."""

import contextlib
import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from invariantnet._system.sizes import must_fit
from invariantnet.choices import Color

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
DEEP_MODES = {"I;16", "I;16B", "I;16L", "I;16N"}
GREY_MODES = {"1", "L", "LA", "I", "F"} | DEEP_MODES


def check_size(size: tuple[int, int] | None) -> None:
    """A ValueError for a size that no image can have here."""
    if size is None:
        return
    if min(size) < 1:
        raise ValueError(f"size {size} is no height and width: pass whole numbers, at least 1.")
    must_fit(4 * math.prod(size), f"an image of {size[0]}×{size[1]} pixels", "choose a smaller size")


def image_files(folder: Path) -> list[Path]:
    """All images in a folder and below, in the order of their names."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    ]


def is_grey(file: Path) -> bool:
    """Whether an image has no colours."""
    from PIL import Image

    with _images_of_strangers(file), Image.open(file) as image:
        if image.mode == "P":  # a palette may hold nothing but greys
            pixels = np.asarray(image.convert("RGB"))
            return bool((pixels == pixels[..., :1]).all())
        return image.mode in GREY_MODES


def read_image(file: Path, size: tuple[int, int] | None, color: Color) -> np.ndarray:
    """Bytes (H, W) or (3, H, W), upright as its owner sees it; 16 bits become 8, and what is transparent white."""
    from PIL import Image, ImageOps

    with _images_of_strangers(file), Image.open(file) as stored:
        image = ImageOps.exif_transpose(stored)
        if stored.format == "PPM" and image.mode == "I":  # a PGM has at most 16 bits, and they are scaled to them
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
def _images_of_strangers(file: Path) -> Iterator[None]:
    """Inside, whatever damaged bytes make a decoder raise is one line; so is an image that is far too large."""
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
