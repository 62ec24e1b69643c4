"""The progress bar of long work, on standard error; and what it cost."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@dataclass(frozen=True)
class Step:
    """Where a race is after one more network."""

    hypothesis: str
    replica: int
    networks: int
    """Of each hypothesis: one more whenever the race has ended undecided."""
    block: int
    blocks: int
    done: float
    """Share of the work, if no further hypothesis is dropped and no network is added."""
    log_evidence: dict[str, float]
    """After the last complete block, of every hypothesis still in the race."""


@contextlib.contextmanager
def timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    """Note the processor time that this process spends inside."""
    start = time.process_time()
    yield
    seconds[what] = time.process_time() - start


@contextlib.contextmanager
def evidence_bar(*, visible: bool) -> Iterator[Callable[[Step], None]]:
    """A bar over a race: the network just finished, and who leads."""
    with progress_bar(visible=visible) as bar:
        task = bar.add_task("first networks", total=100)
        last = (0, 0)

        def on_network(step: Step) -> None:
            network, block = f"{step.replica + 1} of {step.networks}", f"{step.block + 1} of {step.blocks}"
            words = f"{step.hypothesis} · network {network} · block {block}"
            ranked = sorted(step.log_evidence.items(), key=lambda item: -item[1])
            if len(ranked) > 1:
                words += f" · {ranked[0][0]} leads {ranked[1][0]} by {ranked[0][1] - ranked[1][1]:.1f} nats"
            bar.update(task, completed=round(100 * step.done), description=words)
            nonlocal last
            stage = (step.networks, step.block)
            if visible and not bar.console.is_terminal and stage != last:
                # Nobody sees a bar in a log; a line per block tells that it lives.
                last = stage
                print(f"{step.done:4.0%} · {words}", file=sys.stderr, flush=True)

        yield on_network


@contextlib.contextmanager
def training_bar(steps: int, what: str, *, visible: bool) -> Iterator[Callable[[object], None]]:
    """A bar over the steps of one training."""
    with progress_bar(visible=visible) as bar:
        task = bar.add_task(f"steps · training {what}", total=steps)
        yield lambda _: bar.advance(task)


def progress_bar(*, visible: bool = True) -> Progress:
    """What is done, what has just finished, and how long is left; silent where nobody watches."""
    console = Console(stderr=True)
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(),
        TextColumn("left ·"),
        TextColumn("{task.description}"),
        console=console,
        disable=not (visible and console.is_terminal),
    )
