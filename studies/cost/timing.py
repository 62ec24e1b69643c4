"""Times and memory, measured the same way in every study."""

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from invariantnet.data.arrays import read
from invariantnet.data.examples import Examples
from invariantnet.objectives import LogPosterior, total
from invariantnet.training._performance import keep_freed_memory, transpose_moved_weights
from invariantnet.training.preparation import prepared

EXAMPLES = 60_000
"""Size of the data set that an objective is scaled to: any number gives the same arithmetic."""


def best_times(cases: dict[str, Callable[[], Any]], repeats: int, calls: int) -> dict[str, float]:
    """Measure seconds per call, the best of several repeats.

    The cases take turns, so that a busy moment of the machine hits all of them.

    Args:
        cases: What to call, by name.
        repeats: How often each case has its turn.
        calls: Calls per turn.

    Returns:
        Seconds per call, by name.
    """
    best = dict.fromkeys(cases, float("inf"))
    for call in cases.values():
        call()
    for _ in range(repeats):
        for name, call in cases.items():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / calls)
    return best


def training_step(network: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    """Prepare a step as the training loop takes it.

    Args:
        network: What to train.
        x: Inputs of the batch.
        y: Its labels.

    Returns:
        A function that takes one step.
    """
    keep_freed_memory()
    trainable, batch = prepared(network, Examples(x, y))
    if trainable is network:
        transpose_moved_weights(network)
    z = read(batch.x)
    objective = LogPosterior(trainable, examples=EXAMPLES)
    optimizer = torch.optim.Adam(trainable.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad()
        (-total(objective.terms(z, y).values())).backward()
        optimizer.step()

    return step


def dense_basis(elements: Tensor) -> Tensor:
    """The paper's way to an invariant basis: eigenvectors of the dense Reynolds operator with eigenvalue 1."""
    order, dim = elements.shape
    operator = torch.zeros(dim, dim, dtype=torch.float64)
    for element in elements:
        operator[torch.arange(dim), element] += 1 / order
    values, vectors = torch.linalg.eigh(operator)
    return vectors[:, values > 0.5].mT


def resident_megabytes() -> int:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def peak_megabytes() -> int:
    """Largest resident memory of this process so far; rusage would count its parent's, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10
