"""Invariant bases: orbits against the dense eigendecomposition, and images too large for a dense operator.

Run: .venv/bin/python benchmarks/basis.py
"""

import resource

import invariantnet as inv
from studies.speed_table import best_times, dense_basis


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    before = peak_megabytes()
    large = best_times({"": lambda: inv.invariant_basis(inv.symmetry("d4", shape=(3, 224, 224)))}, 1, calls=1)[""]
    memory = peak_megabytes() - before
    group = inv.symmetry("d4", shape=(28, 28))
    elements = group.elements
    times = best_times(
        {"fast": lambda: inv.invariant_basis(group), "slow": lambda: dense_basis(elements)}, 5, calls=3
    )
    fast, slow = times["fast"], times["slow"]
    assert dense_basis(elements).shape == inv.invariant_basis(group).shape
    print(f"D4 on 28×28: orbits {fast * 1e3:.2f} ms, dense {slow * 1e3:.0f} ms, ratio {slow / fast:.0f}×")
    print(f"D4 on 3×224×224 (150,528 inputs): {large:.2f} s, {memory:.0f} MB above the start")


if __name__ == "__main__":
    main()
