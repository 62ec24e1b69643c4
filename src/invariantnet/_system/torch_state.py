"""The global state of torch, and of the libraries that numpy computes with, changed only inside a `with` block."""

import contextlib
import threading
from collections.abc import Iterator

import torch
from threadpoolctl import threadpool_limits

from invariantnet.choices import Precision

_DRAWING = threading.RLock()
"""Held while torch's global generator is seeded: it is shared by all threads."""


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch and numpy compute with `count` threads inside the block.

    Several threads wait for one another by spinning: beside another busy process, products of small matrices in
    numpy took ten times the CPU time with two threads.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from `seed` inside the block, and restore its random state afterwards.

    Only one thread at a time is inside.
    """
    with _DRAWING, torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def computing_in(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Let torch compute with fewer bits inside the block, where that loses little.

    Args:
        precision: Which numbers.
        device: Where the tensors are.

    Returns:
        A context manager; with 32 bits it does nothing.
    """
    if precision == "32-true":
        return contextlib.nullcontext()
    return torch.autocast(device.type, torch.bfloat16)
