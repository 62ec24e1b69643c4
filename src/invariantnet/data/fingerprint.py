"""Digests by which data is recognised."""

import hashlib

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from invariantnet.data.arrays import DiskArray, as_inputs, blocks

DIGEST_BYTES = 16
"""Bytes of the digest of one row: two of 10^15 different rows share one with a probability below 10^-8."""


def hash_rows(x: np.ndarray | Tensor | DiskArray) -> Shaped[np.ndarray, " n"]:
    """Digest of every row; equal rows have equal digests.

    Args:
        x: Inputs, in which zero has one sign.
    """
    rows = (row for part in blocks(x if isinstance(x, Tensor) else as_inputs(x)) for row in part.cpu().numpy())
    digests = (hashlib.blake2b(np.ascontiguousarray(row).data, digest_size=DIGEST_BYTES).digest() for row in rows)
    return np.fromiter(digests, f"S{DIGEST_BYTES}", len(x))


def fingerprint(
    x: np.ndarray | Tensor | DiskArray, y: np.ndarray, rows: Shaped[np.ndarray, " n"] | None = None
) -> str:
    """Describe data by its size and a digest of its numbers, to recognise it later.

    Args:
        x: Inputs.
        y: Targets.
        rows: Digests of the inputs, where the caller has them already.
    """
    digest = hashlib.sha256((hash_rows(x) if rows is None else rows).tobytes())
    digest.update(np.ascontiguousarray(y).data)
    return f"{len(x)} × {x.shape[1]}, sha256 {digest.hexdigest()[:16]}"
