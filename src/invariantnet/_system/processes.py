"""Processes that work for another, and end with it."""

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

SECONDS = 0.5


def watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for a worker: should this process be killed, the worker ends too, and wastes no more time."""
    return functools.partial(_call, os.getpid(), function)


def _call(master: int, function: Callable[..., Any], *arguments: Any) -> Any:
    _end_with(master)
    return function(*arguments)


@functools.cache
def _end_with(master: int) -> None:
    # On a cluster, and without workers, the parent is somebody else.
    if os.getppid() == master:
        threading.Thread(target=_watch, args=(master,), daemon=True).start()


def _watch(master: int) -> None:
    while os.getppid() == master:
        time.sleep(SECONDS)
    os._exit(1)
