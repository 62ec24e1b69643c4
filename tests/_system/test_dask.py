"""A real scheduler and two real workers, one of which dies."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from invariantnet._system import dask
from invariantnet._system.files import LOCK
from invariantnet.app.cli import main

BIN = Path(sys.executable).parent


@pytest.fixture
def cluster(tmp_path):
    """Address of a scheduler, and its two workers."""
    contact = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    shared = ["--scheduler-file", contact]
    options = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", tmp_path]
    with contextlib.ExitStack() as running:

        def start(*command):
            process = running.enter_context(subprocess.Popen([BIN / "dask", *command, *shared], **quiet))
            running.callback(process.kill)
            return process

        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        address = address_in(contact)
        yield address, [start("worker", *options) for _ in range(2)]


def address_in(contact):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        # The file may not be there, or not be complete.
        with contextlib.suppress(OSError, ValueError):
            return json.loads(contact.read_text())["address"]
        time.sleep(0.1)
    raise TimeoutError("the scheduler does not start")


def fit(out, *options):
    data = ("digits:rotated", "--symmetries", "rot90", "--examples", "120", "--hidden", "4", "--epochs", "1")
    main(["fit", *data, "--backbone", "mlp", "--n-networks", "1", "--out", str(out), *options])


def kill_after_the_first_network(worker, out, killed):
    while not any(path.is_file() and path.name != LOCK for path in out.rglob("*")):
        time.sleep(0.01)
    worker.kill()
    killed.append(not (out / "run.json").exists())


def test_a_fit_on_a_cluster_survives_the_death_of_a_worker_and_equals_a_local_one(cluster, tmp_path, capsys):
    address, workers = cluster
    far, near, killed = tmp_path / "far", tmp_path / "near", []
    killer = threading.Thread(target=kill_after_the_first_network, args=(workers[0], far, killed), daemon=True)
    killer.start()
    fit(far, "--cluster", address)
    killer.join(timeout=60)
    assert killed == [True], "the worker dies before the fit is over"
    fit(near, "--n-jobs", "1")  # as the record says
    for name in ("model.safetensors", "run.json", "report.html"):
        assert (far / name).read_bytes() == (near / name).read_bytes(), name


def test_no_scheduler_is_one_line(monkeypatch):
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(ValueError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9") as error,
        dask.on_cluster("tcp://127.0.0.1:9"),
    ):
        raise AssertionError("unreachable")
    assert "\n" not in str(error.value)
