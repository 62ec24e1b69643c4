"""Convert arrays of any type to a `Dataset`, or say what is wrong with them.

Every fault is a ValueError that names the source and the remedy.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from invariantnet.choices import Task
from invariantnet.data.arrays import DiskArray, as_inputs, not_finite
from invariantnet.data.records import Dataset
from invariantnet.symmetries.shapes import channels_last

MAX_WHOLE = 2.0**53
"""Numbers from here on are too large for doubles to tell whole numbers apart."""


@dataclass(frozen=True)
class LabelledArrays:
    """Arrays as they are in a file, before they are checked.

    Args:
        x: Inputs of shape (n, …).
        y: Labels of shape (n,).
        x_test: Inputs of a test set.
        y_test: Labels of a test set.
    """

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray | None = None
    y_test: np.ndarray | None = None


def to_dataset(path: Path, arrays: LabelledArrays, shape: tuple[int, ...], task: Task = "auto") -> Dataset:
    """Convert arrays to a `Dataset`.

    Args:
        path: Where the arrays come from, for messages.
        arrays: Inputs and labels.
        shape: Shape of one input.
        task: Whether labels are classes or numbers.

    Returns:
        The data set, checked.

    Raises:
        ValueError: The arrays do not fit together, or do not hold inputs and labels.
    """
    if (arrays.x_test is None) != (arrays.y_test is None):
        raise ValueError(f"{path}: 'x_test' and 'y_test' come together: add the missing one.")
    x = to_inputs(path, "x", arrays.x, shape)
    if task == "numbers" or (task == "auto" and have_fractions(arrays.y)):
        y = to_numbers(path, "y", arrays.y, len(x))
        x_test, y_test = x[:0], y[:0]
        if arrays.x_test is not None and arrays.y_test is not None:
            x_test = to_inputs(path, "x_test", arrays.x_test, shape)
            y_test = to_numbers(path, "y_test", arrays.y_test, len(x_test))
        return Dataset(x, y, x_test, y_test, tuple(shape), (), str(path))
    classes, y = _to_classes(path, _as_text(arrays.y), len(x))
    if arrays.x_test is None or arrays.y_test is None:
        x_test, y_test = x[:0], y[:0]
    else:
        x_test = to_inputs(path, "x_test", arrays.x_test, shape)
        y_test = _known_classes(path, _as_text(arrays.y_test), classes, len(x_test))
    names = tuple(str(c) for c in classes.tolist())
    return Dataset(x, y, x_test, y_test, tuple(shape), names, str(path))


def to_inputs(path: Path, name: str, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | DiskArray:
    """Convert an array to flat 32-bit inputs; bytes are scaled to [0, 1], and a mapped file stays on disk.

    Args:
        path: Where the array comes from, for messages.
        name: Name of the array, for messages.
        x: Array of shape (n, …).
        shape: Shape of one input.

    Returns:
        One row of numbers per example.

    Raises:
        ValueError: The array does not hold finite inputs of this shape.
    """
    if x.dtype.kind not in "buif":
        raise ValueError(f"{path}: '{name}' holds {x.dtype}, not real numbers: convert it.")
    if x.ndim < 2 or x.size == 0:
        raise ValueError(f"{path}: '{name}' has shape {x.shape}, needs n examples with at least one number each.")
    if not 1 <= len(shape) <= 3 or math.prod(shape) != math.prod(x.shape[1:]):
        raise ValueError(
            f"{path}: '{name}' of shape {x.shape} does not hold inputs of shape {tuple(shape)}: "
            "reshape it, or name another shape."
        )
    if channels_last(shape):
        raise ValueError(f"{path}: inputs of shape {tuple(shape)} have the channels last: np.moveaxis(x, -1, 1).")
    scale = 1 / 255 if x.dtype == np.uint8 else 1.0
    flat: np.ndarray | DiskArray | None = DiskArray.of(x, scale)
    if flat is None and isinstance(x, np.memmap):
        raise ValueError(f"{path}: '{name}' is stored column by column: np.save(path, np.ascontiguousarray(x)).")
    with np.errstate(over="ignore", invalid="ignore"):
        if flat is None:
            flat = np.ascontiguousarray(x.reshape(len(x), -1) * np.float32(scale), dtype=np.float32)
        bad, first = not_finite(as_inputs(flat))
    if bad:
        raise ValueError(
            f"{path}: {bad} examples of '{name}' (the first is number {first}) hold values that are "
            "not finite: clean or drop them."
        )
    return flat


def are_whole(y: np.ndarray) -> np.ndarray:
    """Which of some numbers are whole."""
    return np.isfinite(y) & (y == np.round(y)) & (abs(y) < MAX_WHOLE)


def have_fractions(y: np.ndarray) -> bool:
    """Tell whether labels are measurements: finite numbers, some of them with a fraction."""
    return y.dtype.kind == "f" and bool(np.isfinite(y).all()) and not bool(are_whole(y).all())


def to_numbers(path: Path, name: str, y: np.ndarray, n: int) -> np.ndarray:
    """Convert labels to numbers.

    Args:
        path: Where they come from, for messages.
        name: Name of the array, for messages.
        y: One label per input, or a row of them.
        n: Number of inputs.

    Returns:
        One number per input, or a row of them, as doubles.

    Raises:
        ValueError: They are no finite numbers, or all are equal.
    """
    if y.dtype.kind not in "buif" or y.ndim not in (1, 2) or len(y) != n or not y.size:
        raise ValueError(
            f"{path}: {n} inputs, but '{name}' of type {y.dtype} and shape {y.shape} is not a number, or a row of "
            "them, for each: convert it, or use task 'classes'."
        )
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        first = int(np.argwhere(~np.isfinite(y))[0][0])
        raise ValueError(f"{path}: '{name}' of example number {first} is not finite: clean or drop it.")
    if name == "y" and (y == y[:1]).all():
        raise ValueError(f"{path}: all labels are equal: there is nothing to learn.")
    return y


def _as_text(y: np.ndarray) -> np.ndarray:
    """Decode labels that are bytes."""
    return np.char.decode(y, "utf-8", "replace") if y.dtype.kind == "S" else y


def _to_classes(path: Path, y: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels in order, and the position of every label among them."""
    if y.shape != (n,):
        raise ValueError(f"{path}: {n} inputs, but labels of shape {y.shape}: pass one label per input.")
    if y.dtype.kind not in "buiU" and not (y.dtype.kind == "f" and are_whole(y).all()):
        raise ValueError(
            f"{path}: labels of type {y.dtype} are not classes: pass integers or strings, or "
            "finite numbers with task 'numbers' (--task numbers)."
        )
    classes, codes = np.unique(y.astype(np.int64) if y.dtype.kind in "bf" else y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{path}: only one class, {str(classes[0])!r}: add examples of other classes.")
    return classes, codes.astype(np.int64)


def _known_classes(path: Path, y_test: np.ndarray, classes: np.ndarray, n: int) -> np.ndarray:
    """The position of every test label among the classes."""
    unknown = set(np.unique(y_test).tolist()) - set(classes.tolist())
    if unknown:
        raise ValueError(f"{path}: labels {sorted(unknown)[:5]} of 'y_test' are not in 'y': add examples of them.")
    if y_test.shape != (n,):
        raise ValueError(
            f"{path}: {n} inputs in 'x_test', 'y_test' has shape {y_test.shape}: pass one label per input."
        )
    return np.searchsorted(classes, y_test).astype(np.int64)
