"""The one place that writes files: under a temporary name first, then renamed, so none is ever torn."""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def writable_folder(path: Path) -> Path:
    """Make the folder if need be; a ValueError says why it cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to {path} ({error.strerror}): choose another output folder.") from None
    return path


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Inside, the folder is ours; a second process is told so. The system forgets the lock of one that died."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(
                f"another process is writing to {folder}: wait for it, or choose another --out."
            ) from None
        yield
    (folder / ".lock").unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at once, or leave it as it was."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def write_text(path: Path, text: str) -> None:
    """Replace a UTF-8 text file at once."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file at once; lists of records get a line each, so that differences stay readable."""
    if isinstance(value, list):
        body = ",\n".join(json.dumps(item, ensure_ascii=False) for item in value)
        write_text(path, f"[\n{body}\n]\n")
    else:
        write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")
