"""A machine that fails: nothing is lost, nothing is torn. `python -m studies run faults` tries it more often."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from bad_inputs import OPTIONS_OF_TINY, TINY, X, Y

from invariantnet._system import files as storage
from invariantnet._system.files import PART, locked, write_text
from invariantnet.app.cli import main
from invariantnet.app.preparation import Reading, prepare
from invariantnet.app.record import Settings
from invariantnet.app.runs import fit
from invariantnet.inference.scoring import Scorer
from studies.reliability.children import COMMANDS, Child, contents, may_write, obey_permissions
from studies.reliability.faults import Tally, check_locks

FIT = [*OPTIONS_OF_TINY, "--out", "run"]


def test_processes_that_start_in_the_same_instant_take_turns():
    tally = Tally()
    check_locks(60, tally)
    assert not tally.lost


def test_a_lock_that_was_removed_is_no_lock(tmp_path):
    """As the process before us does it, between our opening of the file and our lock."""
    with locked(tmp_path):
        (tmp_path / ".lock").unlink()
        with locked(tmp_path):
            assert (tmp_path / ".lock").exists()
        (tmp_path / ".lock").write_text("another's")
    assert (tmp_path / ".lock").read_text() == "another's"


def test_half_written_files_of_the_dead_are_cleared_away(tmp_path):
    (tmp_path / f".run.json.abc{PART}").write_text("{")
    (tmp_path / ".mine").write_text("kept")
    with locked(tmp_path):
        pass
    assert [p.name for p in tmp_path.iterdir()] == [".mine"]


def failing_after(writes, error, monkeypatch):
    original, left = os.fsync, [writes]

    def fsync(descriptor):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(error, os.strerror(error))
        original(descriptor)

    monkeypatch.setattr(storage.os, "fsync", fsync)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_fails_is_one_line_and_the_run_goes_on_later(here, capfd, monkeypatch, error):
    np.savez("data.npz", x=X, y=Y)
    with monkeypatch.context() as patch:
        failing_after(1, error, patch)
        with pytest.raises(SystemExit) as end:
            main(["fit", "data.npz", *FIT])
    assert end.value.code == 1
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("invariantnet: ")]
    assert len(said) == 1
    assert os.strerror(error) in said[0]
    assert "--resume goes on" in said[0]
    assert len(list(here.glob("run/unfinished/*/*.safetensors"))) == 1
    assert not list(here.rglob(f"*{PART}"))
    if error == errno.ENOSPC:
        main(["fit", "data.npz", *FIT, "--resume"])
        undisturbed = [*FIT[:-1], "undisturbed"]
        main(["fit", "data.npz", *undisturbed])
        assert contents(here / "run") == contents(here / "undisturbed")


def test_scores_of_other_data_are_not_taken_for_ours(tmp_path):
    path = tmp_path / "data.npz"
    settings = Settings(str(path), ("hflip",), **TINY)
    seen = set()
    for x, y in ((X, Y), (X + 1, Y), (X, Y[::-1]), (X, np.char.upper(Y))):
        np.savez(path, x=x, y=y)
        seen.add(prepare(settings).digest)
    seen.add(prepare(settings, Reading(shape=(16,))).digest)
    assert len(seen) == 5


def test_a_read_only_folder_is_refused_before_any_work(here, capfd, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(storage.tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr("invariantnet.app.runs._fit", refuse)
    np.savez("data.npz", x=X, y=Y)
    with pytest.raises(SystemExit) as end:
        main(["fit", "data.npz", *FIT])
    assert end.value.code == 2
    assert "Read-only file system): choose another output folder" in capfd.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_without_leave_to_write_is_refused_before_any_work(tmp_path, command):
    """For root too, without its right to write anywhere."""
    tmp_path.chmod(0o555)
    ending = Child([*COMMANDS[command], "--out", str(tmp_path)], obey_permissions).wait()
    assert ending.status == 2
    (line,) = ending.said.splitlines()
    assert line.endswith(f": cannot write to {tmp_path} (Permission denied): choose another output folder.")
    assert not ending.trained
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o755)


def test_a_folder_that_becomes_read_only_is_one_line_and_the_run_goes_on_later(here, monkeypatch):
    np.savez("data.npz", x=X, y=Y)
    original = Scorer.score

    def forbidding(*arguments):
        may_write(here / "run", False)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Scorer, "score", forbidding)
        ending = Child(["fit", "data.npz", *FIT], obey_permissions).wait()
    may_write(here / "run", True)
    assert ending.status == 1
    assert len(ending.said.splitlines()) == 1
    assert "Permission denied" in ending.said
    assert "make it writable and try again" in ending.said
    main(["fit", "data.npz", *FIT, "--resume"])
    main(["fit", "data.npz", *FIT[:-1], "undisturbed"])
    assert contents(here / "run") == contents(here / "undisturbed")


def test_a_closed_pipe_ends_it_quietly(fitted):
    command = f"{sys.executable} -m invariantnet predict {fitted} {fitted.parent / 'data.npz'} | head -c 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert result.stdout == "i"
    assert "Traceback" not in result.stderr


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX"
    except OSError:
        return False


def test_workers_end_with_a_master_that_was_killed(tmp_path):
    code = (
        "import joblib, time, sys, pathlib\n"
        "from invariantnet._system.processes import watched\n"
        "def work(i):\n"
        f"    pathlib.Path({str(tmp_path)!r}, str(i)).touch()\n"
        "    time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    joblib.Parallel(n_jobs=2)(joblib.delayed(watched(work))(i) for i in range(2))\n"
    )
    (tmp_path / "master.py").write_text(code)
    master = subprocess.Popen([sys.executable, tmp_path / "master.py"])
    deadline = time.monotonic() + 60
    while not ((tmp_path / "0").exists() and (tmp_path / "1").exists()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    workers = children(master.pid)
    assert len(workers) >= 2
    master.send_signal(signal.SIGKILL)
    master.wait()
    while any(alive(pid) for pid in workers):
        assert time.monotonic() < deadline + 60, "workers of the dead go on"
        time.sleep(0.05)


def test_a_folder_that_is_removed_takes_nothing_else_with_it(tmp_path, monkeypatch):
    np.savez(tmp_path / "data.npz", x=X, y=Y)
    settings = Settings(str(tmp_path / "data.npz"), ("hflip",), **TINY)
    original = Scorer.score

    def removing(*arguments):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Scorer, "score", removing)
        fit(settings, tmp_path / "run")
    fit(settings, tmp_path / "undisturbed")
    assert contents(tmp_path / "run") == contents(tmp_path / "undisturbed")


def test_text_beyond_utf8_is_escaped(tmp_path):
    write_text(tmp_path / "a", '"\udcff"')
    assert (tmp_path / "a").read_bytes() == b'"\\udcff"'
