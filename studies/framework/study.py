"""A study: a question, recipes that answer it, what is recorded, how it is shown, and what is claimed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Recipe(Protocol):
    """A frozen dataclass whose fields say everything about one run; equal recipes are run once."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seed(self) -> int:
        """Seed of everything random in the run."""


R = TypeVar("R", bound=Recipe)
Result = TypeVar("Result")
Record = TypeVar("Record")


@dataclass(frozen=True)
class Claim:
    """A sentence of the documentation, and whether the records still support it."""

    sentence: str
    holds: bool = True


def _nothing() -> str:
    return ""


@dataclass(frozen=True)
class Part(Generic[R]):
    """Recipes that are repeated equally often.

    Args:
        recipes: Gives the recipes of one seed.
        seeds: How many seeds the committed results have: 0, 1, …
        lacks: Says what this machine lacks to run the recipes, or nothing.
    """

    recipes: Callable[[int], Sequence[R]]
    seeds: int = 1
    lacks: Callable[[], str] = _nothing


def _nothing_to_run(recipe: Any) -> Any:
    raise NotImplementedError("a study without parts has nothing to run")


def _is_records(recipe: Any, result: Any) -> Any:
    return result


def _no_claims(records: Any) -> dict[str, Claim]:
    return {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Study(Generic[R, Result, Record]):
    """One file that asks one question.

    Args:
        file: The study's own file; its name is the study's name.
        question: The file's docstring.
        record: The dataclass of one record.
        run: Runs one recipe; equal recipes of different studies are run once.
        parts: Named sets of recipes; none if the study only shows records of others, or data.
        keep: Turns a recipe and its result into records; by default the result is a sequence of records.
        table: Shows records as Markdown.
        draw: Shows records as a figure.
        claims: The sentences that the documentation takes from the records, by name.
        depends_on: Modules and packages whose code changes the numbers, without the `invariantnet.` in front.
        reads: Other studies whose records are shown along with the study's own.
        quick: Makes a recipe small, for a look in minutes; None if the study has no quick version.
        alone: The study measures time or memory, or forks: one recipe at a time, on this machine.
    """

    file: str
    question: str | None
    record: type[Record] = object  # type: ignore[assignment]
    run: Callable[[R], Result] = _nothing_to_run
    parts: Mapping[str, Part[R]] = field(default_factory=dict)
    keep: Callable[[R, Result], Sequence[Record]] = _is_records
    table: Callable[[Sequence[Any]], str] | None = None
    draw: Callable[[Sequence[Any]], "Figure"] | None = None
    claims: Callable[[Sequence[Any]], Mapping[str, Claim]] = _no_claims
    depends_on: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    quick: Callable[[R], R] | None = None
    alone: bool = False

    @property
    def name(self) -> str:
        """Name on the command line and of the file with its records."""
        return Path(self.file).stem

    def plan(
        self, seeds: int | None = None, *, parts: Sequence[str] | None = None, quick: bool = False
    ) -> list[R]:
        """List the recipes, each once.

        Args:
            seeds: Take the seeds 0 to N-1 in every part, instead of as many as the part has.
            parts: Names of the parts to take; by default all.
            quick: Make every recipe small.

        Returns:
            The recipes, part by part and seed by seed.
        """
        chosen = [part for name, part in self.parts.items() if parts is None or name in parts]
        found = [r for part in chosen for seed in range(seeds or part.seeds) for r in part.recipes(seed)]
        if quick and self.quick:
            found = [self.quick(r) for r in found]
        return list(dict.fromkeys(found))
