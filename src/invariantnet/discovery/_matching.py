r"""Permutations of the inputs that leave given numbers alone: quadratic assignment by Frank–Wolfe.

A permutation $\pi$ with signs $s$ is judged by the squared change of a number per input and of a number per pair,

$$\ell(\pi, s) = \sum_i (m_i - s_i^{o} m_{\pi(i)})^2 + \sum_{ij} (C_{ij} - s_i s_j C_{\pi(i)\pi(j)})^2,$$

with $o = 1$ for odd numbers, such as means, and $o = 0$ for even ones, such as variances. Both norms are
constant, so a small loss is a large inner product, which Frank–Wolfe maximises over doubly stochastic matrices.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64
from scipy.optimize import linear_sum_assignment

STEPS = 40
"""Most steps of Frank–Wolfe: it mostly ends at a permutation after 10 to 20."""

CONVERGED = 1e-7
"""Rise of the inner product, relative to its slope, below which the search ends."""

ANCHORS = 12
"""Places of a start that are filled one after another."""

TEMPERATURE = 4.0
"""Squared distance, in units of noise, that makes an input e times less probable; noise alone would say 2."""

TAKEN = 1e6
"""Squared distance of an input that is taken already, or not allowed."""

Matrix = Float64[np.ndarray, "dim dim"]
"""A number for each ordered pair of inputs."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Numbers that a symmetry leaves alone, in units of their own sampling noise.

    Args:
        even: Numbers per input that a change of sign leaves alone.
        odd: Numbers per input whose sign changes along with the input's.
        pairs: Symmetric matrices: numbers per pair of inputs, odd in both.
        squares: How many of the first matrices are of squares of inputs, and so are even in both.
    """

    even: Float64[np.ndarray, "rows dim"]
    odd: Float64[np.ndarray, "more_rows dim"]
    pairs: Float64[np.ndarray, "matrices dim dim"]
    squares: int = 0

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return int(self.pairs.shape[-1])

    @cached_property
    def side_by_side(self) -> Float32[np.ndarray, "dim matrices dim"]:
        """The pairs of every input, in 32 bits: a gradient need not be exact."""
        return np.ascontiguousarray(self.pairs.transpose(1, 0, 2), dtype=np.float32)

    @cached_property
    def even_products(self) -> Matrix:
        """Inner products of the even numbers of any two inputs."""
        return self.even.T @ self.even

    @cached_property
    def odd_products(self) -> Matrix:
        """Inner products of the odd numbers of any two inputs."""
        return self.odd.T @ self.odd

    def loss(self, index: Int64[np.ndarray, " dim"]) -> float:
        """Squared change of all numbers under an index array; an index of at least `dim` changes the sign."""
        return float(self.row_losses(index).sum())

    def averaged(self, elements: Int64[np.ndarray, "copies dim"]) -> "Moments":
        """Mean over the elements of a group: the same moments, with less noise, if the group is true."""
        even, odd, pairs = (np.zeros_like(numbers) for numbers in (self.even, self.odd, self.pairs))
        for index in elements:
            to, sign = index % self.dim, np.where(index < self.dim, 1.0, -1.0)
            even += self.even[:, to]
            odd += sign * self.odd[:, to]
            pairs += self.moved_pairs(index)
        return Moments(even / len(elements), odd / len(elements), pairs / len(elements), self.squares)

    def and_also(self, others: "Moments") -> "Moments":
        """These and other moments of the same inputs."""
        even, odd = np.concatenate([self.even, others.even]), np.concatenate([self.odd, others.odd])
        assert not others.squares
        return Moments(even, odd, np.concatenate([self.pairs, others.pairs]), self.squares)

    def among(self, kept: Bool[np.ndarray, " dim"] | Int64[np.ndarray, " kept"]) -> "Moments":
        """The moments of some of the inputs."""
        pairs = self.pairs[:, kept][:, :, kept]
        return Moments(self.even[:, kept], self.odd[:, kept], pairs, self.squares)

    def moved_pairs(self, index: Int64[np.ndarray, " dim"]) -> Float64[np.ndarray, "matrices dim dim"]:
        """Pairs after an index array has moved the inputs and changed their signs."""
        to = index % self.dim
        moved = self.pairs[:, to][:, :, to]
        if (index >= self.dim).any():
            sign = np.where(index < self.dim, 1.0, -1.0)
            moved[self.squares :] *= np.outer(sign, sign)
        return moved

    def row_losses(self, index: Int64[np.ndarray, " dim"]) -> Float64[np.ndarray, " dim"]:
        """Squared change of the numbers of each input."""
        to, sign = index % self.dim, np.where(index < self.dim, 1.0, -1.0)
        change = ((self.even - self.even[:, to]) ** 2).sum(axis=0)
        change += ((self.odd - sign * self.odd[:, to]) ** 2).sum(axis=0)
        return np.asarray(change + ((self.pairs - self.moved_pairs(index)) ** 2).sum(axis=(0, 2)))

    def loss_at(self, index: Int64[np.ndarray, " dim"], touched: Int64[np.ndarray, " some"]) -> float:
        """The part of the loss in which one of some inputs takes part."""
        to, sign = index % self.dim, np.where(index < self.dim, 1.0, -1.0)
        change = ((self.even[:, touched] - self.even[:, to[touched]]) ** 2).sum()
        change += ((self.odd[:, touched] - sign[touched] * self.odd[:, to[touched]]) ** 2).sum()
        moved = self.pairs[:, to[touched]][:, :, to]
        moved[self.squares :] *= sign[touched, None] * sign
        squares = (self.pairs[:, touched] - moved) ** 2
        # Pairs are symmetric; the ones of two such inputs are in two of the rows.
        return float(change + 2 * squares.sum() - squares[:, :, touched].sum())

    def misfit(self, index: Int64[np.ndarray, " dim"]) -> float:
        """Mean squared change of the numbers that the index array moves: about 2 for a true symmetry."""
        moved = int((index != np.arange(self.dim)).sum())
        touched = self.dim**2 - (self.dim - moved) ** 2
        count = moved * (len(self.even) + len(self.odd)) + touched * len(self.pairs)
        return self.loss(index) / max(1, count)


@dataclass(frozen=True, eq=False)
class Limits:
    """Where an input may go.

    Args:
        plus: Whether input j, with its sign, may take the place of input i.
        minus: Whether input j with the other sign may.
    """

    plus: Bool[np.ndarray, "dim dim"]
    minus: Bool[np.ndarray, "dim dim"]

    @classmethod
    def all_move(cls, dim: int, *, signed: bool) -> "Limits":
        """Every input moves, or changes its sign."""
        return cls(~np.eye(dim, dtype=bool), np.full((dim, dim), signed))

    @classmethod
    def one_moves(cls, dim: int, i: int, j: int, *, negative: bool, signed: bool) -> "Limits":
        """Input j takes the place of input i; anything else may stay where it is."""
        plus, minus = np.ones((dim, dim), bool), np.full((dim, dim), signed)
        plus[i], minus[i] = False, False
        (minus if negative else plus)[i, j] = True
        return cls(plus, minus)


def match(moments: Moments, limits: Limits, start: Float64[np.ndarray, "2 dim dim"]) -> Int64[np.ndarray, " dim"]:
    """Find an index array that leaves the moments almost alone, near a start.

    If signs may change, there are to be no squares among the moments.

    Args:
        moments: What to leave alone.
        limits: Where each input may go.
        start: Shares of each input that start in each place, with and without a change of sign.

    Returns:
        The index array at a local optimum; a change of sign is an index of at least `dim`.
    """
    shares = start
    curve = _curve(moments, shares[0] - shares[1])
    for _ in range(STEPS):
        slope = 2 * curve + moments.odd_products
        gain = np.stack([moments.even_products + slope, moments.even_products - slope])
        corner = _corner(gain, limits)
        step = as_start(corner) - shares
        rise = float((gain * step).sum())
        if rise <= CONVERGED * max(1.0, float(np.abs(gain).max())):
            break
        change = _curve_of_corner(moments, corner) - curve
        bend = float((change * (step[0] - step[1])).sum())
        size = 1.0 if bend >= 0 else min(1.0, -rise / (2 * bend))
        shares, curve = shares + size * step, curve + size * change
    return _corner(shares, limits)


def starts(limits: Limits, rng: np.random.Generator, count: int) -> list[Float64[np.ndarray, "2 dim dim"]]:
    """Draw random shares within the limits, nearly doubly stochastic."""
    allowed = np.stack([limits.plus, limits.minus])
    return [_balanced(rng.random(allowed.shape) * allowed) for _ in range(count)]


def _balanced(shares: Float64[np.ndarray, "2 dim dim"]) -> Float64[np.ndarray, "2 dim dim"]:
    """Scale rows and columns until all of them nearly sum to 1."""
    for _ in range(10):
        shares = shares / shares.sum(axis=(0, 2), keepdims=True).clip(1e-12)
        shares = shares / shares.sum(axis=(0, 1), keepdims=True).clip(1e-12)
    return shares


def anchored(
    moments: Moments, i: int, j: int, limits: Limits, rng: np.random.Generator
) -> Float64[np.ndarray, "2 dim dim"]:
    """Start where inputs are alike if input j takes the place of input i, and further ones follow.

    Input l may take the place of input k if it is related to j as k is to i. The place that leaves the least
    choice is filled next, and so on. This breaks ties between the elements of a group, which otherwise get stuck
    halfway between two of them: on a torus, one place leaves eight elements, and three leave one.

    Args:
        moments: What to leave alone.
        i: A place.
        j: The input that takes it.
        limits: Where each input may go.
        rng: Draws among inputs that are alike.

    Returns:
        Shares of each input that start in each place.
    """
    singles = np.concatenate([moments.even, moments.odd, np.diagonal(moments.pairs, axis1=1, axis2=2)]).T
    distance = np.where(limits.plus, square_distances(singles, singles), TAKEN)
    for _ in range(min(ANCHORS, moments.dim)):
        # An anchored place and its input are out of the question for all others.
        distance += 2 * square_distances(moments.pairs[:, i].T, moments.pairs[:, j].T)
        distance[i], distance[:, j], distance[i, j] = TAKEN, TAKEN, 0.0
        shares = np.exp(-(distance - distance.min(axis=1, keepdims=True)) / TEMPERATURE)
        shares /= shares.sum(axis=1, keepdims=True)
        choice = -(shares * np.log(shares + 1e-12)).sum(axis=1)
        choice[distance.min(axis=1) == 0] = np.inf
        i = int(choice.argmin())
        if not np.isfinite(choice[i]) or distance[i].min() >= TAKEN:
            break
        j = int(rng.choice(moments.dim, p=shares[i]))
    shares = np.exp(-(distance - distance.min(axis=1, keepdims=True)) / TEMPERATURE) + 1e-6
    return _balanced(np.stack([shares * limits.plus, 1e-6 * limits.minus]))


def square_distances(
    rows: Float64[np.ndarray, "n k"], others: Float64[np.ndarray, "m k"]
) -> Float64[np.ndarray, "n m"]:
    """Squared distances between the rows of two matrices."""
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    return (squares - 2 * rows @ others.T).clip(0)


def improve(
    moments: Moments, limits: Limits, index: Int64[np.ndarray, " dim"], rng: np.random.Generator, rounds: int
) -> Int64[np.ndarray, " dim"]:
    """Search again from where the best part of the inputs goes, with the others anywhere, as long as that helps.

    A search may end with one part of the inputs moved by one element of a group, and the rest by another.

    Args:
        moments: What to leave alone.
        limits: Where each input may go.
        index: The index array to improve.
        rng: Source of randomness.
        rounds: Failed attempts after which to stop.

    Returns:
        An index array that is at least as good.
    """
    best, least, failed = index, moments.loss(index), 0
    while failed < rounds:
        rows = moments.row_losses(best)
        good = rows <= np.quantile(rows, rng.uniform(0.2, 0.7))
        shares = rng.random((2, moments.dim, moments.dim)) * np.stack([limits.plus, limits.minus])
        shares[:, good] = as_start(best)[:, good] + 1e-9
        found = match(moments, limits, _balanced(shares))
        loss = moments.loss(found)
        failed = 0 if loss < least * (1 - 1e-9) else failed + 1
        if loss < least:
            best, least = found, loss
    return best


def as_start(index: Int64[np.ndarray, " dim"]) -> Float64[np.ndarray, "2 dim dim"]:
    """Start at an index array."""
    dim = len(index)
    shares = np.zeros((2, dim, dim))
    shares[index // dim, np.arange(dim), index % dim] = 1.0
    return shares


def _curve(moments: Moments, matrix: Matrix) -> Matrix:
    r"""The sum $\sum_k C_k P C_k$: half of the gradient of the inner products of pairs."""
    moved = moments.side_by_side @ matrix.astype(np.float32)
    return _times_pairs(moments, moved)


def _curve_of_corner(moments: Moments, index: Int64[np.ndarray, " dim"]) -> Matrix:
    """The same for a signed permutation, whose first product only moves columns."""
    back = np.argsort(index % moments.dim)
    sign = np.where(index[back] < moments.dim, 1, -1).astype(np.float32)
    return _times_pairs(moments, moments.side_by_side[:, :, back] * sign)


def _times_pairs(moments: Moments, moved: Float32[np.ndarray, "dim matrices dim"]) -> Matrix:
    below = moments.side_by_side.transpose(1, 0, 2).reshape(-1, moments.dim)
    return (moved.reshape(moments.dim, -1) @ below).astype(np.float64)


def _corner(gain: Float64[np.ndarray, "2 dim dim"], limits: Limits) -> Int64[np.ndarray, " dim"]:
    """Find the signed permutation within the limits that gains most."""
    plus = np.where(limits.plus, gain[0], -np.inf)
    minus = np.where(limits.minus, gain[1], -np.inf)
    best = np.maximum(plus, minus)
    low = float(np.abs(gain).max()) * 1e3 + 1.0
    rows, columns = linear_sum_assignment(np.where(np.isfinite(best), best, -low), maximize=True)
    return columns + len(best) * (minus > plus)[rows, columns]
