"""What survives kill -9, a full disk, a folder that vanishes or is read-only, a clock that jumps, and a rival?

Every disturbed run is resumed and must end with the files of an undisturbed one, bit for bit. Nothing that was
stored before the fault may be computed again, no file may be torn, and nothing half written may stay.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from invariantnet._system.files import locked
from studies.framework import Claim, Part, Study
from studies.framework.markdown import markdown
from studies.reliability.children import (
    COMMANDS,
    RESULT,
    Child,
    Ending,
    contents,
    may_write,
    obey_permissions,
    stored,
    torn,
)

KILLS, OTHERS, JUMPS, LOCKS = 50, 10, 2, 1000
"""How often each kind of fault is tried."""
RIVALS = 4
"""Processes that want the same folder."""
AT_ONCE = 0.3
"""Share of the read-only folders that are so from the start."""
MONTHS = 1e7
"""Seconds by which each reading of the clock may be off."""

HOW = {
    "rivals": f"{RIVALS} start in the same instant and take turns",
    "killed": "at a random moment",
    "removed": "at a random moment",
    "read-only": "from the start, or from a random moment on",
    "clock": "each reading is months off, either way",
    "full disk": "a tmpfs with room for some of the files",
}
"""What each kind of fault does."""
NAMES = {
    "rivals": "two processes on one folder",
    "killed": "kill -9 of {}",
    "removed": "{}, its folder removed",
    "read-only": "{}, a read-only folder",
    "clock": "{}, a clock that jumps",
    "full disk": "{}, a full disk",
}
"""How the table calls a fault of a command."""


@dataclass(frozen=True)
class FaultRecipe:
    """One kind of fault, tried several times."""

    fault: str
    command: str
    times: int
    seed: int


@dataclass(frozen=True)
class Record:
    """What came of it."""

    fault: str
    how: str
    times: int
    kept_networks: int
    """Stored networks that were found again."""
    lost: int
    """Times that something was lost."""


@dataclass
class Tally:
    """What came of the fault so far."""

    kept_networks: int = 0
    lost: list[str] = field(default_factory=list)

    def check(self, ok: bool, what: str) -> None:
        """Note what was lost."""
        if not ok:
            self.lost.append(what)
            print(f"LOST: {what}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Undisturbed:
    """A run that nothing happened to."""

    files: dict[str, bytes]
    ending: Ending


Disturb = Callable[[list[str], random.Random, Undisturbed, Path], object]
"""Starts a command that writes to the folder, and does its worst."""


def locks(seed: int) -> list[FaultRecipe]:
    """Rivals for one folder."""
    return [FaultRecipe("rivals", "", LOCKS, seed)]


def disturbances(seed: int) -> list[FaultRecipe]:
    """Every fault that needs no rights, for every command."""
    times = {"killed": KILLS, "removed": OTHERS, "read-only": OTHERS, "clock": JUMPS}
    return [FaultRecipe(fault, command, n, seed) for command in COMMANDS for fault, n in times.items()]


def full_disks(seed: int) -> list[FaultRecipe]:
    """A disk that fills up, for every command."""
    return [FaultRecipe("full disk", command, OTHERS, seed) for command in COMMANDS]


def lacks_mount() -> str:
    """Say if file systems cannot be mounted here."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.suppress(OSError):
        tried = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", scratch], capture_output=True, check=False)
        if tried.returncode == 0:
            subprocess.run(["umount", scratch], check=True)
            return ""
    return "a full disk needs the right to mount a tmpfs"


def run(recipe: FaultRecipe) -> list[Record]:
    """Disturb a command as often as the recipe says."""
    tally = Tally()
    if recipe.fault == "rivals":
        times = RIVALS * recipe.times
        check_locks(recipe.times, tally)
    else:
        times = recipe.times
        command, rng = COMMANDS[recipe.command], random.Random(f"{recipe.seed} {recipe.fault} {recipe.command}")
        undisturbed = run_undisturbed(command)
        for _ in range(times):
            disturb_and_resume(tally, command, undisturbed, rng, DISTURBANCES[recipe.fault])
    name = NAMES[recipe.fault].format(recipe.command)
    return [Record(name, HOW[recipe.fault], times, tally.kept_networks, len(tally.lost))]


def run_undisturbed(command: list[str]) -> Undisturbed:
    """Run a command as it is."""
    with tempfile.TemporaryDirectory() as scratch:
        ending = Child([*command, "--out", f"{scratch}/run"]).wait()
        assert ending.status == 0, ending.said
        return Undisturbed(contents(Path(scratch) / "run"), ending)


