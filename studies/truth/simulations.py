"""Do verdicts on simulations that others published match their methods? Flips and turns, polynomials, sums.

Christie & Aston (2025), example 6.1: y = exp(-|x₁|) + N(0, 0.05²), x ~ N(0, 2·I); the symmetries of a square,
acting on the first two inputs, are compared, and both flips are the largest true one. Karjol et al. (2023): a
polynomial of five of ten inputs, invariant to Z5, D5 or S5. Yeh et al. (2022): noisy sums of K digits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from invariantnet.symmetries.group import Group
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.framework.records import select
from studies.truth.problems import Problem, generator, is_right, is_sure, judge, share

FLIPS, POLYNOMIALS, SUMS = "flips of a function", "polynomials", "sums"
"""The sources, as tables show them."""

THEIRS = {
    ("d = 2", 100): (0.98, 0.57, 0.95),
    ("d = 4", 200): (0.27, 0.80, 0.91),
    ("d = 4", 400): (0.78, 0.95, 0.995),
}
"""How often the three tests of Christie & Aston name the largest symmetry: the asymmetric variation test, the
permutation test, and the latter with estimated λ. Computed from the 200 runs that they store."""
AT_LEAST = {("d = 2", 100): 0.97, ("d = 4", 200): 0.91, ("d = 4", 400): 0.99}
"""How often ours should name it."""

RUNS, SEEDS = 100, 20
"""Runs of Christie & Aston's simulation, and of each of the others."""
SPREAD, ERROR = 2.0**0.5, 0.05
"""Standard deviation of Christie & Aston's inputs and of their noise."""
POLYNOMIAL_EXAMPLES, POLYNOMIAL_INPUTS, MOVED = 1000, 10, 5
"""Examples; inputs; and how many of these the polynomials depend on."""
SUM_EXAMPLES, SUM_NOISE = 250, 0.5
"""Examples that Yeh et al. train and validate on, and the half width of their uniform noise."""
LENGTHS = (4, 6, 8, 10)
"""Numbers to add up; with two of them there is only one symmetry to find."""
QUICK_EXAMPLES = 60
"""Examples of a quick run: seconds, and too few for a result."""


@dataclass(frozen=True)
class SimulationRecipe:
    """One simulated data set."""

    source: str
    setting: str
    n: int
    seed: int


@dataclass(frozen=True)
class Record:
    """The verdict on one simulated data set."""

    source: str
    setting: str
    n: int
    seed: int
    truth: str
    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    strength: str
    seconds: float
    """CPU seconds of the comparison."""


def square_on_two_inputs(dim: int) -> tuple[Group, ...]:
    """The candidates of Christie & Aston: flips, diagonal flips and turns of the first two inputs."""
    rest = list(range(2, dim))
    first, second = 0, 1
    moved = {
        "flip-1": [dim + first, second],
        "flip-2": [first, dim + second],
        "half-turn": [dim + first, dim + second],
        "exchange": [second, first],
        "negative-exchange": [dim + second, dim + first],
        "quarter-turn": [dim + second, first],
    }
    return tuple(Group.from_permutations([[*index, *rest]], name=name) for name, index in moved.items())


def flips(setting: str, n: int, seed: int) -> Problem:
    """Draw the data of Christie & Aston's example 6.1."""
    dim, rng = int(setting.removeprefix("d = ")), generator(seed, FLIPS, setting, n)
    x = SPREAD * rng.normal(size=(n, dim))
    y = np.exp(-np.abs(x[:, 0])) + ERROR * rng.normal(size=n)
    return Problem(x, y, (dim,), square_on_two_inputs(dim), ("flip-1", "flip-2"), numbers=True)


Polynomial = Callable[[Float[np.ndarray, "n dim"]], Float[np.ndarray, " n"]]
"""Maps the moved inputs to a number."""

POLYNOMIAL: dict[str, Polynomial] = {
    "Z5": lambda x: (x * np.roll(x, -1, axis=1) ** 2).sum(1),
    "D5": lambda x: (x * np.roll(x, -1, axis=1)).sum(1),
    "S5": lambda x: x.sum(1) ** 2 - (x**2).sum(1),
}
"""A polynomial for each group. That of Z5 has 99.7 % of its variance in common with one that D5 preserves."""


def groups_of_five() -> tuple[Group, ...]:
    """The groups Z5, D5 and S5 on the first five of ten inputs."""
    turn, mirror, exchange = [1, 2, 3, 4, 0], [4, 3, 2, 1, 0], [1, 0, 2, 3, 4]
    rest = list(range(MOVED, POLYNOMIAL_INPUTS))
    generators = {"Z5": [turn], "D5": [turn, mirror], "S5": [turn, exchange]}
    return tuple(
        Group.from_permutations([[*index, *rest] for index in indices], name=name)
        for name, indices in generators.items()
    )


