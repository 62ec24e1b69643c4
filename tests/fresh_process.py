"""Run code as a new Python process would, without importing torch again for each."""

import contextlib
import multiprocessing
import os
import traceback
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
# The first optimizer of a process loads torch._dynamo, which takes two seconds.
CONTEXT.set_forkserver_preload(["invariantnet.estimator", "invariantnet.app.runs", "torch._dynamo"])


def run_code(code: str, folder: Path) -> tuple[int, str, str]:
    """Execute code in a folder; return the status, and what went to standard output and standard error."""
    out, err = folder / ".stdout", folder / ".stderr"
    process = CONTEXT.Process(target=_execute, args=(code, folder, out, err))
    process.start()
    process.join()
    return process.exitcode, out.read_text(), err.read_text()


def _execute(code: str, folder: Path, out: Path, err: Path) -> None:
    os.chdir(folder)
    status = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(stack.enter_context(out.open("w"))))
        stack.enter_context(contextlib.redirect_stderr(stack.enter_context(err.open("w"))))
        try:
            exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            status = 1
    raise SystemExit(status)
