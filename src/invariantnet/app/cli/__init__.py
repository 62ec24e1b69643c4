"""The command line. Each command is a dataclass: its fields are the options, its docstring the help."""

import contextlib
import errno
import io
import itertools
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from invariantnet._system.words import package_version
from invariantnet.app.cli.discovery import Discover
from invariantnet.app.cli.help import let_help_flow
from invariantnet.app.cli.models import Export, Fit, Predict, Report
from invariantnet.app.cli.symmetries import Symmetries

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit statuses: of a machine that fails, of input that cannot be used, and of Ctrl-C as shells have it."""

LONGEST = 600
"""Characters of a message: more, such as a path of thousands, would hide what it says."""

REMEDIES = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable and "),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.ENOMEM), "make room and "),
}
"""What to do before trying again, by the system's error."""

MISSING = "Missing from "
"""Beginning of a complaint about arguments that are missing."""

MEANT = "Perhaps you meant:"
"""Line of a complaint below which options are named."""

Command = (
    Annotated[Fit, tyro.conf.subcommand("fit")]
    | Annotated[Discover, tyro.conf.subcommand("discover")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Symmetries, tyro.conf.subcommand("symmetries")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `invariantnet` command; `--version` alone prints the version."""
    if list(sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        print(f"invariantnet {package_version()}")
        return
    about = "Which symmetries does my data have? And a network exactly invariant to them."
    run_command(Command, "invariantnet", about, arguments)


def run_command(commands: Any, program: str, about: str, arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends with status 2 and one line, Ctrl-C with 130, a failing machine with 1.

    Args:
        commands: Union of dataclasses with a `run` method, one per subcommand.
        program: Name of the program, as its messages and its help show it.
        about: What the program is for, as its help says it.
        arguments: Words of the command line; by default those of this process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files and classes may hold what the terminal cannot show.
            stream.reconfigure(errors="backslashreplace")
    command: Any = None
    try:
        command = _parse(commands, program, about, arguments)
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: _complain(program, str(message))
            command.run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has closed it, so what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except ValueError as error:
        _complain(program, str(error) or "bad input")
        sys.exit(BAD_INPUT)
    except (OSError, MemoryError) as error:
        fault = "out of memory" if isinstance(error, MemoryError) else str(error)
        remedy = REMEDIES.get(getattr(error, "errno", errno.ENOMEM), "")
        _complain(program, f"{fault}: {remedy}try again{getattr(command, 'after_interrupt', '')}")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        _complain(program, f"interrupted{getattr(command, 'after_interrupt', '')}")
        sys.exit(INTERRUPTED)


def _complain(program: str, fault: str) -> None:
    """One line, whatever a file or a name has put into it."""
    line = "".join(c if c.isprintable() else "�" for c in " ".join(fault.split()))
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    print(f"{program}: {line}", file=sys.stderr)


def _parse(commands: Any, program: str, about: str, arguments: Sequence[str] | None) -> Any:
    let_help_flow(commands)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(commands, prog=program, description=about, args=arguments)
    except SystemExit as end:
        if end.code != BAD_INPUT:
            raise
        # tyro frames its complaint in a box: the fault, a rule, and perhaps what was meant.
        lines = [line.strip("│ ") for line in complaint.getvalue().splitlines()[1:]]
        lines = list(itertools.dropwhile(_is_rule, lines))
        said = list(itertools.takewhile(lambda line: not _is_rule(line), lines))
        if said[0].startswith(MISSING):  # with the help of each argument, which --help shows as well
            said = [said[0], " and ".join(line for line in said[1:] if line.isupper())]
        raise ValueError(f"{' '.join(said).rstrip('.')}: {_remedy(lines, program)}.") from None


def _is_rule(line: str) -> bool:
    """Whether a line of a box is part of its frame, on a terminal of any encoding."""
    return set(line) <= set("─-╰╯ ")


def _remedy(lines: Sequence[str], program: str) -> str:
    """What to type instead, from the lines of a complaint."""
    options = dict.fromkeys(line.split()[0].rstrip(",") for line in lines if line.startswith("--"))
    commands = next((line.partition(": ")[2] for line in lines if line.startswith("Available subcommands")), "")
    if commands:
        return f"{program} is followed by one of {commands}"
    meant = f"perhaps you meant {' or '.join(options)}; " if MEANT in lines and options else ""
    helped = next((line for line in lines if line.startswith(program) and line.endswith(" --help")), None)
    return f"{meant}see {helped or f'{program} --help'}"
