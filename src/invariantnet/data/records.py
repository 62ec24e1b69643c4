"""The record that every reader returns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Shaped


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled inputs, flat: `x[i]` has `prod(shape)` numbers.

    Its label is the class `class_names[y[i]]`, or `y[i]` itself where numbers are predicted.

    Args:
        x_train: Inputs as an array of 32-bit numbers. Inputs from `.npy` files are a `DiskArray`, which stays on
            disk; `np.asarray(data.x_train[:10])` reads a few of them.
        y_train: Numbers of the classes; or the numbers to predict, one or a row for each input.
        x_test: Inputs of the test set, of the same kind.
        y_test: The same of the test set.
        shape: Shape of one input.
        class_names: Names of the classes; none where numbers are predicted.
        provenance: Where the data comes from, and what was done to it.
        columns: Names of the inputs, if they come from a table.
    """

    x_train: Any
    y_train: Shaped[np.ndarray, "n *k"]
    x_test: Any
    y_test: Shaped[np.ndarray, "m *k"]
    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    provenance: str
    columns: tuple[str, ...] | None = None

    @property
    def dim(self) -> int:
        """Numbers per input."""
        return math.prod(self.shape)

    @property
    def has_numbers(self) -> bool:
        """Whether numbers are predicted, and not classes."""
        return not self.class_names

    def targets(self, y: np.ndarray) -> np.ndarray:
        """What an estimator is given: names of classes, or numbers.

        Args:
            y: Some of `y_train` or of `y_test`.

        Returns:
            One target per example.
        """
        return y if self.has_numbers else np.array(self.class_names)[y]

    def __repr__(self) -> str:
        sizes = f"{len(self.x_train)} train, {len(self.x_test)} test"
        what = "numbers" if self.has_numbers else f"{len(self.class_names)} classes"
        return f"Dataset({sizes}, shape={self.shape}, {what}: {self.provenance})"


@dataclass(frozen=True, eq=False)
class NewInputs:
    """Inputs to predict.

    Args:
        names: A name for every input: its number, its identifier in a table, or the path of its image.
        x: The inputs, flat.
        labels: Their labels as the source has them, if it has any.
    """

    names: Sequence[str | int]
    x: Any
    labels: np.ndarray | None = None
