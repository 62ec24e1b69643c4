"""Data sets that are computed, so that their symmetry is a fact: games, cards, spins, points, waves.

Each function takes the number of examples and a seed, and returns inputs and labels. Every symmetry that is called
true maps any input to one with the same label, or with the same distribution of labels where inputs were moved at
random; every one that is called false maps some inputs to inputs with other labels.
"""

from itertools import product

import numpy as np
from jaxtyping import Float, Int

from invariantnet.symmetries.group import Group
from studies.truth.problems import generator

Data = tuple[Float[np.ndarray, "n dim"], np.ndarray]
"""Inputs and labels."""

ROWS, COLUMNS, IN_A_ROW = 6, 7, 4
"""Size of a Connect-4 board, and stones in a row that win."""
PLIES = (8, 20)
"""Fewest and most stones on a board; an even number, so that both sides have equally many."""
CARDS, RANKS, SUITS = 5, 13, 4
"""A hand of poker, and the deck."""
DEALT = 30
"""Hands dealt for each that is kept: the rarest class, two pairs or better, is one in thirteen."""
BITS = 9
"""Numbers whose parity is asked for: all 512 patterns can be listed."""
SIDE, SWEEPS, TEMPERATURES = 6, 20, (2.0, 5.0)
"""Side of the torus of spins, updates of all spins, and range of temperatures: order below 2.3, disorder above."""
ALONG_ROWS = 0.3
"""Strength of the bonds along rows where they differ from those along columns."""
POINTS, WINDING, JITTER = 16, 4.5, 0.2
"""Points of a spiral, its angle in radians from centre to rim, and the standard deviation of the noise."""
LENGTH, WAVE, WAVES, WAVE_NOISE = 40, 12, 3, 0.3
"""Length of a signal and of the wave in it; waves, each of them also reversed; standard deviation of the noise."""


def winning_lines() -> Int[np.ndarray, "lines 4"]:
    """All rows of four fields on the board, by the numbers of their fields."""
    fields = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    lines = []
    for row, column, (down, right) in product(range(ROWS), range(COLUMNS), ((0, 1), (1, 0), (1, 1), (1, -1))):
        ends = row + (IN_A_ROW - 1) * down, column + (IN_A_ROW - 1) * right
        if ends[0] < ROWS and 0 <= ends[1] < COLUMNS:
            lines.append([fields[row + i * down, column + i * right] for i in range(IN_A_ROW)])
    return np.array(lines)


LINES = winning_lines()
"""The 69 rows of four fields."""


def prospects(boards: Float[np.ndarray, "n fields"]) -> Float[np.ndarray, " n"]:
    """Squared stones in every row of four that the other side has no stone in: the mover's minus the other's."""
    stones = boards[:, LINES]
    mine, others = (stones > 0).sum(-1), (stones < 0).sum(-1)
    return ((mine**2) * (others == 0) - (others**2) * (mine == 0)).sum(-1).astype(float)


