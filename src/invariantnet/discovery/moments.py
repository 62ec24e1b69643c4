"""Moments of the inputs given the labels: what a symmetry of inputs and labels leaves alone."""

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from invariantnet.discovery._matching import Moments

BINS = 3
"""Most parts into which real labels are cut: covariances of more parts are noisy."""

SMALLEST_PART = 12
"""Examples of a class below which it joins the other rare ones: fewer give no useful covariance."""

FEW_VALUES = 8
"""Values up to which squares of inputs count too: whether a field of a board is taken, by either side."""

RAREST = 20
"""Examples in which an input has to differ from its usual value: from fewer, its place cannot be told."""

SMALLEST_NOISE = 0.01
"""Share of the noise of independent normal inputs that covariances have at least; for a few values it can be 0."""

ROOM = 2.0
"""Factor above and below `RAREST` within which the widest gap between inputs is the border."""

WIDE = 1.5
"""Ratio of a gap that no orbit lies on both sides of: counts near 20 differ by less, but for chance."""


def parts_of(y: Shaped[np.ndarray, " n"], *, classes: bool) -> list[Int64[np.ndarray, "_"]]:
    """Group the examples by class, or by quantiles of real labels.

    Args:
        y: Class numbers or real labels.
        classes: Which of the two.

    Returns:
        The numbers of the examples of each part. Classes with few examples share one part.
    """
    if classes:
        found = [np.flatnonzero(y == c) for c in np.unique(y)]
        rare = [part for part in found if len(part) < SMALLEST_PART]
        return [p for p in found if len(p) >= SMALLEST_PART] + ([np.concatenate(rare)] if rare else [])
    count = max(1, min(BINS, len(y) // (2 * SMALLEST_PART)))
    return [part for part in np.array_split(np.argsort(y, kind="stable"), count) if len(part)]


def moments_given_labels(x: Float64[np.ndarray, "n dim"], parts: list[Int64[np.ndarray, "_"]]) -> Moments:
    """Means, variances and covariances of the inputs, in each part and in all, in units of their sampling noise.

    Inputs are divided by the root of their standard deviation: in their own units, inputs that vary little
    would not count; divided by all of it, they would count as much as inputs that vary a lot, noise included.

    Args:
        x: Inputs; all of them vary.
        parts: Examples of each class, or of each range of real labels.

    Returns:
        The moments.
    """
    spread = x.std(axis=0)
    typical = float(np.exp(np.log(spread).mean()))
    z = x / np.sqrt(spread * typical)
    even, odd = [_row(spread, spread / np.sqrt(2 * len(x)))], [_mean_row(x)]
    squares = [_covariances((z - z.mean(axis=0)) ** 2)] if _few_values(x) else []
    pairs = [_covariances(z)] if len(parts) > 1 else []
    for part in parts:
        odd.append(_mean_row(z[part]))
        pairs.append(_covariances(z[part]))
    return Moments(np.stack(even), np.stack(odd), np.stack(squares + pairs) / np.sqrt(2), len(squares))


def _few_values(x: Float64[np.ndarray, "n dim"]) -> bool:
    """Whether inputs take few values, but more than two: then squares say which of them occur together."""
    counts = [len(np.unique(column)) for column in x.T]
    return max(counts) <= FEW_VALUES and float(np.median(counts)) > 2


def _covariances(z: Float64[np.ndarray, "n dim"]) -> Float64[np.ndarray, "dim dim"]:
    """Covariances in units of their sampling noise, which products of the values themselves tell."""
    centred = z - z.mean(axis=0)
    squared = centred**2
    covariance = centred.T @ centred / len(z)
    noise = float((squared.T @ squared / len(z) - covariance**2).mean())
    variance = np.diag(covariance)
    least = SMALLEST_NOISE * float(np.outer(variance, variance).mean())
    return covariance / np.sqrt(max(noise, least) / len(z) + 1e-300)


def inputs_that_vary(x: Float64[np.ndarray, "n dim"]) -> Bool[np.ndarray, " dim"]:
    """Whether each input differs from its usual value often enough to tell its place among the others.

    The border lies in the widest gap near `RAREST` examples, because inputs that take each other's places vary
    about equally often.

    Args:
        x: Inputs.

    Returns:
        False for the inputs to set aside.
    """
    often = _how_often(x)
    low, high = _border(often)
    return often >= np.sqrt(low * high)


def inputs_that_hardly_vary(x: Float64[np.ndarray, "n dim"]) -> Bool[np.ndarray, " dim"]:
    """Whether each input varies so little that others of its orbit may lie below the border, by chance.

    Without a wide gap at the border, some orbits lie on both sides of it. What is left of them above it finds
    wrong places, so whole orbits have to be set aside later.

    Args:
        x: Inputs.

    Returns:
        True for inputs just above the border; none if there is a wide gap.
    """
    often = _how_often(x)
    low, high = _border(often)
    if high >= WIDE * low:
        return np.zeros(len(often), bool)
    return (often >= np.sqrt(low * high)) & (often < ROOM * np.sqrt(low * high))


def _how_often(x: Float64[np.ndarray, "n dim"]) -> Int64[np.ndarray, " dim"]:
    """Examples in which each input differs from its usual value."""
    return np.array([len(column) - np.unique(column, return_counts=True)[1].max() for column in x.T])


def _border(often: Int64[np.ndarray, " dim"]) -> tuple[float, float]:
    """The widest gap near `RAREST` examples."""
    near = np.sort(often[(often > RAREST / ROOM) & (often < RAREST * ROOM)])
    edges = np.concatenate([[RAREST / ROOM], near, [RAREST * ROOM]])
    widest = int(np.argmax(np.diff(np.log(edges))))
    return float(edges[widest]), float(edges[widest + 1])


def _mean_row(x: Float64[np.ndarray, "n dim"]) -> Float64[np.ndarray, " dim"]:
    return _row(x.mean(axis=0), x.std(axis=0) / np.sqrt(len(x)))


def _row(value: Float64[np.ndarray, " dim"], noise: Float64[np.ndarray, " dim"]) -> Float64[np.ndarray, " dim"]:
    return value / np.sqrt(np.mean(noise**2) + 1e-300)
