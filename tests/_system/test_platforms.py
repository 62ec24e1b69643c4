"""What other platforms lack: locks of POSIX, the size of memory, reading at an offset."""

import errno
import fcntl
import os
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

from invariantnet._system import locks, sizes
from invariantnet._system.files import locked
from invariantnet.data.arrays import DiskArray

BLOCKED = """
import sys, warnings
sys.modules["fcntl"] = None
import invariantnet as inv
from pathlib import Path
from invariantnet._system.files import LOCK, locked
assert inv.InvariantClassifier and inv.InvariantRegressor
assert "invariantnet.estimator.base" in sys.modules
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with locked(Path()):
        assert Path(LOCK).exists()
assert not Path(LOCK).exists()
assert any(w.category is RuntimeWarning and "no file locks" in str(w.message) for w in caught)
"""


def test_estimators_import_and_folders_are_written_without_fcntl(tmp_path):
    subprocess.run([sys.executable, "-c", BLOCKED], cwd=tmp_path, check=True)


def locking(descriptor, mode, size):
    """The function of this name on Windows: another process's lock is a PermissionError."""
    assert (mode, size) == (2, 1)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


def test_the_lock_of_windows_keeps_a_second_process_out(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with (
            locked(tmp_path),
            pytest.raises(ValueError, match="another process is writing to"),
            locked(tmp_path),
        ):
            raise AssertionError("two at once")
    assert not list(tmp_path.iterdir())


def test_nothing_is_refused_where_the_size_of_memory_is_unknown(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    sizes.must_fit(2**50, "data.npz", "use fewer examples")


def test_files_are_read_without_preadv(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "preadv", raising=False)
    monkeypatch.delattr(os, "pread", raising=False)
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(3, 2))
    found = DiskArray.of(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert found[[2, 0]].read().tolist() == [[4, 5], [0, 1]]
