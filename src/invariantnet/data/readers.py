"""Readers for a user's own data: `.npz`, `.csv`, a folder of `.npy` files, and a folder of images per class.

Every fault is a ValueError that names the file and the remedy.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from invariantnet._system.sizes import must_fit
from invariantnet.choices import Color
from invariantnet.data.archives import names_in, read_arrays
from invariantnet.data.arrays import DiskArray, as_inputs, not_finite
from invariantnet.data.images import check_size, image_files, is_grey, read_image
from invariantnet.data.records import Dataset
from invariantnet.symmetries.shapes import channels_last

LABEL_COLUMNS = ("label", "class", "target", "y")
PARTS = {"train", "training", "test", "testing", "val", "valid", "validation"}


def read_npz(path: Path, *, shape: tuple[int, ...] | None = None) -> Dataset:
    """Arrays `x` (n, …) and `y` (n,), and optionally `x_test` and `y_test`; bytes are scaled to [0, 1]."""
    arrays = read_arrays(path, ("x", "y", "x_test", "y_test"))
    if not {"x", "y"} <= arrays.keys():
        raise ValueError(f"{path}: holds {names_in(path)}, needs 'x' and 'y': np.savez(path, x=…, y=…).")
    return _dataset(
        path,
        arrays["x"],
        arrays["y"],
        arrays.get("x_test"),
        arrays.get("y_test"),
        shape or arrays["x"].shape[1:],
    )


def read_npy(path: Path, *, shape: tuple[int, ...] | None = None) -> Dataset:
    """A folder with `x.npy` and `y.npy`, maybe `x_test.npy` and `y_test.npy`: as `.npz`, but x stays on disk."""
    x, y = _npy(path / "x.npy"), _npy(path / "y.npy")
    x_test, y_test = (
        _npy(path / name) if (path / name).exists() else None for name in ("x_test.npy", "y_test.npy")
    )
    return _dataset(
        path, x, np.array(y), x_test, None if y_test is None else np.array(y_test), shape or x.shape[1:]
    )


def read_csv(path: Path, *, label: str | None = None, shape: tuple[int, ...] | None = None) -> Dataset:
    """One example per line below a header; every column but the label is a number."""
    names, rows = _csv(path)
    column = _label_column(names, label)
    if column is None:
        wanted = (label,) if label else LABEL_COLUMNS
        shown = names if len(names) <= 12 else [*names[:6], "…", *names[-5:]]
        raise ValueError(
            f"{path}: no label column {' or '.join(map(repr, wanted))} among {', '.join(shown)}: "
            "name it with label=… or --label."
        )
    inputs = [j for j in range(len(names)) if j != column]
    values = _numbers(path, names, rows, inputs)
    for line, row in rows.items():
        if not row[column].strip():
            raise ValueError(f"{path}: line {line} has no label: fill it in, or leave the line out.")
    labels = np.array([row[column].strip() for row in rows.values()])
    if _are_measured(labels):
        raise ValueError(
            f"{path}: the labels in {names[column]!r} are numbers with fractions, not classes: name another "
            "column, or use InvariantRegressor."
        )
    data = _dataset(path, values, labels, None, None, shape or (values.shape[1],))
    return replace(data, columns=tuple(names[j] for j in inputs))


def read_folder(path: Path, *, size: tuple[int, int] | None = None, color: Color = "auto") -> Dataset:
    """A folder with one subfolder of images per class; grey ones become (H, W), coloured ones (3, H, W)."""
    check_size(size)
    classes = sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
    found = [(file, folder.name) for folder in classes for file in image_files(folder)]
    if not found:
        raise ValueError(f"{path}: no images in its subfolders: make one subfolder of images per class.")
    if {folder.name.lower() for folder in classes} <= PARTS:
        raise ValueError(
            f"{path}: {' and '.join(folder.name for folder in classes)} are parts of the data, not classes: "
            f"name one of them, such as {classes[-1]}."
        )
    for folder in classes:
        if not any(name == folder.name for _, name in found):
            raise ValueError(f"{folder}: no images of a known kind: remove the folder or fill it.")
    if color == "auto":
        color = "grey" if all(is_grey(file) for file, _ in found) else "rgb"
    images: list[np.ndarray] = []
    for file, _ in found:
        image = read_image(file, size, color)
        if not images:
            # Bytes, and the same in single precision.
            must_fit(5 * image.size * len(found), str(path), "use fewer or smaller images, or --size")
        if images and image.shape != images[0].shape:
            (h, w), (h0, w0) = image.shape[-2:], images[0].shape[-2:]
            raise ValueError(
                f"{file}: {h}×{w} pixels, but {found[0][0].name} has {h0}×{w0}: "
                "resize all of them with size=(32, 32) or --size 32,32."
            )
        images.append(image)
    labels = np.array([name for _, name in found])
    return _dataset(path, np.stack(images), labels, None, None, images[0].shape)


def read_inputs(
    path: Path,
    *,
    shape: tuple[int, ...],
    size: tuple[int, int] | None = None,
    color: Color = "auto",
    label: str | None = None,
    columns: Sequence[str] | None = None,
) -> tuple[Sequence[str | int], np.ndarray | DiskArray]:
    """Inputs without labels, and a name for each: the number of its line, or the path of its image.

    Of a table those `columns`, in that order; where none are named, all but the label.
    """
    if path.is_dir() and not (path / "x.npy").exists():
        if len(shape) < 2:
            raise ValueError(
                f"{path}: a folder of images, but the model needs inputs of shape {shape}: name a table."
            )
        check_size(size)
        found = image_files(path)
        if not found:
            raise ValueError(f"{path}: no images in it: name a folder of images.")
        if color == "auto":
            color = "grey" if len(shape) == 2 or shape[0] == 1 else "rgb"
        images = []
        for file in found:
            image = read_image(file, size or (shape[-2], shape[-1]), color)
            images.append(_inputs(file, "x", image[None], shape)[0])
        return [str(file.relative_to(path)) for file in found], np.stack(images)
    if path.is_dir():
        x: np.ndarray = _npy(path / "x.npy")
    elif path.suffix.lower() == ".npz":
        arrays = read_arrays(path, ("x",))
        if "x" not in arrays:
            raise ValueError(f"{path}: holds {names_in(path)}, needs 'x': np.savez(path, x=…).")
        x = arrays["x"]
    else:
        names, rows = _csv(path)
        if columns is None:
            column = _label_column(names, label)
            inputs = [j for j in range(len(names)) if j != column]
        elif missing := [name for name in columns if name not in names]:
            shown = ", ".join(map(repr, missing[:5])) + ("" if len(missing) <= 5 else ", …")
            raise ValueError(f"{path}: no column {shown}, which the model was fitted with: add it, with a header.")
        else:
            inputs = [names.index(name) for name in columns]
        x = _numbers(path, names, rows, inputs)
    values = _inputs(path, "x", x, shape)
    return range(len(values)), values


def _npy(path: Path) -> np.memmap[Any, Any]:
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


def _csv(path: Path) -> tuple[list[str], dict[int, list[str]]]:
    """The columns' names, and the cells of every line that is not empty, by its number in the file."""
    # A cell of a few characters becomes an object of some sixty bytes.
    must_fit(10 * path.stat().st_size, str(path), "split the file, or save it as .npz")
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.reader(lines)
            rows = {reader.line_num: row for row in reader if row}  # noqa: B035 - it moves with the rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: cannot be read as CSV ({error}): save it as UTF-8 with a header.") from None
    names = [name.strip() for name in rows.pop(next(iter(rows), 0), [])]
    if not any(names):
        raise ValueError(
            f"{path}: the file is empty: write a header with the columns' names and a line per example."
        )
    if not all(names):
        raise ValueError(
            f"{path}: column {names.index('') + 1} has no name: name it, or leave it out (pandas: index=False)."
        )
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{path}: two columns are called {twice!r}: name them differently.")
    return names, rows


