"""The data sets that ship with the package: nothing is ever downloaded."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from invariantnet.data.records import Dataset

MNIST = Path(__file__).parent / "mnist.npz"
"""The embedded MNIST; MNIST.md beside it tells its origin."""

MNIST_SHA256 = "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64"
"""Checksum of the file, so that a damaged one is refused."""

DIGITS_TEST = 500
"""Examples of scikit-learn's digits that form the test set, which it does not have itself."""


def read_mnist(path: Path = MNIST) -> Dataset:
    """Read 70,000 handwritten digits of 28×28 pixels, from 0 (paper) to 1 (ink).

    Args:
        path: The file, for tests with damaged copies.

    Returns:
        The digits: 60,000 to learn from, and 10,000 to test on.

    Raises:
        ValueError: The file is missing or damaged.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(
            f"cannot read the embedded MNIST, {path} ({error.strerror}): reinstall invariantnet."
        ) from None
    if hashlib.sha256(content).hexdigest() != MNIST_SHA256:
        raise ValueError(f"the embedded MNIST, {path}, is damaged (its checksum differs): reinstall invariantnet.")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return Dataset(
        x_train=_unit_interval(arrays["x_train"]),
        y_train=arrays["y_train"].astype(np.int64),
        x_test=_unit_interval(arrays["x_test"]),
        y_test=arrays["y_test"].astype(np.int64),
        shape=(28, 28),
        class_names=tuple("0123456789"),
        provenance="MNIST (LeCun, Cortes, Burges 1998)",
    )


def read_digits() -> Dataset:
    """Read 1,797 handwritten digits of 8×8 pixels from scikit-learn, shuffled; the last ones are the test set."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int64)
    return Dataset(
        x_train=x[:-DIGITS_TEST],
        y_train=y[:-DIGITS_TEST],
        x_test=x[-DIGITS_TEST:],
        y_test=y[-DIGITS_TEST:],
        shape=(8, 8),
        class_names=tuple("0123456789"),
        provenance="digits of scikit-learn (Alpaydin, Kaynak 1998)",
    )


READERS: dict[str, Callable[[], Dataset]] = {"mnist": read_mnist, "digits": read_digits}
"""Readers of the embedded data sets, by name."""


def _unit_interval(images: np.ndarray) -> np.ndarray:
    return np.multiply(images.reshape(len(images), -1), np.float32(1 / 255), dtype=np.float32)
