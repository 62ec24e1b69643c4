"""Polynomials of a few inputs with a hidden symmetry, as cheap data sets by the thousand."""

import numpy as np

from invariantnet.symmetries.group import Group
from studies.discovery.problems import Problem, hidden_group

NOISE = 0.3
"""Standard deviation of the noise of real labels, in standard deviations of the labels."""
SHARPNESS = 4.0
"""Log odds of a class, one standard deviation from the boundary."""


def polynomial(task: str, kind: str, dim: int, n: int, seed: int) -> Problem:
    """Draw labels from a random quadratic polynomial that is invariant to a hidden group.

    Args:
        task: `reals`, or `classes` for two classes.
        kind: Which group; see `hidden_group`.
        dim: Number of inputs.
        n: Number of examples.
        seed: Decides everything random.

    Returns:
        The problem; with odd seeds, inputs have different scales, so that only labels have the symmetry.
    """
    rng = np.random.default_rng([seed, dim, n, *f"{task} {kind}".encode()])
    truth = hidden_group(kind, dim, rng)
    x = rng.normal(size=(n, dim))
    if seed % 2:
        x *= rng.uniform(0.5, 2.0, size=dim)
    linear, square = rng.normal(size=dim), rng.normal(size=(dim, dim)) / np.sqrt(dim)
    square = (square + square.T) / 2
    if kind == "exchange":
        linear, square = _exchangeable(linear, square, truth.orbits().numpy())
    elif kind != "none":
        elements = truth.elements.numpy()
        linear = np.mean([linear[e] for e in elements], axis=0)
        square = np.mean([square[np.ix_(e, e)] for e in elements], axis=0)
    score = x @ linear + np.einsum("ni,ij,nj->n", x, square, x)
    score = (score - score.mean()) / score.std()
    if task == "reals":
        return Problem(x, score + NOISE * rng.normal(size=n), truth)
    return Problem(x, (rng.random(n) < 1 / (1 + np.exp(-SHARPNESS * score))).astype(int), truth)


def _exchangeable(linear: np.ndarray, square: np.ndarray, orbits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Average coefficients over all permutations within orbits."""
    linear, square = linear.copy(), square.copy()
    own = np.diag(square).copy()
    for a in np.unique(orbits):
        inside = orbits == a
        linear[inside] = linear[inside].mean()
        own[inside] = own[inside].mean()
        for b in np.unique(orbits):
            block = np.ix_(inside, orbits == b)
            off = ~np.eye(len(orbits), dtype=bool)[block]
            if off.any():
                square[block] = square[block][off].mean()
    np.fill_diagonal(square, own)
    return linear, square


def ring_of_ten(kind: str, n: int, seed: int) -> Problem:
    """Polynomials of ten uniform inputs, of which five can be turned, turned and reflected, or permuted (Karjol).

    Args:
        kind: `Z5`, `D5` or `S5`.
        n: Number of examples.
        seed: Decides everything random.

    Returns:
        The problem; the turns have a term of degree 3 that tells them from reflections.
    """
    rng = np.random.default_rng([seed, n, *kind.encode()])
    x = rng.uniform(size=(n, 10))
    members = rng.permutation(10)[:5]
    ring = x[:, members]
    ahead = np.roll(ring, -1, axis=1)
    score = {
        "Z5": (ring * ahead**2).sum(axis=1),
        "D5": (ring * ahead).sum(axis=1),
        "S5": ring.prod(axis=1) + (ring**2).sum(axis=1),
    }[kind]
    others = np.setdiff1d(np.arange(10), members)
    y = score / score.std() + x[:, others] @ np.arange(1.0, 6.0) / 3
    turn, flip, exchange = np.arange(10), np.arange(10), np.arange(10)
    turn[members], flip[members], exchange[members[:2]] = np.roll(members, 1), members[::-1], members[1::-1]
    generators = {"Z5": [turn], "D5": [turn, flip], "S5": [turn, exchange]}[kind]
    return Problem(x, y + 0.05 * rng.normal(size=n), Group.from_permutations(generators, kind))


def sum_of_numbers(dim: int, n: int, seed: int) -> Problem:
    """Sums of numbers, as of Yeh et al., with noise: any two numbers can be exchanged."""
    rng = np.random.default_rng([seed, dim, n])
    x = rng.uniform(0, 9, size=(n, dim))
    y = x.sum(axis=1) + rng.normal(size=n)
    exchanges = [[*range(k), k + 1, k, *range(k + 2, dim)] for k in range(dim - 1)]
    return Problem(x, y, Group.from_permutations(exchanges, "all", max_order=None))


def symmetric_labels(kind: str, dim: int, n: int, seed: int) -> Problem:
    """Random tanh features, symmetrised over a hidden group; inputs have different scales and offsets.

    Args:
        kind: `reflection`, `cycle` or `none`.
        dim: Number of inputs.
        n: Number of examples.
        seed: Decides everything random.

    Returns:
        The problem.
    """
    rng = np.random.default_rng([seed, dim, n, *kind.encode()])
    truth = hidden_group(kind, dim, rng)
    x = rng.normal(size=(n, dim)) * rng.uniform(0.5, 1.5, size=dim) + rng.normal(size=dim) / 2
    weights, bias = rng.normal(size=(32, dim)) / np.sqrt(dim), rng.normal(size=32)
    elements, signs = truth.elements.numpy(), np.where(np.arange(32) % 2, 1.0, -1.0)
    score = np.mean([np.tanh(x[:, e] @ weights.T + bias) @ signs for e in elements], axis=0)
    score = (score - score.mean()) / score.std()
    return Problem(x, score + 0.1 * rng.normal(size=n), truth)