def disturb_and_resume(
    tally: Tally, command: list[str], undisturbed: Undisturbed, rng: random.Random, disturb: Disturb
) -> None:
    """Run a command, disturb it, resume it, and compare it with an undisturbed run.

    Args:
        tally: Where to note what was lost.
        command: The command without its folder.
        undisturbed: What it should give.
        rng: Decides the moment.
        disturb: What to do to it.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        disturb(command, rng, undisturbed, folder)
        tally.check(not torn(folder), f"torn: {torn(folder)}")
        before = stored(folder)
        finished = set(contents(folder)) >= RESULT if command[0] == "fit" else False
        resume = ["--resume"] if command[0] == "fit" else []
        ending = Child([*command, *resume, "--out", str(folder)]).wait()
        tally.kept_networks += len(before)
        tally.check(ending.status == 0, ending.said)
        found = contents(folder)
        tally.check(found == undisturbed.files, f"differs: {set(found) ^ set(undisturbed.files) or 'in content'}")
        again = [name for name, value in stored(folder).items() if name in before and before[name] != value]
        tally.check(not again, f"computed again: {again}")
        # A run whose results are all there may have cleared its scores away; it has nothing to train.
        most = 0 if finished else undisturbed.ending.trained - len(before)
        tally.check(ending.trained <= most, f"{ending.trained} networks trained, {len(before)} kept")


def _one_line(ending: Ending) -> bool:
    return len(ending.said.splitlines()) == 1 and "Traceback" not in ending.said


def kill(command: list[str], rng: random.Random, undisturbed: Undisturbed, folder: Path) -> None:
    """Kill the process at a random moment."""
    child = Child([*command, "--out", str(folder)])
    child.reach(rng.uniform(0, undisturbed.ending.seconds))
    os.kill(child.pid, signal.SIGKILL)
    child.wait()


def remove_folder(command: list[str], rng: random.Random, undisturbed: Undisturbed, folder: Path) -> None:
    """Remove the folder at a random moment."""
    child = Child([*command, "--out", str(folder)])
    child.reach(rng.uniform(0, undisturbed.ending.seconds))
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
    ending = child.wait()
    assert ending.status == 0 or (ending.status == 1 and _one_line(ending)), ending.said


def forbid_writing(command: list[str], rng: random.Random, undisturbed: Undisturbed, folder: Path) -> None:
    """Make the folder read-only from the start or from a random moment on; afterwards it can be written again."""
    folder.mkdir()
    at_once = rng.random() < AT_ONCE
    if at_once:
        may_write(folder, False)
    child = Child([*command, "--out", str(folder)], obey_permissions)
    if not at_once:
        child.reach(rng.uniform(0, undisturbed.ending.seconds))
        may_write(folder, False)
    ending = child.wait()
    may_write(folder, True)
    assert ending.status == 0 or _one_line(ending), ending.said
    assert ending.status == 2 if at_once else ending.status in (0, 1, 2), ending.said
    assert ending.status < 2 or not (ending.trained or list(folder.iterdir())), ending.said


def confuse_clock(command: list[str], rng: random.Random, undisturbed: Undisturbed, folder: Path) -> None:
    """Let every clock jump with every reading."""

    def jump() -> None:
        for name in ("time", "monotonic", "process_time", "perf_counter"):
            original = getattr(time, name)
            setattr(time, name, lambda original=original: original() + rng.uniform(-MONTHS, MONTHS))

    Child([*command, "--out", str(folder)], jump).wait()


def fill_disk(command: list[str], rng: random.Random, undisturbed: Undisturbed, folder: Path) -> None:
    """Give the command a disk with room for some of its files, and then a larger one."""
    disk = folder.parent / "disk"
    disk.mkdir()
    size = rng.randrange(8, sum(map(len, undisturbed.files.values())) // 1024)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk], check=True)
    try:
        ending = Child([*command, "--out", str(disk / "run")]).wait()
        assert ending.status in (1, 2), ending.said
        assert _one_line(ending), ending.said
        shutil.copytree(disk / "run", folder, dirs_exist_ok=True, copy_function=shutil.copy2)
    finally:
        subprocess.run(["umount", disk], check=True)


DISTURBANCES: dict[str, Disturb] = {
    "killed": kill,
    "removed": remove_folder,
    "read-only": forbid_writing,
    "clock": confuse_clock,
    "full disk": fill_disk,
}
"""What to do for each kind of fault."""


def check_locks(times: int, tally: Tally) -> None:
    """Let processes take the lock of one folder in the same instant, again and again: never two inside.

    Args:
        times: How often each process tries.
        tally: Where to note what was lost.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "run").mkdir()
        start = time.monotonic() + 0.3
        children = []
        for _ in range(RIVALS):
            child = os.fork()
            if not child:
                time.sleep(max(0.0, start - time.monotonic()))
                os._exit(min(sum(_clash(folder) for _ in range(times)), 200))
            children.append(child)
        for child in children:
            clashes = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            tally.check(clashes == 0, f"{clashes} times two processes inside")
        tally.check(not list((folder / "run").iterdir()), "something stayed in the folder")


def _clash(folder: Path) -> bool:
    """Take the lock if it is free; say whether another process was inside."""
    with contextlib.suppress(ValueError), locked(folder / "run"):
        try:
            os.close(os.open(folder / "inside", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return True
        time.sleep(0.001)
        (folder / "inside").unlink()
    return False


def table(records: Sequence[Record]) -> str:
    """One row per kind of fault."""
    rows = [
        [
            r.fault,
            r.how,
            f"{r.times:,}",
            f"{r.kept_networks:,}" if r.kept_networks else "",
            f"{r.lost} times something" if r.lost else "nothing",
        ]
        for r in records
    ]
    return markdown(["fault", "how", "times", "stored networks found again", "lost"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    tried = sum(r.times for r in records)
    return {"nothing lost": Claim(f"Of {tried:,} faults, none lost anything.", not any(r.lost for r in records))}


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={
        "locks": Part(locks),
        "disturbances": Part(disturbances),
        "full disks": Part(full_disks, lacks=lacks_mount),
    },
    run=run,
    quick=lambda recipe: replace(recipe, times=max(1, recipe.times // 50)),
    table=table,
    claims=claims,
    alone=True,
    depends_on=("invariantnet", "studies.framework", "studies.reliability.children"),
)
