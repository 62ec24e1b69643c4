"""The progress bar of long work, on standard error."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextlib.contextmanager
def evidence_bar(blocks: int, *, visible: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A bar over the blocks of a race, with the leader after each."""
    with progress_bar(visible=visible) as bar:
        task = bar.add_task("first block", total=blocks)

        def on_block(row: dict[str, Any]) -> None:
            (leader, best), *others = sorted(
                ((k, v) for k, v in row.items() if k != "examples"), key=lambda item: -item[1]
            )
            lead = f" leads {others[0][0]} by {best - others[0][1]:.1f} nats" if others else " is alone"
            bar.update(task, advance=1, description=f"after {row['examples']:,} predictions {leader}{lead}")

        yield on_block


def progress_bar(*, visible: bool = True) -> Progress:
    """What is done, what has just finished, and how long is left; silent where nobody watches."""
    console = Console(stderr=True)
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=console,
        disable=not (visible and console.is_terminal),
    )
