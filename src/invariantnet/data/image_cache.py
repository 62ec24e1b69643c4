"""Decoded images in one array on disk: a folder of photographs is decoded once, then read in batches."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from invariantnet._system.files import replacing, writable_folder
from invariantnet.choices import Color

IN_MEMORY = 256 * 2**20
"""Bytes of images, as 32-bit numbers, up to which they stay in memory; more are read from disk batch by batch."""

VARIABLE = "INVARIANTNET_CACHE"
"""Environment variable that names the folder of decoded images."""


def cache_folder() -> Path:
    """Folder of decoded images: `INVARIANTNET_CACHE`, the user's cache, or else a temporary folder."""
    named = os.environ.get(VARIABLE)
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "invariantnet"
    try:
        return writable_folder(Path(named) if named else usual)
    except ValueError:
        if named:
            raise
        return writable_folder(Path(tempfile.gettempdir()) / "invariantnet")


def cached_images(
    files: Sequence[Path], size: tuple[int, int] | None, color: Color, images: Iterable[np.ndarray]
) -> np.memmap:
    """Write images into one array of bytes on disk, unless the same files are there already.

    Args:
        files: The images.
        size: Height and width to which they are resized.
        color: How they are read.
        images: Decodes them one by one; not asked if they are cached.

    Returns:
        The array, mapped from its file. Files are recognised by name, size and time of their last change.
    """
    path = cache_folder() / f"images-{_digest(files, size, color)}.npy"
    if not path.exists():
        with replacing(path) as file:
            for k, image in enumerate(images):
                if k == 0:
                    header = {"descr": "|u1", "fortran_order": False, "shape": (len(files), *image.shape)}
                    np.lib.format.write_array_header_1_0(file, header)
                file.write(np.ascontiguousarray(image).tobytes())
    return np.lib.format.open_memmap(path, mode="r")


def _digest(files: Sequence[Path], size: tuple[int, int] | None, color: Color) -> str:
    stats = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps([stats, size, color]).encode()).hexdigest()[:16]
