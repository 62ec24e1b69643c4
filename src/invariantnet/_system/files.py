"""The one place that writes files: under a temporary name first, then renamed, so none is ever torn."""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

LOCK = ".lock"
PART = ".invariantnet-part"


def writable_folder(path: Path) -> Path:
    """Make the folder if need be; a ValueError says why it cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot write to {path} ({_fault(error)}): choose another output folder.") from None
    return path


def writable_file(path: Path) -> Path:
    """Make its folder if need be; a ValueError says why it cannot be written."""
    writable_folder(path.parent)
    if path.is_dir():
        raise ValueError(f"cannot write to {path} (it is a folder): choose another output file.")
    return path


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Inside, the folder is ours; a second process is told so. The system forgets the lock of one that died.

    What a process that died left half written is cleared away.
    """
    path = folder / LOCK
    while True:
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"another process is writing to {folder}: wait for it, or choose another --out."
                ) from None
            except OSError as error:
                raise ValueError(
                    f"{folder} cannot be locked ({_fault(error)}): choose another --out, on a local disk."
                ) from None
            # Who held the lock may have removed the file after we opened it: then ours is the lock of nothing.
            if not _is_at(file, path):
                continue
            clear_parts(folder)
            try:
                yield
            finally:
                # One that stays, because the folder has become read-only, locks nothing once we are gone.
                with contextlib.suppress(OSError):
                    if _is_at(file, path):
                        path.unlink()
            return


def clear_parts(folder: Path) -> None:
    """Remove what a process that died left half written; for one who holds the lock."""
    for part in folder.glob(f".*{PART}"):
        part.unlink(missing_ok=True)


def _is_at(file: IO[Any], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _fault(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; when all is written it takes the place of the old one at once, else that stays.

    A link stays a link to it, and what is no file, such as `/dev/null` or a pipe, is written to as it is.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=PART)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at once, or leave it as it was."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Replace a UTF-8 text file at once; what UTF-8 cannot hold, such as odd file names, is escaped as in JSON."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file at once; lists of records get a line each, so that differences stay readable."""
    if isinstance(value, list):
        body = ",\n".join(json.dumps(item, ensure_ascii=False) for item in value)
        write_text(path, f"[\n{body}\n]\n")
    else:
        write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")
