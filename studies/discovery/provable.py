"""Is a symmetry that can be proved found from data alone?

Positions of Connect-4, hands of poker, parities and energies of spins, with all inputs scrambled by one secret
permutation. All symmetries of the labels are known, so a group that was found is part of them, or it is false.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from invariantnet.discovery import Discovery, discover
from invariantnet.discovery.neighbours import conjugate
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import symmetry
from studies.discovery.hidden_groups import LISTED
from studies.framework import Claim, Part, Study
from studies.framework.markdown import markdown
from studies.truth import computed_sets as computed


@dataclass(frozen=True)
class ProvableRecipe:
    """One scrambled data set."""

    data: str
    n: int
    seed: int


@dataclass(frozen=True)
class ProvableRecord:
    """What was found in one data set."""

    data: str
    n: int
    seed: int
    known: int
    """Number of symmetries of the labels that can be proved."""
    found: int
    """Elements of the group that was found; 1 if none was."""
    holds: bool
    """Whether every generator of it is a known symmetry, on inputs that were not set aside."""
    exact: bool
    probability: float
    log_e_value: float
    set_aside: int


def _flips() -> np.ndarray:
    """Mirror images of the board: rows of four are mirrored to rows of four, upside down too."""
    return symmetry("flips", (computed.ROWS, computed.COLUMNS)).generators


def _cards() -> np.ndarray:
    """Exchanges of the ranks of cards, of their suits, of suits in all cards at once, and all ranks upside down.

    Pairs and straights depend on the ranks alone, and flushes on the suits alone. Upside down, the ace stays: it
    stands above the king and below the two.
    """
    width = computed.RANKS + computed.SUITS
    places = np.arange(computed.CARDS * width).reshape(computed.CARDS, width)
    cards = []
    for order, part in product(
        ([1, 0, 2, 3, 4], [1, 2, 3, 4, 0]), (slice(computed.RANKS), slice(computed.RANKS, None))
    ):
        moved = places.copy()
        moved[:, part] = places[order][:, part]
        cards.append(moved)
    suits = computed.RANKS + np.arange(computed.SUITS)
    orders = suits[[1, 0, 2, 3]], suits[[1, 2, 3, 0]]
    cards += [places[:, [*range(computed.RANKS), *order]] for order in orders]
    cards.append(places[:, [*reversed(range(computed.RANKS - 1)), computed.RANKS - 1, *suits]])
    return np.stack([p.ravel() for p in cards])


def _bits() -> np.ndarray:
    """Permutations of the bits, and changes of two signs."""
    bits = np.arange(computed.BITS)
    exchange, turn, signs = bits.copy(), np.roll(bits, 1), bits.copy()
    exchange[:2] = 1, 0
    signs[:2] += computed.BITS
    return np.stack([exchange, turn, signs])


def _torus() -> np.ndarray:
    """Shifts, turns and mirror images of the torus, and the sign of all spins."""
    spins = np.arange(computed.SIDE**2).reshape(computed.SIDE, computed.SIDE)
    moved = [np.roll(spins, 1, 0), np.roll(spins, 1, 1), np.rot90(spins), spins[:, ::-1], spins + spins.size]
    return np.stack([m.ravel() for m in moved])


SETS: dict[str, tuple[Callable[[int, int], computed.Data], Callable[[], np.ndarray], int]] = {
    "Connect-4": (computed.connect_four, _flips, 1000),
    "poker hands": (computed.poker, _cards, 1000),
    "parity": (computed.parity, _bits, 400),
    "Ising energies": (computed.ising, _torus, 1000),
}
"""Data, generators of every symmetry of the labels, and number of examples."""


def run(recipe: ProvableRecipe) -> list[ProvableRecord]:
    """Scramble the inputs, and look for symmetries."""
    make, generators, _ = SETS[recipe.data]
    x, y = make(recipe.n, recipe.seed)
    places = np.random.default_rng(recipe.seed).permutation(x.shape[1])
    known = Group("known", np.stack([conjugate(g, places) for g in generators()]))
    found = discover(x[:, places], y, random_state=recipe.seed)
    return [
        ProvableRecord(
            recipe.data,
            recipe.n,
            recipe.seed,
            known.order,
            min(found.group.order, 10**9),
            holds(found, known),
            found.exact,
            round(found.exact_probability, 4),
            round(found.log_e_value, 2),
            len(found.set_aside),
        )
    ]


def holds(found: Discovery, known: Group) -> bool:
    """Whether every generator of a group is a known symmetry, on inputs that were not set aside."""
    kept = np.setdiff1d(np.arange(known.dim), found.set_aside)
    if known.order > LISTED:
        return found.group <= known
    elements = known.elements.numpy()[:, kept]
    return all(bool((elements == generator[kept]).all(axis=1).any()) for generator in found.generators)


def recipes(seed: int) -> list[ProvableRecipe]:
    """Every data set once."""
    return [ProvableRecipe(name, n, seed) for name, (_, _, n) in SETS.items()]


def table(records: Sequence[ProvableRecord]) -> str:
    """One row per data set."""
    rows = [
        [
            r.data,
            f"{r.n:,}",
            f"{r.known:,}",
            f"{r.found:,}" if r.found > 1 else "nothing",
            ("yes" if r.holds else "no") if r.found > 1 else "",
            ("yes" if r.exact else "no") if r.found > 1 else "",
            f"{r.log_e_value:.1f}",
        ]
        for r in records
    ]
    columns = ["data", "n", "known symmetries", "found", "all of them true", "called exact", "log e-value"]
    return markdown(columns, rows)


def claims(records: Sequence[ProvableRecord]) -> dict[str, Claim]:
    """What the pages say: counts, as they came out."""
    some = [r for r in records if r.found > 1]
    true = [r for r in some if r.holds]
    exact, complete = [r for r in some if r.exact], [r for r in true if r.found == r.known]
    return {
        "provable": Claim(
            f"A symmetry was found in {len(some)} of {len(records)} data sets, and it is true in {len(true)}; all "
            f"known symmetries were found in {len(complete)}. Of {len(exact)} verdicts that call themselves "
            f"exact, wrong: {sum(r not in complete for r in exact)}."
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=ProvableRecord,
    parts={"sets": Part(recipes, 1)},
    run=run,
    quick=lambda recipe: replace(recipe, n=min(recipe.n, 60)),
    table=table,
    claims=claims,
    depends_on=("discovery", "symmetries", "studies.truth.computed_sets"),
)
