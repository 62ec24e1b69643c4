"""All elements of a group from its generators, and the checks that there are finitely many."""

import math

import numpy as np
from jaxtyping import Float64, Int64

TOLERANCE = 1e-8
"""Largest difference between two matrices that count as one element, relative to their largest entry.

Products of a few thousand matrices in double precision stay well below it, and distinct elements well above.
"""

MAX_ENTRIES = 10**8
"""Largest size of a list of elements, in numbers: 800 MB of 64-bit numbers."""

WARM_UP = 200
"""Random products that are made and thrown away before the first one counts as a random element."""

Indices = Int64[np.ndarray, "n dim"]
"""Index arrays, one per row; an index of at least `dim` stands for a change of sign."""

Matrices = Float64[np.ndarray, "n dim dim"]
"""Square matrices, one after another."""


class TooManyElementsError(ValueError):
    """The generators make more elements than allowed, or infinitely many."""


def most_elements(size: int) -> int:
    """Number of elements, of `size` numbers each, that can be listed."""
    return max(1, MAX_ENTRIES // size)


def as_matrices(indices: Int64[np.ndarray, "n dim"]) -> Float64[np.ndarray, "n dim dim"]:
    """Convert index arrays to dense matrices."""
    n, dim = indices.shape
    matrices = np.zeros((n, dim, dim))
    sign = np.where(indices < dim, 1.0, -1.0)
    matrices[np.arange(n)[:, None], np.arange(dim), indices % dim] = sign
    return matrices


def nearest_indices(matrices: Matrices) -> Indices | None:
    """Convert matrices that are signed permutations up to rounding errors; None if one of them is not."""
    rounded = np.round(matrices)
    if np.abs(matrices - rounded).max() > TOLERANCE or not are_signed_permutations(rounded):
        return None
    return matrices_to_indices(rounded)


def extend(index: Int64[np.ndarray, "*n dim"]) -> Int64[np.ndarray, "*n twice"]:
    """Convert signed permutations of `dim` inputs `x` to permutations of the `2·dim` numbers `(x, -x)`."""
    dim = index.shape[-1]
    return np.concatenate([index, (index + dim) % (2 * dim)], axis=-1)


def close_indices(generators: Indices, max_order: int, name: str) -> Int64[np.ndarray, "order dim"]:
    """List all products of index arrays, breadth first from the identity.

    Args:
        generators: Index arrays, signs included.
        max_order: Largest number of elements to list.
        name: Name of the group, for the error message.

    Returns:
        Every element once, the identity first.

    Raises:
        TooManyElementsError: There are more than `max_order` elements, or more than fit into `MAX_ENTRIES`.
    """
    dim = generators.shape[1]
    limit = min(max_order, most_elements(dim))
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
            if len(known) > limit:
                raise TooManyElementsError(
                    f"{name} has more than {limit:,} elements"
                    + _advice(max_order, dim, dim, "pass max_order=None to work from its generators alone")
                )
        frontier = fresh
    return np.stack(list(known.values()))


def close_matrices(generators: Matrices, max_order: int, name: str) -> Float64[np.ndarray, "order dim dim"]:
    """List all products of matrices; matrices that differ by rounding errors are one element.

    A random projection of every matrix to one number finds the few elements worth comparing in full.

    Args:
        generators: Invertible matrices.
        max_order: Largest number of elements to list.
        name: Name of the group, for the error message.

    Returns:
        Every element once, the identity first.

    Raises:
        TooManyElementsError: There are more than `max_order` elements, or more than fit into `MAX_ENTRIES`.
    """
    dim = generators.shape[-1]
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal(dim), rng.standard_normal(dim)
    scale = np.abs(left).sum() * np.abs(right).max()
    limit = min(max_order, most_elements(dim**2))
    elements = [np.eye(dim)]
    prints = np.empty(limit)
    prints[0] = np.dot(left, right)
    # The list grows while it is walked: every new element is multiplied in its turn.
    for element in elements:
        for product in generators @ element:
            size = TOLERANCE * max(1.0, float(np.abs(product).max()))
            mark = left @ product @ right
            near = np.flatnonzero(np.abs(prints[: len(elements)] - mark) <= size * scale)
            if any(np.abs(elements[i] - product).max() <= size for i in near):
                continue
            if len(elements) == limit:
                raise TooManyElementsError(
                    f"{name} has more than {limit:,} elements, or infinitely many"
                    + _advice(max_order, dim**2, dim, "check the generators")
                )
            prints[len(elements)] = mark
            elements.append(product)
    return np.stack(elements)


def _advice(max_order: int, size: int, dim: int, otherwise: str) -> str:
    """Advise a larger max_order only if more elements than that can be listed."""
    most = most_elements(size)
    if max_order < most:
        return f": {otherwise}, or raise max_order (up to {most:,} can be listed on {dim:,} inputs)."
    return f", the most that can be listed on {dim:,} inputs: {otherwise}."


def random_products(generators: Indices, count: int, rng: np.random.Generator) -> Int64[np.ndarray, "count dim"]:
    """Draw nearly uniform elements by product replacement (Celler et al. 1995), the identity first.

    The algorithm multiplies random pairs of a pool of elements, and each result into an accumulator.

    Args:
        generators: Index arrays.
        count: Number of elements, the identity included.
        rng: Source of randomness.

    Returns:
        The elements; some may be equal.
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


def are_indices(index: Int64[np.ndarray, " dim"]) -> bool:
    """Whether an index array holds every input exactly once, with either sign."""
    dim = len(index)
    within = index.min() >= 0 and index.max() < 2 * dim
    return bool(within) and np.array_equal(np.sort(index % dim), np.arange(dim))


def check_indices(indices: Indices) -> None:
    """Raise a ValueError for an index array that does not hold every input exactly once."""
    dim = indices.shape[1]
    for i, index in enumerate(indices):
        if not are_indices(index):
            raise ValueError(
                f"generator {i} is not a permutation of 0 … {dim - 1}: each input must appear exactly once."
            )


def check_invertible(matrices: Matrices) -> None:
    """Raise a ValueError for a matrix that is singular or not finite."""
    for i, matrix in enumerate(matrices):
        if not np.isfinite(matrix).all():
            raise ValueError(f"generator {i} holds values that are not finite: remove NaN and infinity.")
        if np.linalg.matrix_rank(matrix) < len(matrix):
            raise ValueError(f"generator {i} is singular, and a group has inverses: pass invertible matrices.")


def check_finite_order(matrix: Float64[np.ndarray, "dim dim"], number: int, max_order: int) -> None:
    """Raise a ValueError for a matrix of which no power is the identity.

    Args:
        matrix: An invertible matrix.
        number: Its number among the generators, for the error message.
        max_order: Largest power to try.
    """
    identity = np.eye(len(matrix))
    infinite = f"generator {number} has infinite order"
    modulus = np.abs(np.linalg.eigvals(matrix))
    worst = modulus[np.abs(modulus - 1).argmax()]
    if abs(worst - 1) > math.sqrt(TOLERANCE):
        raise ValueError(f"{infinite}: an eigenvalue has modulus {worst:.4g}, not 1. Check the matrix.")
    most = most_elements(matrix.size)
    power = matrix
    for _ in range(min(max_order, most)):
        if np.abs(power - identity).max() <= TOLERANCE * max(1.0, float(np.abs(matrix).max())):
            return
        power = power @ matrix
    raise ValueError(
        f"{infinite}, or too high an order: no power up to {min(max_order, most):,} is the identity. "
        f"Check the matrix, or pass it in double precision{', or raise max_order' if max_order < most else ''}."
    )


def are_signed_permutations(matrices: Matrices) -> bool:
    """Whether each row of invertible matrices holds a single entry, 1 or -1."""
    magnitude = np.abs(matrices)
    return bool(((magnitude == 0) | (magnitude == 1)).all() and (magnitude.sum(axis=2) == 1).all())


def matrices_to_indices(matrices: Matrices) -> Indices:
    """Convert signed permutation matrices to index arrays."""
    columns = np.abs(matrices).argmax(axis=2)
    negative = np.take_along_axis(matrices, columns[..., None], axis=2)[..., 0] < 0
    return np.where(negative, columns + matrices.shape[1], columns).astype(np.int64)
