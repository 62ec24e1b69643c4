"""Data sets whose hidden symmetry is known by construction."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from invariantnet import data as datasets
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import symmetry


@dataclass(frozen=True, eq=False)
class Problem:
    """Examples and the group behind them.

    Args:
        x: Inputs.
        y: Labels.
        truth: The hidden group; trivial if there is none.
        places: For scrambled images, the pixel that each input was.
    """

    x: np.ndarray
    y: np.ndarray
    truth: Group
    places: np.ndarray | None = None


def trivial(dim: int) -> Group:
    """No symmetry."""
    return Group.from_permutations([list(range(dim))], "none")


def image_group(kind: str, side: int) -> Group:
    """Look up a group of square images; `rows` shifts rows cyclically."""
    if kind == "none":
        return trivial(side**2)
    if kind == "rows":
        pixels = np.arange(side**2).reshape(side, side)
        return Group.from_permutations([np.roll(pixels, 1, axis=0).ravel()], "rows")
    return symmetry(kind, (side, side))


def scrambled_images(images: str, kind: str, n: int, seed: int) -> Problem:
    """Digits, each moved by a random element of a group, all scrambled by one secret permutation.

    Args:
        images: `digits` of 8×8 pixels, or `mnist` of 28×28.
        kind: Name of the group.
        n: Number of examples.
        seed: Decides which digits, how each is moved, and how all are scrambled.

    Returns:
        The problem.
    """
    rng = np.random.default_rng([seed, n])
    if images == "digits":
        x, y = load_digits(return_X_y=True)
    else:
        data = datasets.load("mnist")
        x, y = data.x_train.reshape(len(data.x_train), -1), data.y_train
    chosen = rng.permutation(len(x))[:n]
    x, y = np.asarray(x[chosen], dtype=np.float64), np.asarray(y[chosen])
    side = round(x.shape[1] ** 0.5)
    group = image_group(kind, side)
    elements = group.elements.numpy()
    x = np.take_along_axis(x, elements[rng.integers(len(elements), size=n)], axis=1)
    places = rng.permutation(side**2)
    return Problem(x[:, places], y, renamed(group, places), places)


def renamed(group: Group, places: np.ndarray) -> Group:
    """Express a group in inputs that come in another order."""
    back = np.argsort(places)
    return Group.from_permutations([back[g[places]] for g in group.generators], group.name)


def hidden_group(kind: str, dim: int, rng: np.random.Generator) -> Group:
    """Hide a group among the inputs: some of them take each other's places.

    Args:
        kind: `none`, `exchange` (all permutations of some inputs), `cycle` (of some), `reflection` (of all).
        dim: Number of inputs.
        rng: Source of randomness.

    Returns:
        The group.
    """
    identity = np.arange(dim)
    if kind == "none":
        return trivial(dim)
    size = dim if kind == "reflection" else int(rng.integers(max(3, dim // 2), dim + 1))
    members = rng.permutation(dim)[:size]
    turn, flip, exchange = identity.copy(), identity.copy(), identity.copy()
    turn[members] = np.roll(members, 1)
    flip[members] = members[::-1]
    exchange[members[:2]] = members[1::-1]
    generators = {"exchange": [turn, exchange], "cycle": [turn], "reflection": [flip], "dihedral": [turn, flip]}[
        kind
    ]
    return Group.from_permutations(generators, kind, max_order=None)
