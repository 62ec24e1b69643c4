"""What the commands share: tables, and shapes as people type them."""

import os
import sys
from contextlib import AbstractContextManager
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

LAST_COLUMN = "in words"
"""Heading of the last column of a table that is text already; its words may need several lines."""

NARROWEST = 20
"""Characters of the narrowest column of words, in however narrow a terminal."""

PIPE_WIDTH = 140
"""Characters of a line where standard output is no terminal: as many as the widest table needs."""


def parse_names(text: str) -> tuple[str, ...]:
    """Read names that commas separate.

    Args:
        text: What was typed.

    Returns:
        The names; empty ones are left out.
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parse_size(text: str | None) -> tuple[int, int] | None:
    """Read a height and a width, such as `32,32`.

    Args:
        text: What was typed; None if nothing was.

    Returns:
        Both numbers, or None.

    Raises:
        ValueError: If they are not two numbers.
    """
    if text is None:
        return None
    numbers = parse_shape(text)
    if len(numbers) != 2:
        raise ValueError(f"size {text!r} is not height and width: write it like 32,32.")
    return numbers[0], numbers[1]


def starting() -> AbstractContextManager[None]:
    """Say that a command starts: loading torch takes seconds. Of several processes, the first speaks."""
    from invariantnet._system.progress import working

    return working("starting", visible=os.environ.get("LOCAL_RANK", "0") == "0")


def make_table(*columns: str) -> "Table":
    """Make an empty table with these columns."""
    from rich import box
    from rich.table import Table

    return Table(*columns, box=box.SIMPLE)


def show(table: "Table") -> None:
    """Print a table; to a pipe, wide enough that nothing is folded."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)


def show_text(text: str) -> None:
    """Print lines; in a terminal, wrapped between words, and the last column of a table below itself."""
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console

    width, lines = Console().width, text.splitlines()
    column = lines[0].find(LAST_COLUMN)
    for line in lines:
        in_table = column > 0 and line[:column].endswith("  ")
        start = column if in_table else len(line) - len(line.removeprefix("- "))
        words = wrap(line[start:], max(NARROWEST, width - start), break_on_hyphens=False) or [""]
        print(line[:start] + f"\n{' ' * start}".join(words))


def parse_shape(text: str) -> tuple[int, ...]:
    """Read the sizes of an array, such as `3,32,32`.

    Args:
        text: What was typed.

    Returns:
        The sizes.

    Raises:
        ValueError: If they are not whole numbers.
    """
    try:
        return tuple(int(part) for part in text.replace("x", ",").replace("×", ",").split(","))
    except ValueError:
        raise ValueError(f"shape {text!r} is not a list of sizes: write it like 28,28 or 3,32,32.") from None
