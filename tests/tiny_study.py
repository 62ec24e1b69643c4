"""A study of four recipes that squares numbers, and remembers what was run."""

from dataclasses import dataclass, replace

from studies.framework import Part, Study
from studies.framework.records import read
from studies.framework.running import run_studies

RUNS = []


@dataclass(frozen=True)
class Inner:
    values: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class TinyRecipe:
    n: int
    seed: int
    inner: Inner = Inner()


@dataclass(frozen=True)
class TinyRecord:
    n: int
    squares: tuple[tuple[int, float], ...]
    inner: Inner
    counts: dict[str, int]
    nothing: str | None = None


def square(recipe):
    RUNS.append(recipe)
    return recipe.n**2


def keep(recipe, result):
    return [TinyRecord(recipe.n, ((recipe.seed, float(result)),), recipe.inner, {"a": 1})]


def tiny(**changes):
    usual = Study(
        file=__file__,
        question=__doc__,
        record=TinyRecord,
        parts={"few": Part(lambda seed: [TinyRecipe(n, seed) for n in (1, 2)], 2)},
        run=square,
        keep=keep,
        depends_on=("priors",),
    )
    return replace(usual, **changes)


def run(study, folder, **options):
    run_studies([study], folder, n_jobs=1, **options)
    return read(study, folder)
