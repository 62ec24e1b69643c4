"""Sizes are checked before memory is taken: what cannot fit is refused in a line, not killed by the system."""

import os

GIGABYTE = 2**30


def physical() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def must_fit(size: int, what: str, remedy: str) -> None:
    """Raise a ValueError if so many bytes are more than this machine has.

    >>> must_fit(2**70, "data.npz", "use fewer examples")
    Traceback (most recent call last):
    ValueError: data.npz would take 1,099,511,627,776 GB, more memory than this machine has: use fewer examples.
    """
    if size > physical():
        raise ValueError(
            f"{what} would take {size // GIGABYTE:,} GB, more memory than this machine has: {remedy}."
        )
