"""What makes training steps fast."""

import torch

KEPT = 31 * 2**20


def keep_memory() -> None:
    """Let the arrays of one step lie where those of the last did.

    The C library of Linux returns free memory to the system where there is more than twice the largest block that
    was returned before, and the next step waits for new pages. So one block is returned that nobody has touched.
    """
    torch.empty(KEPT, dtype=torch.uint8, device="cpu")
