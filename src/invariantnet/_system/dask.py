"""The same jobs on other machines: joblib hands them to a dask.distributed scheduler."""

import contextlib
from collections.abc import Iterator

import joblib

CONNECT_SECONDS = 10


@contextlib.contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Inside, every `joblib.Parallel` runs on the cluster; on this machine if there is no address.

    A worker that dies loses nothing: the scheduler gives its jobs to another.
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
