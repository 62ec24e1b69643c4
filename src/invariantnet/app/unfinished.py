"""What an interrupted command leaves in its folder, so that the next one goes on."""

import re
import sys
from pathlib import Path


def check_ours(work: Path) -> None:
    """Refuse a folder of unfinished work that this program has not written, because it may be removed.

    Args:
        work: The folder, which need not exist.

    Raises:
        ValueError: If it holds anything but folders named by a digest.
    """
    if work.exists() and not _is_ours(work):
        raise ValueError(
            f"{work} is not from this program, which needs that name: move it, or pass another --out."
        )


def check_not_interrupted(out: Path, work: Path) -> None:
    """Refuse to begin anew in silence where an interrupted command has left results.

    Args:
        out: Folder of the command.
        work: Folder of its unfinished work, which need not exist.

    Raises:
        ValueError: If it holds any file.
    """
    if work.exists() and any(path.is_file() for path in work.rglob("*")):
        raise ValueError(
            f"{out} holds results of an interrupted command: go on with --resume, begin anew with --overwrite, or "
            "pass another --out."
        )


def say_nothing_to_resume(out: Path) -> None:
    """Tell a user that asked to resume why the work starts anew."""
    reason = "other settings, data or version, or damaged"
    print(f"nothing in {out} can be resumed ({reason}): starting anew.", file=sys.stderr)


def _is_ours(work: Path) -> bool:
    return (
        not work.is_symlink()
        and work.is_dir()
        and all(re.fullmatch("[0-9a-f]{16}", f.name) for f in work.iterdir())
    )