def polynomials(setting: str, n: int, seed: int) -> Problem:
    """Draw uniform inputs, and the polynomial of the first five without noise."""
    x = generator(seed, POLYNOMIALS, setting, n).uniform(size=(n, POLYNOMIAL_INPUTS))
    return Problem(x, POLYNOMIAL[setting](x[:, :MOVED]), x.shape[1:], groups_of_five(), (setting,), numbers=True)


def sums(setting: str, n: int, seed: int) -> Problem:
    """Draw digits from 1 to 9, and their sum with uniform noise, as Yeh et al. do."""
    length, rng = int(setting.removeprefix("K = ")), generator(seed, SUMS, setting, n)
    x = rng.integers(1, 10, size=(n, length)).astype(float)
    y = x.sum(1) + rng.uniform(-SUM_NOISE, SUM_NOISE, size=n)
    return Problem(x, y, (length,), ("reversal", "cyclic", "permutations"), ("permutations",), numbers=True)


SOURCES = {FLIPS: flips, POLYNOMIALS: polynomials, SUMS: sums}
"""Draws the data of each source."""


def problem(recipe: SimulationRecipe) -> Problem:
    """Draw the data set of a recipe."""
    return SOURCES[recipe.source](recipe.setting, recipe.n, recipe.seed)


def of_flips(seed: int) -> list[SimulationRecipe]:
    """Christie & Aston's settings."""
    return [SimulationRecipe(FLIPS, setting, n, seed) for setting, n in THEIRS]


def of_others(seed: int) -> list[SimulationRecipe]:
    """The settings of Karjol et al. and of Yeh et al."""
    found = [SimulationRecipe(POLYNOMIALS, name, POLYNOMIAL_EXAMPLES, seed) for name in POLYNOMIAL]
    return found + [SimulationRecipe(SUMS, f"K = {length}", SUM_EXAMPLES, seed) for length in LENGTHS]


def run(recipe: SimulationRecipe) -> list[Record]:
    """Ask for the verdict on one data set."""
    drawn = problem(recipe)
    found = judge(drawn, recipe.seed)
    return [
        Record(
            recipe.source,
            recipe.setting,
            recipe.n,
            recipe.seed,
            drawn.true_group().name,
            found.names,
            found.probabilities,
            found.strength,
            found.seconds,
        )
    ]


def table(records: Sequence[Record]) -> str:
    """How often the truth was named, how often surely so, and how often another was named surely."""
    rows = []
    for source, setting, n in dict.fromkeys((r.source, r.setting, r.n) for r in records):
        found = select(records, source=source, setting=setting, n=n)
        theirs = " / ".join(f"{value:.3g}" for value in THEIRS.get((setting, n), ()))
        rows.append(
            [
                f"{source}, {setting}",
                str(n),
                found[0].truth,
                f"{sum(map(is_right, found))} of {len(found)}",
                str(sum(is_right(r) and is_sure(r) for r in found)),
                str(sum(is_sure(r) and not is_right(r) for r in found)),
                theirs,
                f"{np.mean([r.seconds for r in found]):.1f}",
            ]
        )
    header = ["data", "n", "truth", "truth is favourite", "surely so", "another surely", "their tests"]
    return markdown([*header, "CPU s"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    missed = [
        f"{setting}, n = {n} ({100 * named:.0f} % of {len(found)}, asked for {100 * bound:.0f} %)"
        for (setting, n), bound in AT_LEAST.items()
        if (found := select(records, source=FLIPS, setting=setting, n=n))
        and (named := share([is_right(r) for r in found])) < bound
    ]
    others = [r for r in records if r.source != FLIPS]
    wrong = sum(is_sure(r) and not is_right(r) for r in others)
    return {
        "flips": Claim(
            "The largest symmetry of Christie & Aston's function is named as often as asked for"
            + (f", but for {'; '.join(missed)}." if missed else " in every setting.")
        ),
        "others": Claim(f"Of {len(others)} verdicts on polynomials and sums, {wrong} are wrong and sure."),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"Christie and Aston": Part(of_flips, RUNS), "Karjol and Yeh": Part(of_others, SEEDS)},
    run=run,
    quick=lambda recipe: replace(recipe, n=QUICK_EXAMPLES),
    table=table,
    claims=claims,
    depends_on=(*FITS, "studies.truth.problems"),
)
