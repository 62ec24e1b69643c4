"""Arrays from an `.npz`: no pickle, and no memory for a header that promises more than there is."""

import math
import zipfile
from collections.abc import Collection
from pathlib import Path

import numpy as np

from invariantnet._system.sizes import must_fit

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_arrays(path: Path, wanted: Collection[str]) -> dict[str, np.ndarray]:
    """The wanted arrays that are there, by name."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if len(found) < len(archive.infolist()):
                # Which of them is read may not be the one whose size was looked at.
                raise ValueError("two of its arrays have the same name")
            sizes = {name: _size(archive, found[name]) for name in wanted if name in found}
    except Exception as error:  # damaged bytes make parsers raise anything
        raise _unreadable(path, error) from None
    # Beside the array as it is stored there is a copy in single precision.
    must_fit(2 * sum(sizes.values()), str(path), "use fewer or smaller examples")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in sizes}
    except Exception as error:
        raise _unreadable(path, error) from None


def names_in(path: Path) -> list[str]:
    """What the archive holds, for a message."""
    with zipfile.ZipFile(path) as archive:
        return sorted(name.removesuffix(".npy") for name in archive.namelist())


def _size(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Bytes of an array, from its header alone, which has to agree with the archive's directory."""
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