def connect_four(n: int, seed: int) -> Data:
    """Positions after random moves; the class is whether the mover has the better prospects. Ties are left out."""
    rng = generator(seed, "Connect-4")
    boards: list[np.ndarray] = []
    while len(boards) < n:
        board, stone = np.zeros((ROWS, COLUMNS)), 1.0
        for _ in range(2 * int(rng.integers(PLIES[0] // 2, PLIES[1] // 2 + 1))):
            column = rng.choice(np.flatnonzero(board[0] == 0))
            board[np.flatnonzero(board[:, column] == 0)[-1], column] = stone
            stone = -stone
        flat = board.reshape(1, -1)
        over = np.abs(flat[0, LINES].sum(-1)).max() == IN_A_ROW
        if not over and prospects(flat)[0] != 0:
            boards.append(flat[0])
    x = np.array(boards)
    return x, (prospects(x) > 0).astype(np.int64)


def hand_category(ranks: Int[np.ndarray, "n 5"], suits: Int[np.ndarray, "n 5"]) -> Int[np.ndarray, " n"]:
    """0 for a high card, 1 for one pair, 2 for anything better."""
    counts = (ranks[:, :, None] == np.arange(RANKS)).sum(1)
    pairs, more = (counts == 2).sum(1), (counts > 2).any(1)
    flush = (suits == suits[:, :1]).all(1)
    low_ace = np.where(ranks == RANKS - 1, -1, ranks)
    straight = np.any([_consecutive(found) for found in (ranks, low_ace)], axis=0)
    return np.where(more | flush | straight | (pairs == 2), 2, pairs)


def _consecutive(ranks: Int[np.ndarray, "n 5"]) -> np.ndarray:
    return (np.diff(np.sort(ranks, axis=1), axis=1) == 1).all(1)


def poker(n: int, seed: int) -> Data:
    """Hands of five cards, each as rank and suit one-hot; the category is the class, all equally frequent."""
    rng = generator(seed, "poker")
    hands = np.argsort(rng.random((DEALT * n // 3, RANKS * SUITS)), axis=1)[:, :CARDS]
    ranks, suits = hands % RANKS, hands // RANKS
    category = hand_category(ranks, suits)
    share = -(-n // 3)
    keep = rng.permutation(np.concatenate([np.flatnonzero(category == c)[:share] for c in range(3)]))[:n]
    cards = np.concatenate([np.eye(RANKS)[ranks[keep]], np.eye(SUITS)[suits[keep]]], axis=-1)
    return cards.reshape(len(keep), -1), category[keep]


def parity(n: int, seed: int) -> Data:
    """Different patterns of ±1 in random order; the class is whether the number of -1 is odd."""
    patterns = np.array(list(product((-1.0, 1.0), repeat=BITS)))
    x = generator(seed, "parity").permutation(patterns)[:n]
    return x, (x.prod(1) < 0).astype(np.int64)


def spins(n: int, seed: int) -> Float[np.ndarray, "n side side"]:
    """Spins on a torus at random temperatures, by the Metropolis rule, even and odd fields in turn."""
    rng = generator(seed, "spins")
    s = rng.choice((-1.0, 1.0), size=(n, SIDE, SIDE))
    temperature = rng.uniform(*TEMPERATURES, size=(n, 1, 1))
    even = np.indices((SIDE, SIDE)).sum(0) % 2 == 0
    for _, field in product(range(SWEEPS), (even, ~even)):
        around = sum(np.roll(s, shift, axis) for shift in (-1, 1) for axis in (1, 2))
        turned = field & (rng.random(s.shape) < np.exp(-2 * s * around / temperature))
        s = np.where(turned, -s, s)
    return s


def energy(s: Float[np.ndarray, "n side side"], along_rows: float = 1.0) -> Float[np.ndarray, " n"]:
    """Energy per spin of bonds between neighbours on the torus."""
    bonds = along_rows * s * np.roll(s, 1, axis=2) + s * np.roll(s, 1, axis=1)
    return -bonds.mean(axis=(1, 2))


def ising(n: int, seed: int) -> Data:
    """Spins and their energy, with equal bonds in both directions."""
    s = spins(n, seed)
    return s.reshape(n, -1), energy(s)


def uneven_ising(n: int, seed: int) -> Data:
    """Spins and their energy, with weaker bonds along rows: a quarter turn changes it."""
    s = spins(n, seed)
    return s.reshape(n, -1), energy(s, ALONG_ROWS)


def spirals(n: int, seed: int, *, ordered: bool) -> Data:
    """Points on spirals that wind to the left or to the right, turned at random; the class is the sense.

    Args:
        n: Examples.
        seed: Decides everything.
        ordered: List the points from the centre to the rim; otherwise in random order.

    Returns:
        Coordinates of all points, and classes.
    """
    rng = generator(seed, "spirals", ordered)
    radius = rng.uniform(0.1, 1, size=(n, POINTS))
    if ordered:
        radius.sort(axis=1)
    y = rng.integers(2, size=n)
    angle = rng.uniform(0, 2 * np.pi, size=(n, 1)) + np.where(y, WINDING, -WINDING)[:, None] * radius
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return (points + JITTER * rng.normal(size=points.shape)).reshape(n, -1), y


def on_every_point(matrix: np.ndarray, name: str) -> Group:
    """The group that a matrix of the plane generates, acting on all points at once."""
    return Group.from_matrices([np.kron(np.eye(POINTS), matrix)], name=name)


def turns(parts: int) -> Group:
    """Turns of all points by multiples of a full turn divided by `parts`."""
    angle = 2 * np.pi / parts
    cosine, sine = np.cos(angle), np.sin(angle)
    return on_every_point(np.round([[cosine, -sine], [sine, cosine]], 15), "turns")


def mirror() -> Group:
    """All points mirrored, left and right exchanged."""
    return on_every_point(np.diag([-1.0, 1.0]), "mirror")


def waves(n: int, seed: int) -> Data:
    """Signals on a circle with one of several waves at a random place, or its reversal, which is another class."""
    rng = generator(seed, "waves")
    shapes = np.cumsum(rng.normal(size=(WAVES, WAVE)), axis=1)
    shapes = (shapes - shapes.mean(1, keepdims=True)) / shapes.std(1, keepdims=True)
    shapes = np.concatenate([shapes, shapes[:, ::-1]])
    y = rng.integers(len(shapes), size=n)
    x = np.zeros((n, LENGTH))
    x[:, :WAVE] = shapes[y] * rng.uniform(0.7, 1.3, size=(n, 1))
    places = (np.arange(LENGTH) + rng.integers(LENGTH, size=(n, 1))) % LENGTH
    return np.take_along_axis(x, places, axis=1) + WAVE_NOISE * rng.normal(size=x.shape), y
