"""Read folders of images: one subfolder per class, or images without labels.

Every fault is a ValueError that names the file and the remedy.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from invariantnet.choices import Color
from invariantnet.data.arrays import DiskArray
from invariantnet.data.conversion import LabelledArrays, to_dataset, to_inputs
from invariantnet.data.image_cache import IN_MEMORY, cached_images
from invariantnet.data.images import check_size, image_files, is_grey, read_image
from invariantnet.data.records import Dataset, NewInputs

PARTS = {"train", "training", "test", "testing", "val", "valid", "validation"}
"""Names of folders that are parts of the data, so that they cannot be meant as classes."""


def read_folder(path: Path, *, size: tuple[int, int] | None = None, color: Color = "auto") -> Dataset:
    """Read a folder with one subfolder of images per class.

    Args:
        path: The folder.
        size: Height and width to which images are resized; None refuses images of different sizes.
        color: Whether images become `grey` (H, W) or `rgb` (3, H, W); `auto` is grey if all of them are.

    Returns:
        The data set; its classes are the names of the subfolders.

    Raises:
        ValueError: The folder holds no classes, an image is damaged, or sizes differ.
    """
    check_size(size)
    classes = sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
    found = {folder: image_files(folder) for folder in classes}
    files = [file for images in found.values() for file in images]
    if not files:
        raise ValueError(f"{path}: no images in its subfolders: make one subfolder of images per class.")
    if {folder.name.lower() for folder in classes} <= PARTS:
        raise ValueError(
            f"{path}: {' and '.join(folder.name for folder in classes)} are parts of the data, not classes: "
            f"name one of them, such as {classes[-1]}."
        )
    for folder, images in found.items():
        if not images:
            raise ValueError(f"{folder}: no images of a known kind: remove the folder or fill it.")
    if color == "auto":
        color = "grey" if all(is_grey(file) for file in files) else "rgb"
    x = _read_images(files, size, color)
    y = np.array([folder.name for folder, images in found.items() for _ in images])
    return to_dataset(path, LabelledArrays(x, y), x.shape[1:])


def read_folder_inputs(
    path: Path, *, shape: tuple[int, ...], size: tuple[int, int] | None = None, color: Color = "auto"
) -> NewInputs:
    """Read all images in a folder and below, or one image.

    Args:
        path: The folder, or the image.
        shape: Shape of one input.
        size: Height and width to which images are resized; None takes them from `shape`.
        color: Whether images become `grey` or `rgb`; `auto` takes what suits `shape`.

    Returns:
        The inputs, named by their paths inside the folder. If all are in subfolders, these are their labels.

    Raises:
        ValueError: There are no images, one is damaged, or the shape is not that of an image.
    """
    if len(shape) < 2:
        what = "a folder of images" if path.is_dir() else "an image"
        raise ValueError(f"{path}: {what}, but the model needs inputs of shape {shape}: name a table.")
    check_size(size)
    files = image_files(path) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path}: no images in it: name a folder of images.")
    if color == "auto":
        color = "grey" if len(shape) == 2 or shape[0] == 1 else "rgb"
    size = size or (shape[-2], shape[-1])
    inputs: np.ndarray | DiskArray
    if 4 * math.prod(shape) * len(files) > IN_MEMORY:
        inputs = to_inputs(path, "x", cached_images(files, size, color, _decoded(files, size, color)), shape)
    else:
        each = ((file, read_image(file, size, color)) for file in files)
        inputs = np.stack([np.asarray(to_inputs(file, "x", image[None], shape))[0] for file, image in each])
    names = [file.relative_to(path if path.is_dir() else path.parent) for file in files]
    inside = all(len(name.parts) > 1 for name in names)
    labels = np.array([name.parts[0] for name in names]) if inside else None
    return NewInputs([str(name) for name in names], inputs, labels)


def _read_images(files: Sequence[Path], size: tuple[int, int] | None, color: Color) -> np.ndarray:
    """Read images into one array of bytes: in memory if they are few, else on disk, where they stay decoded."""
    images = _decoded(files, size, color)
    first = next(images)
    if 4 * first.size * len(files) <= IN_MEMORY:
        return np.stack([first, *images])
    return cached_images(files, size, color, itertools.chain([first], images))


def _decoded(files: Sequence[Path], size: tuple[int, int] | None, color: Color) -> Iterator[np.ndarray]:
    """Read one image after another; all must have the size of the first."""
    shape: tuple[int, ...] | None = None
    for file in files:
        image = read_image(file, size, color)
        if shape is not None and image.shape != shape:
            (h, w), (h0, w0) = image.shape[-2:], shape[-2:]
            raise ValueError(
                f"{file}: {h}×{w} pixels, but {files[0].name} has {h0}×{w0}: "
                "resize all of them with size=(32, 32) or --size 32,32."
            )
        shape = image.shape
        yield image
