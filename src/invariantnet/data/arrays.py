"""Inputs that stay in their file: for data larger than memory.

`DiskArray` is indexed like a tensor, but an index only chooses examples; `read` makes a tensor of them. Whatever is
written with `split`, `read` and `blocks` serves both, and never holds more than a block of a file.
"""

import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

BLOCK, BLOCK_BYTES = 4096, 64 * 2**20
"""Examples, and bytes of 32-bit numbers, that are looked at together."""


CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class DiskArray:
    """Some examples of an array in a file, each of them flat and in 32 bits when it is read.

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
    """Where the first of all examples begins, in bytes."""
    stored: np.dtype[Any]
    width: int
    """Numbers per example."""
    index: range | Int64[np.ndarray, " n"]
    """Which examples, in which order; as long as they follow one another, they take no memory."""
    factor: float = 1.0
    """Numbers are multiplied by it."""
    dtype: torch.dtype = torch.float32
    device: torch.device = CPU

    @classmethod
    def of(cls, array: Any, factor: float = 1.0) -> "DiskArray | None":
        """The rows of a memory-mapped array; None for anything that does not lie in a file row after row."""
        if isinstance(array, DiskArray):
            return array
        # In mode c the array may have changes that its file has not.
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
        """Examples, numbers per example."""
        return len(self.index), self.width

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, which: Any) -> "DiskArray":
        """Choose examples, as from a tensor: by a slice, by their numbers, or by a mask."""
        if isinstance(which, slice):
            return replace(self, index=self.index[which])
        which = which.cpu().numpy() if isinstance(which, Tensor) else which
        return replace(self, index=np.atleast_1d(np.asarray(self.index)[which]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        parts = [part.cpu().numpy() for part in blocks(self)]
        return np.concatenate(parts, dtype=dtype)

    def parts(self, size: int) -> Iterator["DiskArray"]:
        """At most so many examples each, and at most a block's bytes."""
        size = _block_size(size, self.width)
        return (self[start : start + size] for start in range(0, len(self) or 1, size))

    def split(self, size: int) -> list["DiskArray"]:
        """The parts as a list, as a tensor has it."""
        return list(self.parts(size))

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "DiskArray":
        """Tensors will be made there, and of this type."""
        return replace(self, device=device, dtype=dtype or self.dtype)

    def double(self) -> "DiskArray":
        """Tensors will be in 64 bits."""
        return replace(self, dtype=torch.float64)

    def read(self) -> Float[Tensor, "n dim"]:
        """These examples as a tensor."""
        raw = np.empty(self.shape, self.stored)
        size = self.width * self.stored.itemsize
        ends = [*(np.flatnonzero(np.diff(self.index) != 1) + 1).tolist(), len(raw)] if len(raw) else []
        try:
            file = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise ValueError(f"{self.path}: cannot be read ({error.strerror}): put it back.") from None
        try:
            for start, end in itertools.pairwise([0, *ends]):
                # A mapped page would count as memory of ours until the system wants it back.
                found = os.preadv(file, [raw[start:end].data], self.offset + int(self.index[start]) * size)
                if found < (end - start) * size:
                    raise ValueError(f"{self.path}: ends early: it was changed while it was in use.")
        finally:
            os.close(file)
        with np.errstate(over="ignore"):  # an infinite number is for the caller to find
            values = np.multiply(raw, np.float32(self.factor), dtype=np.float32)
        values += np.float32(0)  # zero has two signs
        return torch.from_numpy(values).to(self.device, self.dtype)


def read(x: Tensor | DiskArray) -> Tensor:
    """The tensor itself, or one read from the file."""
    return x.read() if isinstance(x, DiskArray) else x


def blocks(x: Tensor | DiskArray, size: int = BLOCK) -> Iterator[Tensor]:
    """All examples in order, at most so many at a time."""
    if isinstance(x, DiskArray):
        return (part.read() for part in x.parts(size))
    # As many as of a file, so that both give the same to the last bit.
    return iter(x.split(_block_size(size, math.prod(x.shape[1:]))))


def _block_size(size: int, width: int) -> int:
    return min(size, max(1, BLOCK_BYTES // (4 * max(1, width))))


def not_finite(x: Tensor | DiskArray) -> tuple[int, int]:
    """How many examples hold a number that is not finite, and which is the first of them.

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


def as_inputs(x: np.ndarray | DiskArray) -> Tensor | DiskArray:
    """An array as a tensor; what is in a file stays there."""
    return x if isinstance(x, DiskArray) else torch.from_numpy(x)
