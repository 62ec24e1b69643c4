"""Labelled data: MNIST and digits, embedded, in the paper's variants; and readers for a user's own files."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from invariantnet.choices import Color, Task
from invariantnet.data import embedded
from invariantnet.data.folders import read_folder, read_folder_inputs
from invariantnet.data.images import SUFFIXES
from invariantnet.data.numpy_files import read_npy, read_npy_inputs, read_npz, read_npz_inputs
from invariantnet.data.records import Dataset, NewInputs
from invariantnet.data.tables import read_csv, read_csv_inputs
from invariantnet.data.variants import VARIANTS, transformed, vary, without_classes

__all__ = ["VARIANTS", "Dataset", "NewInputs", "load", "load_inputs", "transformed", "without_classes"]

Kind = Literal["images", "npy", "npz", "csv"]
"""Kinds of files and folders that can be read."""

READERS: dict[Kind, Callable[..., Dataset]] = {
    "images": read_folder,
    "npy": read_npy,
    "npz": read_npz,
    "csv": read_csv,
}
"""Reader of labelled data for each kind of source."""

OPTIONS: dict[Kind, tuple[str, ...]] = {
    "images": ("size", "color"),
    "npy": ("shape", "task"),
    "npz": ("shape", "task"),
    "csv": ("shape", "label", "without", "task"),
}
"""Options of `load` that apply to each kind of source."""

LONGEST_NAME = 200
"""Characters of an unknown source that a message repeats."""


class Options(TypedDict, total=False):
    """How a source is read, where that is to be said; what applies depends on its kind."""

    shape: tuple[int, ...] | None
    size: tuple[int, int] | None
    color: Color
    label: str | None
    without: Sequence[str]
    task: Task


USUAL: dict[str, object] = {"color": "auto", "task": "auto", "without": ()}
"""Options that say nothing, as None does."""


def load(source: str | Path, *, seed: int = 0, **options: Unpack[Options]) -> Dataset:
    """Load data by name or by path.

    Args:
        source: `mnist` or `digits`, either alone or with one of `:plain`, `:permuted`, `:rotated`,
            `:flipped` (or `:NAME` of a catalogue group); or the path of an `.npz` with `x` and `y`, of a
            `.csv` with a label column, of a folder with one subfolder of images per class, or of one with
            `x.npy` and `y.npy`, which may be larger than memory.
        seed: Decides the permutation and the poses of a variant; equal seeds give equal bits.
        **options: How the source is read:

            - `shape`: Shape of one input, for files that hold it flat.
            - `size`: Height and width to which the images of a folder are resized; without it, images of different
              sizes are refused.
            - `color`: Read the images of a folder as `grey` or `rgb`; `auto` is grey if all of them are.
            - `label`: Name of the label column of a `.csv`; by default `label`, `class`, `target` or `y`.
            - `without`: Names of columns of a `.csv` that are no inputs, such as an identifier.
            - `task`: Whether labels are `classes` or `numbers`; `auto` takes numbers if some label has a fraction.

    Returns:
        The data.

    Raises:
        ValueError: There is no such data, it cannot be read, or an option does not apply to it.

    Example:
        >>> data = load("digits:rotated", seed=0)
        >>> data.x_train.shape, data.shape, data.class_names[7]
        ((1038, 64), (8, 8), '7')
    """
    given: dict[str, Any] = {n: v for n, v in options.items() if v is not None and v != USUAL.get(n)}
    name, _, variant = str(source).partition(":")
    if name in embedded.READERS:
        _check_options(source, given, ("task",) if given.get("task") == "classes" else ())
        return vary(embedded.READERS[name](), variant or "plain", seed)
    path = _existing(source)
    kind = _kind(path)
    if kind == "images" and "shape" in given:
        raise ValueError(f"{path}: images have a shape of their own: resize them with size=(H, W) or --size.")
    if kind == "images" and given.get("task") == "classes":
        given.pop("task")
    _check_options(path, given, OPTIONS[kind])
    return READERS[kind](path, **given)


def load_inputs(
    source: str | Path,
    *,
    shape: tuple[int, ...],
    seed: int = 0,
    size: tuple[int, int] | None = None,
    color: Color = "auto",
    label: str | None = None,
    columns: Sequence[str] | None = None,
) -> NewInputs:
    """Load inputs to predict, and their labels where the source has some.

    Args:
        source: Name or path, as in `load`, or the path of one image; of embedded data the test set is loaded.
        shape: Shape of one input. Images are resized to it.
        seed: Decides the permutation and the poses of a variant.
        size: Height and width to which images are resized first.
        color: Read images as `grey` or `rgb`; `auto` takes what suits the shape.
        label: Name of the label column of a `.csv`; None finds it by its usual names.
        columns: Names of the columns of a `.csv` to read, in this order; None reads all but the label.

    Returns:
        The inputs, with their names and labels. Subfolders of images are labels.

    Raises:
        ValueError: There is no such data, it cannot be read, or it has another shape.
    """
    name, _, variant = str(source).partition(":")
    if name in embedded.READERS:
        data = vary(embedded.READERS[name](), variant or "plain", seed)
        if data.shape != shape:
            raise ValueError(
                f"{source} has inputs of shape {data.shape}, the model needs {shape}: name other data."
            )
        return NewInputs(range(len(data.x_test)), data.x_test, data.targets(data.y_test))
    path = Path(source)
    if path.suffix.lower() in SUFFIXES and path.is_file():
        return read_folder_inputs(path, shape=shape, size=size, color=color)
    path = _existing(source)
    kind = _kind(path)
    if kind == "images":
        return read_folder_inputs(path, shape=shape, size=size, color=color)
    if kind == "csv":
        return read_csv_inputs(path, shape=shape, label=label, columns=columns)
    return read_npy_inputs(path, shape=shape) if kind == "npy" else read_npz_inputs(path, shape=shape)


def _check_options(source: str | Path, given: Collection[str], useful: Collection[str]) -> None:
    for name in given:
        if name not in useful:
            raise ValueError(f"{name} does not apply to {source}: leave it out.")


def _kind(path: Path) -> Kind:
    if path.is_dir():
        return "npy" if (path / "x.npy").exists() else "images"
    return "npz" if path.suffix.lower() == ".npz" else "csv"


def _existing(source: str | Path) -> Path:
    path = Path(source)
    try:
        known = bool(str(source)) and (path.is_dir() or path.is_file())
    except OSError:  # such as a name that is too long
        known = False
    if not known:
        variants = ", ".join(f":{variant}" for variant in VARIANTS)
        raise ValueError(
            f"no data named {str(source)[:LONGEST_NAME]!r} and no such file: choose mnist or digits "
            f"(with {variants}), or the path of an .npz, a .csv or a folder of images."
        )
    if not path.is_dir() and path.suffix.lower() not in (".npz", ".csv"):
        raise ValueError(f"{path} is neither .npz nor .csv nor a folder of images: convert it to one of these.")
    return path
