"""The global state of torch, changed only inside a `with` block."""

import contextlib
import threading
from collections.abc import Iterator

import torch

_DRAWING = threading.RLock()


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside, torch computes with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, torch draws from the seed; outside, its state is as before. One thread at a time."""
    with _DRAWING, torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
