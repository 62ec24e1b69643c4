"""The record that every reader returns."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled inputs, flat: `x[i]` has `prod(shape)` numbers and the class `class_names[y[i]]`.

    Args:
        x_train: Inputs as an array of 32-bit numbers. Inputs from `.npy` files are a `DiskArray`, which stays on
            disk; `np.asarray(data.x_train[:10])` reads a few of them.
        y_train: Numbers of the classes.
        x_test: Inputs of the test set, of the same kind.
        y_test: Numbers of the classes of the test set.
        shape: Shape of one input.
        class_names: Names of the classes.
        provenance: Where the data comes from, and what was done to it.
        columns: Names of the inputs, if they come from a table.
    """

    x_train: Any
    y_train: Int64[np.ndarray, " n"]
    x_test: Any
    y_test: Int64[np.ndarray, " m"]
    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    provenance: str
    columns: tuple[str, ...] | None = None

    @property
    def dim(self) -> int:
        """Numbers per input."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        sizes = f"{len(self.x_train)} train, {len(self.x_test)} test"
        return f"Dataset({sizes}, shape={self.shape}, {len(self.class_names)} classes: {self.provenance})"
