"""The data sets of the panel: each with its candidates, its true symmetry, and the reason why it is true.

Only candidates whose truth is known take part. A false one is refuted by inputs that occur. A Connect-4 board that
is turned upside down is no position, so its label is not defined, and `vflip` is no candidate.

Tables of scikit-learn are an exception. Rows with their columns exchanged do not occur in these units, so that
nothing refutes an exchange but the meaning of the columns. In breast cancer nearly all columns grow together:
exchanging them in standard units costs a random forest little, and a verdict may honestly stay open.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from invariantnet.symmetries.group import Group
from studies.truth import computed_sets as computed
from studies.truth import real_sets as real
from studies.truth.problems import Problem

Proof = Literal["computed", "moved at random", "classes exchanged", "meaning", "none"]
"""Why the truth is known: labels are computed from inputs; every example was moved at random; a false candidate
exchanges classes; columns differ in meaning; or the truth is not known, and only the accuracy counts."""

EXAMPLES, TEST_EXAMPLES = 1000, 1000
"""Examples of computed sets to learn from, and to test on."""
PARITY_EXAMPLES = 384
"""Patterns to learn from, of all 512."""


@dataclass(frozen=True, eq=False)
class PanelSet:
    """One data set, and what was known about it before any verdict.

    Args:
        load: Draws the examples of a seed.
        shape: Shape of one input.
        candidates: Symmetries to compare; called without arguments, because groups of matrices take time to make.
        truth: Names of the candidates whose join is the largest true symmetry; empty if there is none.
        proof: Why that is known.
        why: The reason in one sentence.
        numbers: The labels are numbers.
    """

    load: Callable[[int], real.Split]
    shape: tuple[int, ...]
    candidates: Callable[[], tuple[str | Group, ...]]
    truth: tuple[str, ...]
    proof: Proof
    why: str
    numbers: bool = False

    def problems(self, seed: int) -> tuple[Problem, Problem]:
        """Draw the examples to learn from, and those to test on."""
        x, y, x_test, y_test = self.load(seed)
        names = self.candidates()
        learned, tested = (
            Problem(np.ascontiguousarray(a, dtype=float), b, self.shape, names, self.truth, self.numbers)
            for a, b in ((x, y), (x_test, y_test))
        )
        return learned, tested


def _halves(draw: Callable[[int, int], computed.Data], learn: int, test: int) -> Callable[[int], real.Split]:
    """Draw examples of a computed set, and keep the last ones for testing."""

    def load(seed: int) -> real.Split:
        x, y = draw(learn + test, seed)
        return x[:learn], y[:learn], x[learn:], y[learn:]

    return load


def _computed(
    draw: Callable[[int, int], computed.Data],
    shape: tuple[int, ...],
    candidates: Callable[[], tuple[str | Group, ...]],
    truth: tuple[str, ...],
    why: str,
    *,
    numbers: bool = False,
    sizes: tuple[int, int] = (EXAMPLES, TEST_EXAMPLES),
) -> PanelSet:
    return PanelSet(_halves(draw, *sizes), shape, candidates, truth, "computed", why, numbers)


def _of(*names: str) -> Callable[[], tuple[str | Group, ...]]:
    return lambda: names


BOARD, TORUS = (computed.ROWS, computed.COLUMNS), (computed.SIDE, computed.SIDE)
"""Shapes of Connect-4 positions and of spins."""
CLOUD = (computed.POINTS, 2)
"""Shape of the points of a spiral."""
ORDERINGS = _of("reversal", "cyclic", "permutations")
"""Candidates for things whose order may not matter."""

COMPUTED = {
    "Connect-4": _computed(
        computed.connect_four, BOARD, _of("hflip", "sign"), ("hflip",),
        "A mirrored position has the same prospects; exchanging the sides exchanges the classes.",
    ),
    "poker hands": _computed(
        computed.poker, (computed.CARDS, computed.RANKS + computed.SUITS), ORDERINGS, ("permutations",),
        "The category of a hand does not depend on the order of its cards.",
    ),
    "parity": _computed(
        computed.parity, (computed.BITS,), ORDERINGS, ("permutations",),
        "The parity of a pattern does not depend on the order of its bits.",
        sizes=(PARITY_EXAMPLES, 2**computed.BITS - PARITY_EXAMPLES),
    ),
    "Ising": _computed(
        computed.ising, TORUS, _of("d4", "shifts", "sign"), ("d4", "shifts", "sign"),
        "Each of these maps bonds to bonds, and leaves the product of two spins as it is.", numbers=True,
    ),
    "Ising with weak rows": _computed(
        computed.uneven_ising, TORUS, _of("rot90", "shifts", "sign"), ("shifts", "sign"),
        "A quarter turn exchanges weak and strong bonds.", numbers=True,
    ),
    "spirals as sets": _computed(
        partial(computed.spirals, ordered=False), CLOUD, ORDERINGS, ("permutations",),
        "The points of a spiral are drawn independently of one another.",
    ),
    "spirals as curves": _computed(
        partial(computed.spirals, ordered=True), CLOUD, lambda: (computed.turns(8), computed.mirror()), ("turns",),
        "Every spiral is turned by a random angle; a mirror exchanges left and right.",
    ),
    "spirals as clouds": _computed(
        partial(computed.spirals, ordered=False), CLOUD,
        lambda: ("permutations", computed.turns(4), computed.mirror()), ("permutations", "turns"),
        "Points in random order, turned by a random angle; a mirror exchanges left and right.",
    ),
    "shifted waves": _computed(
        computed.waves, (computed.LENGTH,), _of("cyclic", "reversal"), ("cyclic",),
        "Every wave is shifted at random; a reversed wave belongs to another class.",
    ),
}  # fmt: skip
"""Sets whose labels are computed from their inputs, or whose inputs are drawn from a known distribution."""

TABLES = {
    "digits": PanelSet(
        partial(real.table, "digits"), (8, 8), _of("rot90", "flips"), (), "classes exchanged",
        "Every candidate contains the half turn, which makes a 9 of a 6.",
    ),
    "wine": PanelSet(
        partial(real.table, "wine"), (13,), _of("reversal", "cyclic"), (), "meaning",
        "The columns are different quantities in different units.",
    ),
    "breast cancer": PanelSet(
        partial(real.table, "breast_cancer"), (30,), _of("reversal", "cyclic"), (), "meaning",
        "The columns are different quantities in different units.",
    ),
    "diabetes": PanelSet(
        partial(real.table, "diabetes"), (10,), _of("reversal", "cyclic"), (), "meaning",
        "The columns are different quantities: age, sex, weight, blood values.", numbers=True,
    ),
}  # fmt: skip
"""Sets of scikit-learn."""

PICTURES = {
    "textures": PanelSet(
        real.textures, (real.TILE, real.TILE), _of("rot90", "flips"), ("rot90", "flips"), "moved at random",
        "Every tile is turned and mirrored at random.",
    ),
    "upright bricks": PanelSet(
        real.upright, (real.TILE, real.TILE), _of("rot90"), (), "classes exchanged",
        "A quarter turn makes a turned tile of an upright one.",
    ),
    "shuffled colours": PanelSet(
        real.shuffled_colours, (3, real.COLOUR_TILE, real.COLOUR_TILE), _of("channels"), ("channels",),
        "moved at random", "The colour channels of every tile are in random order.",
    ),
}  # fmt: skip
"""Sets cut from the pictures of scikit-image; training and test tiles are from different parts of a picture."""

SERIES = {
    "rolled power demand": PanelSet(
        partial(real.rolled_series, "ItalyPowerDemand"), (24,), _of("cyclic"), ("cyclic",), "moved at random",
        "Every day starts at a random hour.",
    ),
    "reversed gun or point": PanelSet(
        partial(real.reversed_series, "GunPoint"), (150,), _of("reversal"), ("reversal",), "moved at random",
        "A random half of the movements is read backwards.",
    ),
    "power demand": PanelSet(
        partial(real.series, "ItalyPowerDemand"), (24,), _of("reversal", "cyclic"), (), "none",
        "Days that are read backwards do not occur.",
    ),
    "arrowheads": PanelSet(
        partial(real.series, "ArrowHead"), (251,), _of("reversal", "cyclic"), (), "none",
        "Outlines start at the same place; what others would be called is not known.",
    ),
    "leaves": PanelSet(
        partial(real.series, "OSULeaf"), (427,), _of("reversal", "cyclic"), (), "none",
        "Outlines start anywhere, but nobody moved them at random.",
    ),
}  # fmt: skip
"""Time series of sktime."""

PANEL = {**COMPUTED, **TABLES, **PICTURES, **SERIES}
"""All sets, by name."""
