"""Run joblib's jobs on other machines, through a dask.distributed scheduler."""

import contextlib
from collections.abc import Iterator

import joblib

CONNECT_SECONDS = 10
"""Time to wait for a scheduler's answer: slow networks need seconds, and a wrong address should cost no more."""


@contextlib.contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Run every `joblib.Parallel` inside the block on a cluster.

    If a worker dies, the scheduler gives its jobs to another one.

    Args:
        address: Address of the scheduler, such as `tcp://host:8786`; None stays on this machine.

    Raises:
        ValueError: dask.distributed is not installed, or no scheduler answers.
    """
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("dask.distributed is missing: pip install 'invariantnet[cluster]'.") from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=True)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        fault = str(error).splitlines()[0]
        raise ValueError(
            f"no scheduler answers at {address} ({fault}): start one with `dask scheduler`."
        ) from None
    with client, joblib.parallel_config(backend="dask"):
        yield
