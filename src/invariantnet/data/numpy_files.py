"""Read arrays that NumPy has saved: an `.npz`, or a folder of `.npy` files whose inputs stay on disk.

Nothing is unpickled, and no memory is taken for a header that promises more than the file holds. Every fault is a
ValueError that names the file and the remedy.
"""

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from invariantnet._system.sizes import must_fit
from invariantnet.choices import Task
from invariantnet.data.arrays import DiskArray
from invariantnet.data.conversion import LabelledArrays, to_dataset, to_inputs
from invariantnet.data.records import Dataset, NewInputs

ARRAYS = ("x", "y", "x_test", "y_test")
"""Names of the arrays that are read."""

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""Readers of the header of an array, by the version of its format."""


def read_npz(path: Path, *, shape: tuple[int, ...] | None = None, task: Task = "auto") -> Dataset:
    """Read arrays `x` (n, …) and `y` (n,), and `x_test` and `y_test` if they exist; bytes are scaled to [0, 1].

    Args:
        path: The file.
        shape: Shape of one input; None takes that of `x`.
        task: Whether labels are classes or numbers.

    Returns:
        The data set.

    Raises:
        ValueError: The file is damaged, or its arrays are no labelled inputs.
    """
    arrays = _read_arrays(path, ARRAYS)
    if not {"x", "y"} <= arrays.keys():
        raise ValueError(f"{path}: holds {_names_in(path)}, needs 'x' and 'y': np.savez(path, x=…, y=…).")
    return to_dataset(path, LabelledArrays(**arrays), shape or arrays["x"].shape[1:], task)


def read_npz_inputs(path: Path, *, shape: tuple[int, ...]) -> NewInputs:
    """Read the array `x` (n, …), and `y` if it is there.

    Args:
        path: The file.
        shape: Shape of one input.

    Returns:
        The inputs, with labels if there are any.

    Raises:
        ValueError: The file is damaged, or its array holds no inputs of this shape.
    """
    try:
        arrays = _read_arrays(path, ("x", "y"))
    except ValueError:  # such as labels that are Python objects, which predictions do not need
        arrays = _read_arrays(path, ("x",))
    if "x" not in arrays:
        raise ValueError(f"{path}: holds {_names_in(path)}, needs 'x': np.savez(path, x=…).")
    return _with_labels(to_inputs(path, "x", arrays["x"], shape), arrays.get("y"))


def read_npy(path: Path, *, shape: tuple[int, ...] | None = None, task: Task = "auto") -> Dataset:
    """Read a folder with `x.npy` and `y.npy`, and `x_test.npy` and `y_test.npy` if they exist.

    Labels are read; inputs stay on disk.

    Args:
        path: The folder.
        shape: Shape of one input; None takes that of `x.npy`.
        task: Whether labels are classes or numbers.

    Returns:
        The data set; its inputs stay on disk.

    Raises:
        ValueError: A file is damaged, or the arrays are no labelled inputs.
    """
    needed = {name: _map(path / f"{name}.npy") for name in ARRAYS if _is_needed(path, name)}
    arrays = {name: array if name.startswith("x") else np.array(array) for name, array in needed.items()}
    return to_dataset(path, LabelledArrays(**arrays), shape or arrays["x"].shape[1:], task)


def read_npy_inputs(path: Path, *, shape: tuple[int, ...]) -> NewInputs:
    """Map `x.npy` in a folder, and read `y.npy` if it is there.

    Args:
        path: The folder.
        shape: Shape of one input.

    Returns:
        The inputs, which stay on disk, with labels if there are any.

    Raises:
        ValueError: The file is damaged, or holds no inputs of this shape.
    """
    labels = np.array(_map(path / "y.npy")) if (path / "y.npy").exists() else None
    return _with_labels(to_inputs(path, "x", _map(path / "x.npy"), shape), labels)


def _with_labels(x: np.ndarray | DiskArray, labels: np.ndarray | None) -> NewInputs:
    fits = labels is not None and len(labels) == len(x)
    return NewInputs(range(len(x)), x, labels if fits else None)


def _is_needed(path: Path, name: str) -> bool:
    return not name.endswith("_test") or (path / f"{name}.npy").exists()


def _map(path: Path) -> np.memmap[Any, Any]:
    try:
        if not path.is_file():
            raise ValueError("no such file")
        with np.errstate(over="raise"):
            return np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # damaged bytes make parsers raise anything
        fault = str(error).splitlines()[0]
        raise ValueError(
            f"{path}: not a readable .npy of a plain array ({fault}): save it with np.save."
        ) from None


def _read_arrays(path: Path, wanted: Collection[str]) -> dict[str, np.ndarray]:
    """Read the wanted arrays that the file has, by name."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if len(found) < len(archive.infolist()):
                # The size of one would be checked, and np.load might read the other.
                raise ValueError("two of its arrays have the same name")
            sizes = {name: _size(archive, found[name]) for name in wanted if name in found}
    except Exception as error:  # damaged bytes make parsers raise anything
        raise _unreadable(path, error) from None
    # Twice: the array as it is stored, and a copy in single precision.
    must_fit(2 * sum(sizes.values()), str(path), "use fewer or smaller examples")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in sizes}
    except Exception as error:
        raise _unreadable(path, error) from None


def _names_in(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return sorted(name.removesuffix(".npy") for name in archive.namelist())


def _size(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Size of an array in bytes, from its header alone, which must agree with the archive's directory."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        if version not in HEADERS:
            raise ValueError(f"{info.filename} has a header of version {version}")
        shape, _, dtype = HEADERS[version](member)
        if dtype.hasobject:
            raise ValueError(f"{info.filename} holds Python objects, not numbers or texts such as y.astype(str)")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != info.file_size - member.tell():
            raise ValueError(f"the header of {info.filename} does not fit its content")
    return size


def _unreadable(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path}: not a readable .npz of plain arrays ({error}): save it with np.savez.")
