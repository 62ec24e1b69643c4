"""What does it look like if a symmetry is found in scrambled images?

Every digit is turned by a random multiple of 90°, and all pixels are scrambled by one secret permutation. The
program sees scrambled inputs and labels. The secret is used only to draw what was found.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.colors import hsv_to_rgb
from matplotlib.figure import Figure

from invariantnet.discovery import discover
from invariantnet.symmetries._orbits import signed_orbits
from studies.discovery.hidden_groups import is_right
from studies.discovery.problems import scrambled_images
from studies.framework import Claim, Part, Study

SHOWN = 3
"""Class of the digit in the picture: no turn of it is another digit."""

GOLDEN = 0.381966
"""Share of the circle of colors between one orbit and the next: no two are ever close."""


@dataclass(frozen=True)
class UnscrambledRecipe:
    """Scrambled digits that were turned at random."""

    task: str
    kind: str
    n: int
    seed: int


@dataclass(frozen=True)
class UnscrambledRecord:
    """The permutation that was found."""

    task: str
    kind: str
    n: int
    seed: int
    order: int
    generator: tuple[int, ...]
    set_aside: tuple[int, ...]
    right: bool
    verdict: str


def run(recipe: UnscrambledRecipe) -> list[UnscrambledRecord]:
    """Discover, and keep the first generator."""
    given = scrambled_images(recipe.task, recipe.kind, recipe.n, recipe.seed)
    found = discover(given.x, given.y, random_state=recipe.seed)
    return [
        UnscrambledRecord(
            recipe.task,
            recipe.kind,
            recipe.n,
            recipe.seed,
            found.group.order,
            tuple(found.generators[0].tolist()),
            found.set_aside,
            is_right(found, given.truth),
            found.verdict,
        )
    ]


def draw(records: Sequence[UnscrambledRecord]) -> Figure:
    """Draw a digit as the program sees it, the orbits, and the digit with its moved copies, the secret undone."""
    record = records[0]
    given = scrambled_images(record.task, record.kind, record.n, record.seed)
    assert given.places is not None
    side, back = round(given.x.shape[1] ** 0.5), np.argsort(given.places)
    generator = np.array(record.generator)
    shown = given.x[np.flatnonzero(given.y == SHOWN)[0]]
    copies = [shown]
    for _ in range(record.order - 1):
        copies.append(copies[-1][generator])
    colors = _colors(generator, record.set_aside)
    figure = Figure(figsize=(9.0, 2.0))
    axes = figure.subplots(1, 3 + len(copies))
    gray = {"cmap": "gray_r", "vmin": 0, "vmax": float(shown.max())}
    axes[0].imshow(shown.reshape(side, side), **gray)
    axes[0].set_title("what it sees")
    axes[1].imshow(colors.reshape(side, side, 3))
    axes[1].set_title("what it finds")
    axes[2].imshow(colors[back].reshape(side, side, 3))
    axes[2].set_title("unscrambled")
    for power, (axis, copy) in enumerate(zip(axes[3:], copies, strict=True)):
        axis.imshow(copy[back].reshape(side, side), **gray)
        axis.set_title({0: "the digit", 1: "moved once", 2: "twice"}.get(power, f"{power} times"))
    for axis in axes:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(True)
    figure.tight_layout()
    return figure


def _colors(generator: np.ndarray, set_aside: Sequence[int]) -> np.ndarray:
    """One color for each orbit; inputs that were set aside are grey."""
    orbits = signed_orbits(generator[None])[0]
    hues = (orbits * GOLDEN) % 1.0
    colors = hsv_to_rgb(np.stack([hues, np.full(len(hues), 0.6), 0.6 + 0.15 * (orbits % 3)], axis=1))
    colors[list(set_aside)] = 0.85
    return np.asarray(colors)


def claims(records: Sequence[UnscrambledRecord]) -> dict[str, Claim]:
    """What the pages say."""
    return {
        "found": Claim(
            "In the picture, the permutation that was found is exactly the hidden turn.",
            all(r.right for r in records),
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=UnscrambledRecord,
    parts={"turn": Part(lambda seed: [UnscrambledRecipe("digits", "rot90", 500, seed)], 1)},
    run=run,
    quick=lambda recipe: replace(recipe, n=min(recipe.n, 300)),
    draw=draw,
    claims=claims,
    depends_on=("discovery", "symmetries", "studies.discovery.problems"),
)
