"""A digest by which data is recognised."""

import hashlib

import numpy as np
from torch import Tensor

from invariantnet.data.arrays import DiskArray, as_inputs, blocks


def fingerprint(x: np.ndarray | Tensor | DiskArray, y: np.ndarray) -> str:
    """Describe data by its size and a digest of its bytes, to recognise it later.

    Args:
        x: Inputs.
        y: Targets.
    """
    digest = hashlib.sha256()
    for part in blocks(x if isinstance(x, Tensor) else as_inputs(x)):
        digest.update(part.contiguous().cpu().numpy().data)
    digest.update(np.ascontiguousarray(y).data)
    return f"{len(x)} × {x.shape[1]}, sha256 {digest.hexdigest()[:16]}"
