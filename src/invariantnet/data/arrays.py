"""Inputs that stay in their file, for data larger than memory.

A `DiskArray` is indexed like a tensor, but indexing only selects examples; `read` makes a tensor of them. Code
that uses `split`, `read` and `blocks` serves files and tensors alike, and holds
more than a block of a file only where all copies of its examples take little memory.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

BLOCK = 4096
"""Largest number of examples that are read together: enough to make the cost of a call negligible."""

BLOCK_BYTES = 64 * 2**20
"""Largest size of a block of 32-bit numbers, in bytes: small beside the memory that training takes."""

CPU = torch.device("cpu")
"""Device of the tensors that are read unless a caller asks for another."""


@dataclass(frozen=True, eq=False)
class DiskArray:
    """A selection of the examples in a file; reading makes them flat 32-bit numbers.

    Args:
        path: File with the numbers, example after example.
        offset: Position of the first example of the file, in bytes.
        stored: Type of the numbers in the file.
        width: Numbers per example.
        index: Numbers of the selected examples, in their order; a range takes no memory.
        factor: Factor by which numbers are multiplied when they are read.
        dtype: Type of the tensors that are read.
        device: Device of the tensors that are read.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     array = np.memmap(file, np.float32, mode="w+", shape=(3, 2))
        ...     array[:] = [[1, 2], [3, 4], [5, 6]]
        ...     read(DiskArray.of(array)[[2, 0]])
        tensor([[5., 6.],
                [1., 2.]])
    """

    path: str
    offset: int
    stored: np.dtype[Any]
    width: int
    index: range | Int64[np.ndarray, " n"]
    factor: float = 1.0
    dtype: torch.dtype = torch.float32
    device: torch.device = CPU

    @classmethod
    def of(cls, array: Any, factor: float = 1.0) -> "DiskArray | None":
        """Select all rows of a memory-mapped array.

        Args:
            array: A memory-mapped array, or anything else.
            factor: Factor by which numbers are multiplied when they are read.

        Returns:
            None unless the array lies in a file row after row. A `DiskArray` is returned as it is.
        """
        if isinstance(array, DiskArray):
            return array
        # An array in mode c may have changes that its file has not.
        if not isinstance(array, np.memmap) or array.filename is None or array.mode == "c":
            return None
        if array.ndim < 2 or array.dtype.kind not in "buif" or not array.flags.c_contiguous:
            return None
        whole: Any = array
        while isinstance(whole.base, np.memmap):
            whole = whole.base
        offset = whole.offset + array.ctypes.data - whole.ctypes.data
        width = math.prod(array.shape[1:])
        return cls(str(array.filename), offset, array.dtype, width, range(len(array)), factor)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of examples, numbers per example."""
        return len(self.index), self.width

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, which: Any) -> "DiskArray":
        """Select examples as from a tensor: by a slice, by their numbers, or by a mask."""
        if isinstance(which, slice):
            return replace(self, index=self.index[which])
        which = which.cpu().numpy() if isinstance(which, Tensor) else which
        return replace(self, index=np.atleast_1d(np.asarray(self.index)[which]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        parts = [part.cpu().numpy() for part in blocks(self)]
        return np.concatenate(parts, dtype=dtype)

    def parts(self, size: int) -> Iterator["DiskArray"]:
        """Split into parts of at most `size` examples and at most `BLOCK_BYTES` bytes."""
        size = _block_size(size, self.width)
        return (self[start : start + size] for start in range(0, len(self) or 1, size))

    def split(self, size: int) -> list["DiskArray"]:
        """Split into parts as `Tensor.split` does."""
        return list(self.parts(size))

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "DiskArray":
        """Make `read` return tensors on this device, and of this type if one is given."""
        return replace(self, device=device, dtype=dtype or self.dtype)

    def double(self) -> "DiskArray":
        """Make `read` return 64-bit numbers."""
        return replace(self, dtype=torch.float64)

    def read(self) -> Float[Tensor, "n dim"]:
        """Read the selected examples.

        Raises:
            ValueError: The file is gone, or has become shorter.
        """
        raw = np.empty(self.shape, self.stored)
        size = self.width * self.stored.itemsize
        ends = [*(np.flatnonzero(np.diff(self.index) != 1) + 1).tolist(), len(raw)] if len(raw) else []
        try:
            # Pages of a memory map would count as memory of this process until the system wants them back.
            with Path(self.path).open("rb", buffering=0) as file:
                for start, end in itertools.pairwise([0, *ends]):
                    file.seek(self.offset + int(self.index[start]) * size)
                    _fill(file, raw[start:end].view(np.uint8).reshape(-1))
        except EOFError:
            raise ValueError(f"{self.path}: ends early: it was changed while it was in use.") from None
        except OSError as error:
            raise ValueError(f"{self.path}: cannot be read ({error.strerror}): put it back.") from None
        with np.errstate(over="ignore"):  # the caller checks for infinite numbers
            values = np.multiply(raw, np.float32(self.factor), dtype=np.float32)
        values += np.float32(0)  # makes -0.0 equal to 0.0 bit for bit
        found = torch.from_numpy(values)
        if self.device.type == "cuda" and torch.cuda.is_available():
            # From pinned memory the GPU copies by itself, while this process goes on.
            found = found.pin_memory()
        return found.to(self.device, self.dtype, non_blocking=True)


def _fill(file: BinaryIO, buffer: UInt8[np.ndarray, " n"]) -> None:
    """Read until the buffer is full; the system returns at most 2 GB at a time."""
    rest = buffer.data
    while rest:
        found = file.readinto(rest)  # type: ignore[attr-defined]
        if not found:
            raise EOFError
        rest = rest[found:]


def read(x: Tensor | DiskArray) -> Tensor:
    """Return a tensor as it is; read a `DiskArray`."""
    return x.read() if isinstance(x, DiskArray) else x


def blocks(x: Tensor | DiskArray, size: int = BLOCK) -> Iterator[Tensor]:
    """Iterate over all examples in order, in blocks that fit into memory.

    Tensors and files are split alike, so that both give the same results bit for bit.

    Args:
        x: Examples in memory or in a file.
        size: Largest number of examples in a block.

    Returns:
        An iterator over tensors of at most `size` examples and at most `BLOCK_BYTES` bytes.
    """
    if isinstance(x, DiskArray):
        return (part.read() for part in x.parts(size))
    return iter(x.split(_block_size(size, math.prod(x.shape[1:]))))


def _block_size(size: int, width: int) -> int:
    return min(size, max(1, BLOCK_BYTES // (4 * max(1, width))))


def not_finite(x: Tensor | DiskArray) -> tuple[int, int]:
    """Look for examples with numbers that are not finite.

    Args:
        x: Examples in memory or in a file.

    Returns:
        How many examples have such a number, and the position of the first of them.

    Example:
        >>> not_finite(torch.tensor([[1.0, 2.0], [3.0, torch.nan], [torch.inf, 4.0]]))
        (2, 1)
    """
    if isinstance(x, DiskArray) and x.stored.kind != "f":
        return 0, 0
    seen = found = first = 0
    for part in blocks(x):
        bad = ~part.isfinite().all(1)
        if not found:
            first = seen + int(bad.int().argmax())
        found += int(bad.sum())
        seen += len(part)
    return found, first if found else 0


def has_both_signs(x: Tensor | DiskArray) -> bool:
    """Whether every entry that varies is negative in some examples and positive in others.

    Example:
        >>> has_both_signs(torch.tensor([[-1.0, 2.0], [1.0, 3.0]])), has_both_signs(torch.tensor([[-1.0], [2.0]]))
        (False, True)
    """
    extremes = [(part.amin(0), part.amax(0)) for part in blocks(x)]
    low, high = torch.stack([e[0] for e in extremes]).amin(0), torch.stack([e[1] for e in extremes]).amax(0)
    return bool(((low < 0) & (high > 0))[low < high].all())


def as_inputs(x: np.ndarray | DiskArray) -> Tensor | DiskArray:
    """Convert an array to a tensor; a `DiskArray` stays as it is."""
    return x if isinstance(x, DiskArray) else torch.from_numpy(x)
