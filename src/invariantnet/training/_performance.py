"""What makes training steps fast."""

from collections import Counter

import torch
from torch import Tensor, nn

from invariantnet.nn.symmetrized import Symmetrized

RETURNED_BYTES = 31 * 2**20
"""Just below 32 MiB, the largest block that glibc lets raise its threshold (DEFAULT_MMAP_THRESHOLD_MAX)."""


def keep_freed_memory() -> None:
    """Keep glibc from returning freed memory between steps, so that no step waits for new pages.

    glibc returns free memory to the system above twice the size of the largest mapped block that was ever freed.
    Freeing one large block raises this threshold; its pages are never touched, so they cost nothing.
    """
    torch.empty(RETURNED_BYTES, dtype=torch.uint8, device="cpu")


def transpose_moved_weights(network: nn.Module) -> list[Tensor]:
    """Store weights in the order in which they are gathered, so that no step copies them or their gradients.

    Values and shapes stay the same.

    Args:
        network: A network that may contain `Symmetrized` modules.

    Returns:
        The weights that are now stored as transposes, to be made contiguous again after training.

    """
    initialised = [p for p in network.parameters() if not nn.parameter.is_lazy(p)]
    users = Counter(p.untyped_storage().data_ptr() for p in initialised)
    # Skip parameters that share storage: the others would keep the old values.
    alone = {id(p) for p in initialised if users[p.untyped_storage().data_ptr()] == 1}
    transposed = []
    for module in network.modules():
        if isinstance(module, Symmetrized):
            weight = module.placement.moved_weight(module.module)
            if weight is not None and id(weight) in alone:
                weight.data = weight.data.mT.contiguous().mT
                transposed.append(weight)
    return transposed
