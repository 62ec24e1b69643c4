"""The data that ships with the package: nothing is downloaded, ever."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from invariantnet.data.records import Dataset

MNIST = Path(__file__).parent / "mnist.npz"
MNIST_SHA256 = "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64"
DIGITS_TEST = 500


def read_mnist(path: Path = MNIST) -> Dataset:
    """70,000 handwritten digits, 28×28, from 0 (paper) to 1 (ink); see MNIST.md beside the file."""
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
    """1,797 handwritten digits, 8×8, from scikit-learn; the last 500 of a fixed shuffle are the test set."""
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


def _unit_interval(images: np.ndarray) -> np.ndarray:
    return np.multiply(images.reshape(len(images), -1), np.float32(1 / 255), dtype=np.float32)
