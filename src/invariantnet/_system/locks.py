"""Exclusive locks on open files, with what the platform offers."""

import errno
import warnings
from typing import IO, Any

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # everywhere else
    msvcrt = None  # type: ignore[assignment]

LOCKED_ON_WINDOWS = (errno.EACCES, errno.EDEADLK)
"""Error numbers by which Windows reports that another process holds the lock."""


def lock(file: IO[Any]) -> None:
    """Lock a file until it is closed; the system releases the lock of a process that dies.

    On a platform without file locks this only warns.

    Args:
        file: An open, empty file.

    Raises:
        BlockingIOError: Another process holds the lock.
        OSError: The file system has no locks.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in LOCKED_ON_WINDOWS:
                raise BlockingIOError(error.errno, error.strerror) from None
            raise
    else:
        warnings.warn(
            f"this platform has no file locks: let no second process write to the folder of {file.name}.",
            RuntimeWarning,
            stacklevel=2,
        )
