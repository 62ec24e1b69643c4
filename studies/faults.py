"""What a run survives: kill -9 at random moments, a full disk, a folder that is removed or becomes read-only, a
clock that jumps, a rival.

Usage: .venv/bin/python benchmarks/faults.py [--times 50] [--seed 0] [--out results]     (some minutes, one thread)

Every disturbed run is resumed, and must end with the files of an undisturbed one, bit for bit; nothing that was
stored before the fault may be computed again, nothing may be torn, and nothing half written may stay. The runs are
forked from this process, so that none of them has to import torch again. A full disk needs leave to mount a tmpfs.
"""

import argparse
import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import safetensors.torch
import torch

import studies.reproduce
import invariantnet.app.runs  # noqa: F401 -- before the first fork
from invariantnet.app import cli
from invariantnet._system import files as storage
from studies import run
from invariantnet.inference.scoring import Scorer

FIT = ["fit", "digits:rotated", "--symmetries", "rot90", "--examples", "200", "--hidden", "8", "--epochs", "2"]
SWEEP = ["reproduce", "figure1", "--quick", "--seeds", "1", "--n-jobs", "1"]
RIVALS = "two processes on one folder"
RESULT = {"model.safetensors", "evaluation.safetensors", "run.json", "report.html"}


class Child:
    """A command in a forked process, with what it said and how many networks it trained."""

    def __init__(self, arguments: list[str], before: Callable[[], object] = lambda: None) -> None:
        self.said, self.trained = Path(tempfile.mkstemp()[1]), Path(tempfile.mkstemp()[1])
        self.pid = os.fork()
        if self.pid:
            return
        status = 1
        try:
            stream = self.said.open("w", buffering=1)
            os.dup2(stream.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.stderr, sys.stdout = stream, open(1, "w")  # noqa: SIM115 -- pytest has put its own there
            _count(self.trained)
            before()
            cli.main(arguments)
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            os._exit(status)

    def wait(self) -> tuple[int, str, int]:
        """Status, last words and networks trained."""
        _, status, used = os.wait4(self.pid, 0)
        self.seconds = used.ru_utime + used.ru_stime
        lines = [line for line in self.said.read_text().splitlines() if "%" not in line]
        trained = len(self.trained.read_bytes())
        self.said.unlink()
        self.trained.unlink()
        return os.waitstatus_to_exitcode(status), "\n".join(lines), trained

    def reach(self, seconds: float) -> None:
        """Wait until it has computed for so long, or has ended; how busy the machine is makes no difference."""
        ticks = seconds * os.sysconf("SC_CLK_TCK")
        while True:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            if state[0] == "Z" or int(state[11]) + int(state[12]) >= ticks:
                return
            time.sleep(0.002)


def _count(path: Path) -> None:
    """A byte in the file for every network that is trained."""
    file = path.open("ab", buffering=0)
    for owner, name in ((Scorer, "score"), (run, "run_timed")):
        original = getattr(owner, name)

        def counted(*arguments: Any, original: Any = original) -> Any:
            result = original(*arguments)
            file.write(b".")
            return result

        setattr(owner, name, counted)


def contents(folder: Path) -> dict[str, bytes]:
    """What a finished run leaves; of a sweep, all but the records, which hold how long each took."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.parent.name != "runs"
    }


def torn(folder: Path) -> list[str]:
    """Files under their final names that cannot be read."""
    found = []
    for path in folder.rglob("*"):
        if not path.is_file() or path.name == storage.LOCK or path.name.endswith(storage.PART):
            continue
        try:
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".safetensors":
                safetensors.torch.load(path.read_bytes())
            elif path.suffix in (".html", ".svg"):
                assert path.read_text().rstrip().endswith((">",))
        except Exception as error:
            found.append(f"{path}: {error}")
    return found


def stored(folder: Path) -> dict[Path, int]:
    """Scores and records of finished networks, and when each was written."""
    kept = [*folder.glob("unfinished/*/*.safetensors"), *folder.glob("runs/*.json")]
    return {p: p.stat().st_mtime_ns for p in kept}


class Fault:
    """One kind of fault, and what came of it."""

    def __init__(self, fault: str, how: str) -> None:
        self.row: dict[str, Any] = {"fault": fault, "how": how, "times": 0, "kept networks": 0, "lost": 0}
        self.lost: list[str] = []

    def check(self, ok: bool, what: str) -> None:
        if not ok:
            self.row["lost"] += 1
            self.lost.append(what)
            print(f"LOST: {self.row['fault']}: {what}", flush=True)


def disturbed(
    fault: Fault, command: list[str], whole: dict[str, bytes], networks: int, disturb: Callable[[Path], object]
) -> None:
    """One run, disturbed and resumed; `disturb` starts it and does its worst."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        disturb(folder)
        fault.row["times"] += 1
        fault.check(not torn(folder), f"torn: {torn(folder)}")
        before = stored(folder)
        finished = set(contents(folder)) >= RESULT if command[0] == "fit" else False
        resume = ["--resume"] if command[0] == "fit" else []
        status, said, trained = Child([*command, *resume, "--out", str(folder)]).wait()
        fault.row["kept networks"] += len(before)
        fault.check(status == 0, said)
        fault.check(contents(folder) == whole, f"differs: {set(contents(folder)) ^ set(whole) or 'in content'}")
        again = [p for p, when in stored(folder).items() if p in before and before[p] != when]
        fault.check(not again, f"computed again: {again}")
        # A run whose results are all there may have cleared its scores away; it has nothing to train.
        most = 0 if finished else networks - len(before)
        fault.check(trained <= most, f"{trained} networks trained, {len(before)} kept")


def _is_a_line(said: str) -> bool:
    return len(said.splitlines()) == 1 and "Traceback" not in said


def killed(command: list[str], rng: random.Random, seconds: float) -> Callable[[Path], object]:
    def disturb(folder: Path) -> int:
        child = Child([*command, "--out", str(folder)])
        child.reach(rng.uniform(0, seconds))
        os.kill(child.pid, signal.SIGKILL)
        return child.wait()[0]

    return disturb


def removed(command: list[str], rng: random.Random, seconds: float) -> Callable[[Path], object]:
    def disturb(folder: Path) -> int:
        child = Child([*command, "--out", str(folder)])
        child.reach(rng.uniform(0, seconds))
        while folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        status, said, _ = child.wait()
        assert status in (0, 1), said
        assert status == 0 or _is_a_line(said), said
        return status

    return disturb


def forbidden(command: list[str], rng: random.Random, seconds: float) -> Callable[[Path], object]:
    """Read-only from the start, or from a random moment on; then it may be written again."""

    def disturb(folder: Path) -> int:
        folder.mkdir()
        at_once = rng.random() < 0.3
        if at_once:
            may_write(folder, False)
        child = Child([*command, "--out", str(folder)], obey_permissions)
        if not at_once:
            child.reach(rng.uniform(0, seconds))
            may_write(folder, False)
        status, said, trained = child.wait()
        may_write(folder, True)
        assert status == 0 or _is_a_line(said), said
        assert status == 2 if at_once else status in (0, 1, 2), said
        assert status < 2 or not (trained or list(folder.iterdir())), said
        return status

    return disturb


def may_write(folder: Path, yes: bool) -> None:
    for path in (folder, *(p for p in folder.rglob("*") if p.is_dir())):
        path.chmod(0o755 if yes else 0o555)


def obey_permissions() -> None:
    """Without the right of root to write where it is forbidden (CAP_DAC_OVERRIDE)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, capabilities = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, capabilities) == 0
    capabilities[0] &= ~2
    assert libc.capset(header, capabilities) == 0


def jumping(command: list[str], rng: random.Random) -> Callable[[Path], object]:
    def jump() -> None:
        for name in ("time", "monotonic", "process_time", "perf_counter"):
            original = getattr(time, name)
            setattr(time, name, lambda original=original: original() + rng.uniform(-1e7, 1e7))

    return lambda folder: Child([*command, "--out", str(folder)], jump).wait()[0]


def full(command: list[str], rng: random.Random, whole: dict[str, bytes]) -> Callable[[Path], object] | None:
    """A disk that has room for some of the files only; then it is enlarged."""
    need = sum(map(len, whole.values()))

    def disturb(folder: Path) -> int:
        disk = folder.parent / "disk"
        disk.mkdir()
        size = rng.randrange(8, need // 1024)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk], check=True)
        try:
            status, said, _ = Child([*command, "--out", str(disk / "run")]).wait()
            assert status in (1, 2), said
            assert _is_a_line(said), said
            shutil.copytree(disk / "run", folder, dirs_exist_ok=True, copy_function=shutil.copy2)
        finally:
            subprocess.run(["umount", disk], check=True)
        return status

    with tempfile.TemporaryDirectory() as scratch, contextlib.suppress(OSError):
        may = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", scratch], capture_output=True, check=False)
        if may.returncode == 0:
            subprocess.run(["umount", scratch], check=True)
            return disturb
    return None


def rivals(times: int, processes: int = 4) -> Fault:
    """Processes that take the lock of one folder in the same instant, again and again: never two inside."""
    fault = Fault(RIVALS, f"{processes} start in the same instant and take turns")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "run").mkdir()
        children = []
        start = time.monotonic() + 0.3
        for _ in range(processes):
            child = os.fork()
            if not child:
                clashes = 0
                time.sleep(max(0.0, start - time.monotonic()))
                for _ in range(times):
                    with contextlib.suppress(ValueError), storage.locked(folder / "run"):
                        try:
                            os.close(os.open(folder / "inside", os.O_CREAT | os.O_EXCL))
                        except FileExistsError:
                            clashes += 1
                        else:
                            time.sleep(0.001)
                            (folder / "inside").unlink()
                os._exit(min(clashes, 200))
            children.append(child)
        for child in children:
            clashes = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            fault.check(clashes == 0, f"{clashes} times two processes inside")
        fault.row["times"] = times * processes
        fault.check(not list((folder / "run").iterdir()), "something stayed in the folder")
    return fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the name of a fault; the others' records stay")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng, few = random.Random(options.seed), max(1, options.times // 5)
    faults = [rivals(20 * options.times)] if options.only in RIVALS else []
    for command in (FIT, SWEEP):
        name = command[0]
        with tempfile.TemporaryDirectory() as scratch:
            child = Child([*command, "--out", f"{scratch}/run"])
            status, said, networks = child.wait()
            assert status == 0, said
            whole = contents(Path(scratch) / "run")
        seconds = child.seconds
        print(f"{name}: {seconds:.1f} CPU seconds, {networks} networks undisturbed", flush=True)
        kinds = [
            (f"kill -9 of {name}", "at a random moment", options.times, killed(command, rng, seconds)),
            (f"{name}, its folder removed", "at a random moment", few, removed(command, rng, seconds)),
            (
                f"{name}, a read-only folder",
                "from the start, or from a random moment on",
                few,
                forbidden(command, rng, seconds),
            ),
            (f"{name}, a clock that jumps", "each reading is months off, either way", 2, jumping(command, rng)),
            (f"{name}, a full disk", "a tmpfs with room for some of the files", few, full(command, rng, whole)),
        ]
        for what, how, count, disturb in kinds:
            fault = Fault(what, how)
            if options.only not in what:
                continue
            if disturb is None:
                print(f"{fault.row['fault']}: no leave to mount, left out", flush=True)
                continue
            for _ in range(count):
                disturbed(fault, command, whole, networks, disturb)
            print(fault.row, flush=True)
            faults.append(fault)
    path = options.out / "faults.json"
    rows = {row["fault"]: row for row in (json.loads(path.read_text()) if path.exists() else [])}
    rows |= {fault.row["fault"]: fault.row for fault in faults}
    storage.write_json(path, list(rows.values()))
    sys.exit(any(fault.lost for fault in faults))


if __name__ == "__main__":
    main()
