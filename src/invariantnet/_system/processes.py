"""Worker processes that end when the process that started them ends."""

import contextlib
import functools
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

SECONDS = 0.5
"""Time between two looks at whether the parent process still runs: short for a person, and no load."""


def watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function for workers, so that a worker ends soon after this process was killed.

    On Windows a worker cannot see that its parent has ended, and finishes its job.

    Args:
        function: Function to run in a worker.

    Returns:
        A function with the same arguments and result; it can be pickled if `function` can.
    """
    return functools.partial(_call, os.getpid(), function)


@contextlib.contextmanager
def quiet_renewal() -> Iterator[None]:
    """Do not warn that joblib replaces a worker, as it does when one holds much more memory than at first.

    Its job is done by another, and nothing is lost; the warning speaks of a memory leak, and alarms for nothing.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        yield


def _call(master: int, function: Callable[..., Any], *arguments: Any) -> Any:
    _end_with(master)
    return function(*arguments)


@functools.cache
def _end_with(master: int) -> None:
    # On a cluster, and without workers, this process has another parent.
    if os.getppid() == master:
        threading.Thread(target=_watch, args=(master,), daemon=True).start()


def _watch(master: int) -> None:
    while os.getppid() == master:
        time.sleep(SECONDS)
    os._exit(1)
