"""Write files atomically: under a temporary name first, then renamed, so that no file is ever half written."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from invariantnet._system.locks import lock

LOCK = ".lock"
"""Name of the file that a process locks while it writes to a folder."""

PART = ".invariantnet-part"
"""Suffix of a file that is not written completely."""

NAME_LENGTH = 40
"""Characters of a file's name that its temporary name repeats: file systems allow 255 bytes in all."""


def writable_folder(path: Path) -> Path:
    """Make a folder if need be, and check that it can be written to.

    Raises:
        ValueError: The folder cannot be made or written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot write to {path} ({_fault(error)}): choose another output folder.") from None
    return path


def writable_file(path: Path) -> Path:
    """Make the folder of a file if need be, and check that the file can be written.

    Raises:
        ValueError: The folder cannot be made or written to, or the path is a folder.
    """
    writable_folder(path.parent)
    if path.is_dir():
        raise ValueError(f"cannot write to {path} (it is a folder): choose another output file.")
    return path


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a folder, and clear away what a dead process left half written.

    The system releases the lock of a process that dies.

    Raises:
        ValueError: Another process has locked the folder, or its file system has no locks.
    """
    path = folder / LOCK
    while True:
        # Opening with "w" would truncate a file that another process has locked, which Windows refuses.
        with path.open("a") as file:
            try:
                lock(file)
            except BlockingIOError:
                raise ValueError(
                    f"another process is writing to {folder}: wait for it, or choose another --out."
                ) from None
            except OSError as error:
                raise ValueError(
                    f"{folder} cannot be locked ({_fault(error)}): choose another --out, on a local disk."
                ) from None
            # The file was unlinked after we opened it: retry.
            if not _is_at(file, path):
                continue
            clear_parts(folder)
            try:
                yield
            finally:
                # A file that cannot be removed is harmless: it is not locked once this process has closed it.
                with contextlib.suppress(OSError):
                    if _is_at(file, path):
                        path.unlink()
            return


def clear_parts(folder: Path) -> None:
    """Remove the half-written files of dead processes; call this only with the folder locked."""
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
    """Open a file that replaces `path` atomically at the end of the block; after an error `path` is unchanged.

    If `path` is a link, the file that it points to is replaced. A device or a pipe is written to directly.

    Args:
        path: File to replace; its permissions are kept.

    Yields:
        A binary file to write to.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    prefix = f".{path.name[:NAME_LENGTH]}."
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=PART)
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
    """Replace a file atomically."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Replace a UTF-8 text file atomically; characters that UTF-8 cannot encode are escaped as in JSON."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file atomically; each item of a list gets a line, so that differences stay readable."""
    if isinstance(value, list):
        body = ",\n".join(json.dumps(item, ensure_ascii=False) for item in value)
        write_text(path, f"[\n{body}\n]\n")
    else:
        write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")