def _label_column(names: list[str], label: str | None) -> int | None:
    wanted = (label,) if label else LABEL_COLUMNS
    return next((names.index(name) for name in wanted if name in names), None)


def _numbers(path: Path, names: list[str], rows: dict[int, list[str]], columns: list[int]) -> np.ndarray:
    """Those columns, in that order."""
    values = np.empty((len(rows), len(columns)), np.float64)
    for i, (line, row) in enumerate(rows.items()):
        if len(row) != len(names):
            raise ValueError(f"{path}: line {line} has {len(row)} fields, the header {len(names)}: mend the line.")
        try:
            values[i] = [_finite(row[j]) for j in columns]
        except ValueError as error:
            raise ValueError(f"{path}: line {line}: {error}: encode it as a number or leave it out.") from None
    return values


def _finite(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError(f"{cell.strip()!r} is not finite")
    return value


def _dataset(
    path: Path,
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray | None,
    y_test: np.ndarray | None,
    shape: tuple[int, ...],
) -> Dataset:
    if (x_test is None) != (y_test is None):
        raise ValueError(f"{path}: 'x_test' and 'y_test' come together: add the missing one.")
    values = _inputs(path, "x", x, shape)
    classes, codes = _classes(path, _texts(y), len(values))
    if x_test is None or y_test is None:
        test_values, test_codes = values[:0], codes[:0]
    else:
        test_values, y_test = _inputs(path, "x_test", x_test, shape), _texts(y_test)
        unknown = set(np.unique(y_test).tolist()) - set(classes.tolist())
        if unknown:
            raise ValueError(
                f"{path}: labels {sorted(unknown)[:5]} of 'y_test' are not in 'y': add examples of them."
            )
        test_codes = np.searchsorted(classes, y_test).astype(np.int64)
        if test_codes.shape != (len(test_values),):
            raise ValueError(
                f"{path}: {len(test_values)} inputs in 'x_test', 'y_test' has shape {y_test.shape}: "
                "pass one label per input."
            )
    return Dataset(
        values,
        codes,
        test_values,
        test_codes,
        tuple(shape),
        tuple(str(c) for c in classes.tolist()),
        str(path),
    )


def _inputs(path: Path, name: str, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | DiskArray:
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


def _texts(y: np.ndarray) -> np.ndarray:
    """Labels, those of bytes as text."""
    return np.char.decode(y, "utf-8", "replace") if y.dtype.kind == "S" else y


def _are_measured(labels: np.ndarray) -> bool:
    """Whether all of them are numbers, and not all of them whole."""
    try:
        return not _are_whole(labels.astype(np.float64))
    except ValueError:
        return False


def _are_whole(y: np.ndarray) -> bool:
    return bool(np.isfinite(y).all() and (y == np.round(y)).all() and (abs(y) < 2.0**53).all())


def _classes(path: Path, y: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    if y.shape != (n,):
        raise ValueError(f"{path}: {n} inputs, but labels of shape {y.shape}: pass one label per input.")
    if y.dtype.kind not in "buiU" and not (y.dtype.kind == "f" and _are_whole(y)):
        raise ValueError(
            f"{path}: labels of type {y.dtype} are not classes: pass integers or strings, or use "
            "InvariantRegressor for numbers."
        )
    classes, codes = np.unique(y.astype(np.int64) if y.dtype.kind in "bf" else y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{path}: only one class, {str(classes[0])!r}: labels must differ for anything to be learned."
        )
    return classes, codes.astype(np.int64)
