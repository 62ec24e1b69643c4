"""The record that every reader returns."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled inputs, flat: `x[i]` has `prod(shape)` numbers and the class `class_names[y[i]]`.

    Inputs are arrays of 32 bits; those from `.npy` files are `DiskArray`, which stay in their files, and of which
    `np.asarray(data.x_train[:10])` reads some.
    """

    x_train: Any
    y_train: Int64[np.ndarray, " n"]
    x_test: Any
    y_test: Int64[np.ndarray, " m"]
    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    provenance: str
    columns: tuple[str, ...] | None = None
    """Names of the inputs, where they come from a table."""

    @property
    def dim(self) -> int:
        """Numbers per input."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        sizes = f"{len(self.x_train)} train, {len(self.x_test)} test"
        return f"Dataset({sizes}, shape={self.shape}, {len(self.class_names)} classes: {self.provenance})"
