"""A real scheduler and two real workers, one of which dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


@pytest.fixture
def cluster(tmp_path):
    """Address of a scheduler, and its two workers."""
    contact = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    shared = ["--scheduler-file", contact]
    scheduler = subprocess.Popen(
        [BIN / "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *shared], **quiet
    )
    options = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", tmp_path]
    workers = [subprocess.Popen([BIN / "dask", "worker", *shared, *options], **quiet) for _ in range(2)]
    deadline = time.monotonic() + 60
    while not contact.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    yield json.loads(contact.read_text())["address"], workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


def start(out, *options):
    command = [BIN / "invariantnet", "reproduce", "figure1", "--quick", "--seeds", "1", "--out", out, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stored(out):
    return {p.name: p.stat().st_mtime_ns for p in (out / "runs").glob("*.json")}


def test_sweep_survives_the_death_of_a_worker_and_equals_a_local_one(cluster, tmp_path):
    address, workers = cluster
    far = start(tmp_path / "far", "--cluster", address)
    deadline = time.monotonic() + 200
    while len(stored(tmp_path / "far")) < 1:
        assert far.poll() is None, far.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = stored(tmp_path / "far")
    os.kill(workers[0].pid, signal.SIGKILL)
    _, error = far.communicate(timeout=300)
    assert far.returncode == 0, error
    after = stored(tmp_path / "far")
    assert len(after) == 5
    assert {name: after[name] for name in before} == before, "what was stored is not computed twice"
    near = start(tmp_path / "near", "--n-jobs", "2")
    near.communicate(timeout=300)
    assert (tmp_path / "far/figure1.json").read_bytes() == (tmp_path / "near/figure1.json").read_bytes()


def test_fit_on_a_cluster_gives_the_same_run(cluster, tmp_path):
    address, _ = cluster
    options = ("digits:rotated", "--symmetries", "rot90", "--examples", "300", "--hidden", "16", "--epochs", "2")
    for out, more in (("far", ("--cluster", address)), ("near", ())):
        subprocess.run([BIN / "invariantnet", "fit", *options, "--out", tmp_path / out, *more], check=True)
    for name in ("model.safetensors", "run.json", "report.html"):
        assert (tmp_path / "far" / name).read_bytes() == (tmp_path / "near" / name).read_bytes(), name


def test_no_scheduler_is_one_line(tmp_path):
    command = [BIN / "invariantnet", "fit", "digits:rotated", "--cluster", "tcp://127.0.0.1:9", "--out", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "no scheduler answers at tcp://127.0.0.1:9" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
