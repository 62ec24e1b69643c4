"""The answer: a posterior over symmetries, in numbers and in words."""

from dataclasses import dataclass
from typing import Any

from invariantnet.inference import verdict
from invariantnet.inference.comparison import Comparison


@dataclass(frozen=True)
class SymmetryPosterior(Comparison):
    """Which symmetry the data has, with its probability."""

    @property
    def found(self) -> str:
        """The most probable kind of symmetry in words, and how far its ranges reach."""
        return verdict.found(self)

    @property
    def verdict(self) -> str:
        """One sentence."""
        return verdict.sentence(self)

    @property
    def next_steps(self) -> tuple[str, ...]:
        """What to do about an open verdict, the most useful first; empty if there is nothing to do."""
        return verdict.next_steps(self)

    @property
    def left_out_words(self) -> str:
        """What `auto` left out, and how to ask for a range; empty if it left out nothing."""
        return verdict.left_out(self)

    def __str__(self) -> str:
        """A small table, what its columns mean, the verdict, and the next steps."""
        return verdict.table(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the table where a notebook shows a value."""
        printer.text(str(self))
