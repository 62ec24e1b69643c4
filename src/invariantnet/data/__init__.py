"""Labelled data: MNIST and digits, embedded, under the paper's variants; and readers for a user's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from invariantnet.data import embedded
from invariantnet.data import readers as files
from invariantnet.data.arrays import DiskArray
from invariantnet.data.records import Dataset
from invariantnet.data.variants import VARIANTS, transformed, vary, without_classes

__all__ = ["VARIANTS", "Dataset", "load", "load_inputs", "transformed", "without_classes"]


def load(
    source: str | Path,
    *,
    seed: int = 0,
    shape: tuple[int, ...] | None = None,
    size: tuple[int, int] | None = None,
    color: files.Color = "auto",
    label: str | None = None,
) -> Dataset:
    """Load data by name or by path.

    Args:
        source: `mnist` or `digits`, either alone or with one of `:plain`, `:permuted`, `:rotated`,
            `:flipped` (or `:NAME` of a catalogue group); or the path of an `.npz` with `x` and `y`, of a
            `.csv` with a label column, of a folder with one subfolder of images per class, or of one with
            `x.npy` and `y.npy`, which may be larger than memory.
        seed: decides the permutation and the poses of a variant; equal seeds give equal bits.
        shape: shape of one input, for files that hold it flat.
        size: (height, width) to which the images of a folder are resized; by default other sizes are refused.
        color: read the images of a folder as `grey` or `rgb`; `auto` is grey if all of them are.
        label: name of the label column of a `.csv`; by default `label`, `class`, `target` or `y`.

    >>> data = load("digits:rotated", seed=0)
    >>> data.x_train.shape, data.shape, data.class_names[7]
    ((1038, 64), (8, 8), '7')

    """
    options: dict[str, Any] = {
        "shape": shape,
        "size": size,
        "color": None if color == "auto" else color,
        "label": label,
    }
    given = {name: value for name, value in options.items() if value is not None}
    name, _, variant = str(source).partition(":")
    if name in embedded.READERS:
        _check_options(source, given, ())
        return vary(embedded.READERS[name](), variant or "plain", seed)
    path = _existing(source)
    if path.is_dir() and not (path / "x.npy").exists():
        if shape is not None:
            raise ValueError(f"{path}: images have a shape of their own: resize them with size=(H, W) or --size.")
        _check_options(path, given, ("size", "color"))
        return files.read_folder(path, **given)
    if path.is_dir() or path.suffix.lower() == ".npz":
        _check_options(path, given, ("shape",))
        return files.read_npy(path, **given) if path.is_dir() else files.read_npz(path, **given)
    _check_options(path, given, ("shape", "label"))
    return files.read_csv(path, **given)


def _check_options(source: str | Path, given: dict[str, Any], useful: Sequence[str]) -> None:
    for name in given:
        if name not in useful:
            raise ValueError(f"{name} does not apply to {source}: leave it out.")


def load_inputs(
    source: str | Path, *, shape: tuple[int, ...], seed: int = 0, **reading: Any
) -> tuple[Sequence[str | int], np.ndarray | DiskArray]:
    """Inputs to predict, with a name for each: from the sources of `load`, labels not needed.

    Of embedded data the test set; images are resized to the shape; of a table the `columns` that are named, else
    all but the label; options as in `load`.
    """
    name, _, variant = str(source).partition(":")
    if name in embedded.READERS:
        data = vary(embedded.READERS[name](), variant or "plain", seed)
        if data.shape != shape:
            raise ValueError(
                f"{source} has inputs of shape {data.shape}, the model needs {shape}: name other data."
            )
        return range(len(data.x_test)), data.x_test
    return files.read_inputs(_existing(source), shape=shape, **reading)


def _existing(source: str | Path) -> Path:
    path = Path(source)
    try:
        known = bool(str(source)) and (path.is_dir() or path.is_file())
    except OSError:  # such as a name that is too long
        known = False
    if not known:
        variants = ", ".join(f":{variant}" for variant in VARIANTS)
        raise ValueError(
            f"no data named {str(source)[:200]!r} and no such file: choose mnist or digits (with {variants}), "
            "or the path of an .npz, a .csv or a folder of images."
        )
    if not path.is_dir() and path.suffix.lower() not in (".npz", ".csv"):
        raise ValueError(f"{path} is neither .npz nor .csv nor a folder of images: convert it to one of these.")
    return path
