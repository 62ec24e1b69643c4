"""Invariant bases: orbits against the dense eigendecomposition, and images too large for a dense operator.

Run: .venv/bin/python benchmarks/basis.py
"""

import resource
import time
from collections.abc import Callable

import torch

import invariantnet as inv


def best_of(repeats: int, call: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def dense_basis(group: inv.Group) -> torch.Tensor:
    """The paper's recipe: eigenvectors of the Reynolds operator with eigenvalue 1."""
    operator = torch.zeros(group.dim, group.dim, dtype=torch.float64)
    for element in group.elements:
        operator[torch.arange(group.dim), element] += 1 / group.order
    values, vectors = torch.linalg.eigh(operator)
    return vectors[:, values > 0.5].T


def main() -> None:
    before = peak_megabytes()
    large = best_of(1, lambda: inv.invariant_basis(inv.group("d4", shape=(3, 224, 224))))
    memory = peak_megabytes() - before
    group = inv.group("d4", shape=(28, 28))
    fast = best_of(20, lambda: inv.invariant_basis(group))
    slow = best_of(3, lambda: dense_basis(group))
    assert dense_basis(group).shape == inv.invariant_basis(group).shape
    print(f"D4 on 28×28: orbits {fast * 1e3:.2f} ms, dense {slow * 1e3:.0f} ms, ratio {slow / fast:.0f}×")
    print(f"D4 on 3×224×224 (150,528 inputs): {large:.2f} s, {memory:.0f} MB above the start")


if __name__ == "__main__":
    main()
