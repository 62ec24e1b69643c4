"""Digests by which data is recognised."""

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from invariantnet.data.arrays import DiskArray, as_inputs, blocks

DIGEST_BYTES = 16
"""Bytes of the digest of one row: two of 10^15 different rows share one with a probability below 10^-8."""


def hash_rows(x: np.ndarray | Tensor | DiskArray) -> Shaped[np.ndarray, " n"]:
    """Digest of every row; equal rows have equal digests, whichever sign their zeros have.

    Args:
        x: Inputs.

    Returns:
        One digest per row.
    """
    parts = blocks(x if isinstance(x, Tensor) else as_inputs(x))
    rows = (row for part in parts for row in part.cpu().numpy() + 0)  # -0.0 + 0 is 0.0
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

    Returns:
        The size and the digest as text.
    """
    digest = hashlib.sha256((hash_rows(x) if rows is None else rows).tobytes())
    digest.update(np.ascontiguousarray(y).data)
    return f"{len(x)} × {x.shape[1]}, sha256 {digest.hexdigest()[:16]}"


@dataclass(frozen=True, eq=False)
class Digests:
    """Digests by which the examples of a fit are recognised, computed once.

    Args:
        rows: Digest of every input.
        whole: Fingerprint of all inputs and targets.
    """

    rows: Shaped[np.ndarray, " n"]
    whole: str

    @classmethod
    def of(cls, x: np.ndarray | DiskArray, y: np.ndarray) -> "Digests":
        """Compute the digests of some data.

        Args:
            x: Inputs.
            y: Targets.

        Returns:
            The digests.
        """
        rows = hash_rows(x)
        return cls(rows, fingerprint(x, y, rows))
