"""What long work is doing, on standard error: a live line in a terminal, a line now and then elsewhere."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from textwrap import wrap

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from invariantnet._system.share import Share, clock

LINE_SECONDS = 5.0
"""Seconds between two lines about the same work, where standard error is no terminal."""

SILENT_SECONDS = 2.0
"""Seconds after which work of unknown length is announced, where standard error is no terminal. Bad input is found
earlier than that, and is told in one line."""

RARER = 0.05
"""Share of the time so far that passes between two lines about long work."""

WIDTH = 80
"""Characters of a line where standard error is no terminal: of progress, longer ones are cut off."""

INDENT = "  "
"""What the second line of something said begins with, and each after it."""

Update = Callable[[float, str], None]
"""Tells which share of some work is done, and what to say about it."""


@dataclass(frozen=True)
class Work:
    """Work that lies ahead.

    Args:
        what: What is being done, such as "comparing 4 symmetries".
        seconds: How long it will take, if that was estimated.
    """

    what: str
    seconds: float | None = None


@dataclass(frozen=True)
class Step:
    """Where a race is after one more network."""

    hypothesis: str
    network: int
    """Number of the network among those of its hypothesis."""
    networks: int
    """Networks of each hypothesis; more whenever the race has ended undecided."""
    block: int
    blocks: int
    done: float
    """Share of this part of the race, which never falls."""
    log_evidence: dict[str, float]
    """Log evidence after the last complete block, of every hypothesis still in the race."""
    part: str = ""
    """What the race goes on with while its verdict is open; empty in the part that was announced."""


@contextlib.contextmanager
def timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    """Note the processor time that this process spends inside.

    Args:
        seconds: Where to note it.
        what: Under which name.
    """
    start = time.process_time()
    yield
    seconds[what] = time.process_time() - start


def say(words: str, *, visible: bool) -> None:
    """Say something once, on standard error.

    Args:
        words: What to say.
        visible: Whether to say it.
    """
    if visible:
        console = Console(stderr=True)
        width = console.width if console.is_terminal else WIDTH
        print(_wrapped(words, width), file=sys.stderr, flush=True)


@contextlib.contextmanager
def working(what: str, *, visible: bool) -> Iterator[None]:
    """Say that work of unknown length goes on, and for how long already.

    Args:
        what: What is being done, such as "reading photos".
        visible: Whether to say anything.
    """
    console = Console(stderr=True)
    if not visible:
        yield
    elif console.is_terminal:
        columns = SpinnerColumn(), _one_line("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True) as line:
            line.add_task(what, total=None)
            yield
    else:
        ended = threading.Event()
        threading.Thread(target=_tell, args=(what, ended), daemon=True).start()
        try:
            yield
        finally:
            ended.set()


def _tell(what: str, ended: threading.Event) -> None:
    """Say what is being done if it takes long, and now and then for how long already."""
    start = time.monotonic()
    if ended.wait(SILENT_SECONDS):
        return
    print(what, file=sys.stderr, flush=True)
    while not ended.wait(max(LINE_SECONDS, RARER * (time.monotonic() - start), 0.02)):
        print(f"{what}: {clock(time.monotonic() - start)} so far", file=sys.stderr, flush=True)


@contextlib.contextmanager
def meter(what: str, *, visible: bool, seconds: float | None = None) -> Iterator[Update]:
    """Announce some work, and show which share of it is done; the share never falls.

    Args:
        what: What is being done, such as "training the network".
        visible: Whether to say anything.
        seconds: How long it will take, if that was estimated.

    Yields:
        A function of the share that is done and of a few words about it.
    """
    console = Console(stderr=True)
    if not visible:
        yield lambda done, words: None
    elif console.is_terminal:
        console.print(what, markup=False, highlight=False)
        share = Share(seconds)
        with _Line(share, *_columns(share), console=console) as line:
            task = line.add_task("", total=1.0)

            def update(done: float, words: str) -> None:
                share.report(done)
                line.update(task, description=words)

            yield update
            share.report(1.0)
            line.update(task, completed=1.0, description="")
    else:
        with _Lines(Work(what, seconds)) as lines:
            yield lines.update


@contextlib.contextmanager
def evidence_bar(
    work: Work, *, visible: bool, words: Callable[[str], str] = str
) -> Iterator[Callable[[Step], None]]:
    """Show how far a race is, and which hypothesis leads.

    Args:
        work: What is being done, and how long that may take.
        words: Says the name of a hypothesis as people do.
        visible: Whether to say anything.

    Yields:
        A function to call after every network.
    """
    with contextlib.ExitStack() as opened:
        update = opened.enter_context(meter(work.what, visible=visible, seconds=work.seconds))
        part = ""
        standing: dict[str, float] = {}

        def on_network(step: Step) -> None:
            nonlocal update, part, standing
            if step.part != part:
                opened.close()
                part, update = step.part, opened.enter_context(meter(step.part, visible=visible))
            standing = step.log_evidence or standing
            said = [f"trained: {words(step.hypothesis)}"]
            if len(standing) > 1:
                said.append(f"ahead: {words(max(standing, key=standing.__getitem__))}")
            update(step.done, "; ".join(reversed(said)))

        yield on_network


@contextlib.contextmanager
def training_bar(steps: int, what: str, *, visible: bool) -> Iterator[Callable[[object], None]]:
    """Show how far one training is.

    Args:
        steps: Number of steps of the optimizer.
        what: What is trained, such as "the network".
        visible: Whether to say anything.

    Yields:
        A function to call after every step.
    """
    with meter(f"training {what}", visible=visible) as update:
        taken = 0

        def on_step(_: object) -> None:
            nonlocal taken
            taken += 1
            update(taken / max(1, steps), "")

        yield on_step


def progress_bar(*, visible: bool = True) -> Progress:
    """Make a bar over several pieces of work; silent where standard error is no terminal.

    Args:
        visible: Whether to show anything.

    Returns:
        The bar, without tasks.
    """
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


class _Line(Progress):
    """A live line whose bar follows a share."""

    def __init__(self, share: Share, *columns: ProgressColumn, console: Console) -> None:
        self.share = share
        super().__init__(*columns, console=console)

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            task.completed = self.share.shown()
        yield from super().get_renderables()
        # Beside the bar, a hypothesis and its model would be cut off in a terminal of 80 columns.
        yield from (Text(_below(task.description, self.console.width)) for task in self.tasks if task.description)


class _Lines:
    """One line about some work now and then; the first at once, the last when all is done."""

    def __init__(self, work: Work) -> None:
        self.what, self.share, self.words = work.what, Share(work.seconds), ""
        self.last = time.monotonic()
        self.ended = threading.Event()

    def __enter__(self) -> "_Lines":
        self._print()
        threading.Thread(target=self._tick, daemon=True).start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.ended.set()
        if kind is None:
            self.share.report(1.0)
            self.words = ""
            self._print()

    def update(self, done: float, words: str) -> None:
        self.share.report(done)
        self.words = words
        self._print_if_due()

    def _tick(self) -> None:
        while not self.ended.wait(max(LINE_SECONDS, 0.02)):
            self._print_if_due()

    def _print_if_due(self) -> None:
        now = time.monotonic()
        if now - self.last >= max(LINE_SECONDS, RARER * self.share.seconds):
            self._print()

    def _print(self) -> None:
        self.last = time.monotonic()
        so_far = f": {self.share.words()}"
        said = _cut(self.what, WIDTH - len(so_far)) + so_far
        if self.words:
            beside = f"{said}, {self.words}"
            said = beside if len(beside) <= WIDTH else f"{said}\n{_below(self.words, WIDTH)}"
        print(said, file=sys.stderr, flush=True)


def _below(words: str, width: int) -> str:
    """Indented lines for what belongs to the line above."""
    return _wrapped(INDENT + words, width)


def _wrapped(words: str, width: int) -> str:
    return "\n".join(wrap(words, width, subsequent_indent=INDENT, break_on_hyphens=False))


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


class _TimeLeft(ProgressColumn):
    """The time so far, and an estimate of the time left."""

    def __init__(self, share: Share) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self.share = share

    def render(self, task: Task) -> Text:
        left = None if task.finished else self.share.left()
        return Text(clock(self.share.seconds) + ("" if left is None else f", {clock(left)} left"))


def _columns(share: Share) -> tuple[ProgressColumn, ...]:
    return (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        _TimeLeft(share),
    )


def _one_line(text: str) -> TextColumn:
    """A column that is cut off at the edge of the terminal."""
    return TextColumn(text, markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
