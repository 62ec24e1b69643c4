"""What the commands share: tables, shapes, and how files are read."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

PIPE_WIDTH = 140


def reading(options: Any) -> dict[str, Any]:
    """How files are read, where it was said."""
    found: dict[str, Any] = {name: getattr(options, name, None) for name in ("shape", "size", "color", "label")}
    for name in ("shape", "size"):
        if found[name]:
            found[name] = parse_shape(found[name])
    if found["size"] and len(found["size"]) != 2:
        raise ValueError(f"size {options.size!r} is not height and width: write it like 32,32.")
    return {name: value for name, value in found.items() if value}


def make_table(*columns: str) -> "Table":
    """An empty table."""
    from rich import box
    from rich.table import Table

    return Table(*columns, box=box.SIMPLE)


def show(table: "Table") -> None:
    """Print it; to a pipe, wide enough that nothing is folded."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)


def parse_shape(text: str) -> tuple[int, ...]:
    """Read `3,32,32`."""
    try:
        return tuple(int(part) for part in text.replace("x", ",").replace("×", ",").split(","))
    except ValueError:
        raise ValueError(f"shape {text!r} is not a list of sizes: write it like 28,28 or 3,32,32.") from None
