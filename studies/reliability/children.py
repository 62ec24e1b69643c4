"""Commands in forked processes that can be disturbed, and what they leave behind.

The processes are forked from this one, so that none of them has to import torch again.
"""

import ctypes
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

import invariantnet.app.runs  # noqa: F401 -- imported before the first fork
from invariantnet._system import files
from invariantnet._system.progress import INDENT
from invariantnet.app import cli as package_commands
from invariantnet.inference.scoring import Scorer
from studies import cli as study_commands
from studies.framework import running
from studies.paper import figure1  # noqa: F401 -- imported before the first fork

COMMANDS = {
    "fit": [
        "fit",
        "digits:rotated",
        "--symmetries",
        "rot90",
        "--examples",
        "200",
        "--backbone",
        "mlp",
        "--hidden",
        "8",
        "--epochs",
        "2",
    ],
    "reproduce": ["reproduce", "figure1", "--quick", "--seeds", "1", "--n-jobs", "1"],
}
"""Small runs of a fit, and of a study."""

RESULT = {"model.safetensors", "evaluation.safetensors", "run.json", "report.html"}
"""Files of a finished fit."""

MADE_BY = ("version", "digest", "machine", "cpu_seconds")
"""What a piece of a study says about its making; the seconds differ from run to run."""


@dataclass(frozen=True)
class Ending:
    """How a command ended."""

    status: int
    said: str
    """What it wrote to standard error, without progress."""
    trained: int
    """Networks that it trained."""
    seconds: float
    """CPU seconds."""


class Child:
    """A command in a forked process.

    Args:
        arguments: The command and its options.
        before: Called in the new process before the command.
    """

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
            _count_networks(self.trained)
            before()
            (package_commands if arguments[0] == "fit" else study_commands).main(arguments)
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            os._exit(status)

    def wait(self) -> Ending:
        """Wait until the command has ended."""
        _, status, used = os.wait4(self.pid, 0)
        lines = [line for line in self.said.read_text().splitlines() if not _is_progress(line)]
        trained = len(self.trained.read_bytes())
        self.said.unlink()
        self.trained.unlink()
        seconds = used.ru_utime + used.ru_stime
        return Ending(os.waitstatus_to_exitcode(status), "\n".join(lines), trained, seconds)

    def reach(self, seconds: float) -> None:
        """Wait until the command has used this CPU time, or has ended; other load makes no difference."""
        ticks = seconds * os.sysconf("SC_CLK_TCK")
        while True:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            if state[0] == "Z" or int(state[11]) + int(state[12]) >= ticks:
                return
            time.sleep(0.002)


def _is_progress(line: str) -> bool:
    announced = ("starting", "reading ", "preparing ", "timing ", "Candidates: ", "evaluating ", "writing ")
    told = "%" in line or " · " in line or "hypotheses" in line
    return told or line.startswith((*announced, INDENT))


def _count_networks(path: Path) -> None:
    """Write a byte to the file for every network that is trained."""
    file = path.open("ab", buffering=0)
    for owner, name in ((Scorer, "score"), (running, "run_task")):
        original = getattr(owner, name)

        def counted(*arguments: Any, original: Any = original) -> Any:
            result = original(*arguments)
            file.write(b".")
            return result

        setattr(owner, name, counted)


def contents(folder: Path) -> dict[str, bytes]:
    """Read what a finished run leaves, without how long it took."""
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    return {str(p.relative_to(folder)): _comparable(p) for p in paths}


def _comparable(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix != ".json" or not content.startswith(b"["):
        return content
    pieces = [
        {name: value for name, value in piece.items() if name not in MADE_BY} for piece in json.loads(content)
    ]
    return json.dumps(pieces).encode()


def torn(folder: Path) -> list[str]:
    """Name the files under their final names that cannot be read."""
    found = []
    for path in folder.rglob("*"):
        if not path.is_file() or path.name == files.LOCK or path.name.endswith(files.PART):
            continue
        try:
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".safetensors":
                safetensors.torch.load(path.read_bytes())
            elif path.suffix in (".html", ".svg"):
                assert path.read_text().rstrip().endswith(">")
        except Exception as error:
            found.append(f"{path}: {error}")
    return found


def stored(folder: Path) -> dict[str, object]:
    """List finished networks, each with something that changes if it is computed again."""
    scores: dict[str, object] = {str(p): p.stat().st_mtime_ns for p in folder.glob("unfinished/*/*.safetensors")}
    records = folder / "figure1.json"
    pieces = json.loads(records.read_text()) if records.exists() else []
    return scores | {json.dumps(piece["recipe"]): piece for piece in pieces}


def may_write(folder: Path, yes: bool) -> None:
    """Allow or forbid writing to a folder and those inside."""
    for path in (folder, *(p for p in folder.rglob("*") if p.is_dir())):
        path.chmod(0o755 if yes else 0o555)


def obey_permissions() -> None:
    """Give up root's right to write where it is forbidden (CAP_DAC_OVERRIDE)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, capabilities = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, capabilities) == 0
    capabilities[0] &= ~2
    assert libc.capset(header, capabilities) == 0
