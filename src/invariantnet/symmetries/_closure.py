"""All products of a set of generators, and the checks that there are finitely many."""

import math

import numpy as np
from jaxtyping import Float64, Int64

TOLERANCE = 1e-8
"""Matrices closer than this, relative to their largest entry, are one element."""

MAX_ENTRIES = 10**8
"""Numbers that a list of elements may hold."""

WARM_UP = 200
"""Products before the first random element is taken."""

Indices = Int64[np.ndarray, "n dim"]
Matrices = Float64[np.ndarray, "n dim dim"]


class TooManyElementsError(ValueError):
    """The closure of the generators is larger than allowed, or infinite."""


def as_matrices(indices: Int64[np.ndarray, "n dim"]) -> Float64[np.ndarray, "n dim dim"]:
    """Dense matrices of index arrays."""
    n, dim = indices.shape
    matrices = np.zeros((n, dim, dim))
    sign = np.where(indices < dim, 1.0, -1.0)
    matrices[np.arange(n)[:, None], np.arange(dim), indices % dim] = sign
    return matrices


def extend(index: Int64[np.ndarray, "*n dim"]) -> Int64[np.ndarray, "*n twice"]:
    """The same element as a permutation of the `2·dim` points `(x, -x)`."""
    dim = index.shape[-1]
    return np.concatenate([index, (index + dim) % (2 * dim)], axis=-1)


def close_indices(generators: Indices, max_order: int, name: str) -> Int64[np.ndarray, "order dim"]:
    """All products of the generators, breadth first from the identity."""
    dim = generators.shape[1]
    identity = np.arange(dim)
    extended = extend(generators)
    known: dict[bytes, np.ndarray] = {identity.tobytes(): identity}
    frontier = [identity]
    while frontier:
        fresh = []
        for element in frontier:
            for product in extended[:, element]:
                key = product.tobytes()
                if key not in known:
                    known[key] = product
                    fresh.append(product)
            if len(known) > max_order or len(known) * dim > MAX_ENTRIES:
                raise TooManyElementsError(
                    f"{name} has more than {min(max_order, MAX_ENTRIES // dim)} elements: raise max_order, or "
                    "pass max_order=None to work from its generators alone."
                )
        frontier = fresh
    return np.stack(list(known.values()))


def close_matrices(generators: Matrices, max_order: int, name: str) -> Float64[np.ndarray, "order dim dim"]:
    """All products of the generators; equal means equal up to a tolerance.

    A random projection of every matrix to one number finds the few candidates worth comparing in full.
    """
    dim = generators.shape[-1]
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal(dim), rng.standard_normal(dim)
    scale = np.abs(left).sum() * np.abs(right).max()
    max_order = min(max_order, max(1, MAX_ENTRIES // dim**2))
    elements = [np.eye(dim)]
    prints = np.empty(max_order)
    prints[0] = np.dot(left, right)
    # The list grows while it is walked: every new element is multiplied in its turn.
    for element in elements:
        for product in generators @ element:
            size = TOLERANCE * max(1.0, float(np.abs(product).max()))
            mark = left @ product @ right
            near = np.flatnonzero(np.abs(prints[: len(elements)] - mark) <= size * scale)
            if any(np.abs(elements[i] - product).max() <= size for i in near):
                continue
            if len(elements) == max_order:
                raise TooManyElementsError(
                    f"{name} has more than max_order = {max_order} elements, or is infinite: "
                    "check the generators, or raise max_order."
                )
            prints[len(elements)] = mark
            elements.append(product)
    return np.stack(elements)


def random_products(generators: Indices, count: int, rng: np.random.Generator) -> Int64[np.ndarray, "count dim"]:
    """Nearly uniform elements by product replacement (Celler et al. 1995), the identity first.

    A pool of elements is multiplied into itself at random, and an accumulator collects what changes.
    """
    dim = generators.shape[1]
    inverses = np.argsort(extend(generators), axis=1)[:, :dim]
    pool = [*np.concatenate([generators, inverses])] * max(1, 10 // (2 * len(generators)) + 1)
    accumulator = np.arange(dim)
    drawn = [accumulator]
    for step in range(WARM_UP + count - 1):
        i, j = rng.choice(len(pool), size=2, replace=False)
        pool[i] = extend(pool[j])[pool[i]] if rng.random() < 0.5 else extend(pool[i])[pool[j]]
        accumulator = extend(pool[i])[accumulator]
        if step >= WARM_UP:
            drawn.append(accumulator)
    return np.stack(drawn)


def check_indices(indices: Indices) -> None:
    """Each row must hold every input once, with either sign."""
    dim = indices.shape[1]
    for i, index in enumerate(indices):
        if not np.array_equal(np.sort(index % dim), np.arange(dim)) or index.min() < 0 or index.max() >= 2 * dim:
            raise ValueError(
                f"generator {i} is not a permutation of 0 … {dim - 1}: each input must appear exactly once."
            )


def check_invertible(matrices: Matrices) -> None:
    """Singular or non-finite generators are a ValueError."""
    for i, matrix in enumerate(matrices):
        if not np.isfinite(matrix).all():
            raise ValueError(f"generator {i} holds values that are not finite: remove NaN and infinity.")
        if np.linalg.matrix_rank(matrix) < len(matrix):
            raise ValueError(f"generator {i} is singular, and a group has inverses: pass invertible matrices.")


def check_finite_order(matrix: Float64[np.ndarray, "dim dim"], number: int, max_order: int) -> None:
    """Some power up to `max_order` must be the identity."""
    identity = np.eye(len(matrix))
    infinite = f"generator {number} has infinite order"
    modulus = np.abs(np.linalg.eigvals(matrix))
    worst = modulus[np.abs(modulus - 1).argmax()]
    if abs(worst - 1) > math.sqrt(TOLERANCE):
        raise ValueError(f"{infinite}: an eigenvalue has modulus {worst:.4g}, not 1. Check the matrix.")
    power = matrix
    for _ in range(max_order):
        if np.abs(power - identity).max() <= TOLERANCE * max(1.0, float(np.abs(matrix).max())):
            return
        power = power @ matrix
    raise ValueError(
        f"{infinite}: no power up to max_order = {max_order} is the identity. "
        "Check the matrix, pass it in double precision, or raise max_order."
    )


def are_signed_permutations(matrices: Matrices) -> bool:
    """Whether each row and column holds a single entry, ±1."""
    magnitude = np.abs(matrices)
    return bool(((magnitude == 0) | (magnitude == 1)).all() and (magnitude.sum(axis=2) == 1).all())


def matrices_to_indices(matrices: Matrices) -> Indices:
    """Index arrays of signed permutation matrices."""
    columns = np.abs(matrices).argmax(axis=2)
    negative = np.take_along_axis(matrices, columns[..., None], axis=2)[..., 0] < 0
    return np.where(negative, columns + matrices.shape[1], columns).astype(np.int64)
