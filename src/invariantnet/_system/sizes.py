"""Check sizes before memory is taken: data that cannot fit is refused in one line, not killed by the system."""

import os
import sys

GIGABYTE = 2**30
"""Bytes."""


def physical() -> int:
    """Bytes of memory of this machine; `sys.maxsize` if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # such as on Windows
        return sys.maxsize


def must_fit(size: int, what: str, remedy: str) -> None:
    """Refuse what takes more memory than this machine has.

    Args:
        size: Bytes needed.
        what: What needs them, for the error message.
        remedy: What to do about it, for the error message.

    Raises:
        ValueError: The size exceeds the memory of this machine.

    Example:
        >>> must_fit(2**70, "x.npz", "use fewer examples")
        Traceback (most recent call last):
        ValueError: x.npz would take 1,099,511,627,776 GB, more memory than this machine has: use fewer examples.
    """
    if size > physical():
        raise ValueError(
            f"{what} would take {size // GIGABYTE:,} GB, more memory than this machine has: {remedy}."
        )
