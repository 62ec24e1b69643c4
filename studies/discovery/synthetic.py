"""Polynomials of a few inputs with a hidden symmetry, as cheap data sets by the thousand."""

import numpy as np

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
