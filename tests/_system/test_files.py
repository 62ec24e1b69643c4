import json
import os
import stat

import pytest

from invariantnet._system import files as storage


def test_json_round_trip_and_nothing_left_over(tmp_path):
    records = [{"a": 1, "b": "π"}, {"a": 2, "b": None}]
    storage.write_json(tmp_path / "r.json", records)
    storage.write_json(tmp_path / "r.json", records[::-1])
    assert json.loads((tmp_path / "r.json").read_text()) == records[::-1]
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    storage.write_text(tmp_path / "f.txt", "old")

    def full_disk(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        storage.write_text(tmp_path / "f.txt", "new")
    assert (tmp_path / "f.txt").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["f.txt"]


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="choose another output folder"):
        storage.writable_folder(tmp_path / "file" / "sub")


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    storage.write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    storage.write_text(tmp_path / "pipe", "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_files_are_as_private_as_their_owner_wants_them(tmp_path):
    before = os.umask(0o077)
    try:
        storage.write_text(tmp_path / "secret.txt", "")
    finally:
        os.umask(before)
    assert (tmp_path / "secret.txt").stat().st_mode & 0o777 == 0o600
    (tmp_path / "secret.txt").chmod(0o640)
    storage.write_text(tmp_path / "secret.txt", "again")
    assert (tmp_path / "secret.txt").stat().st_mode & 0o777 == 0o640


def test_a_long_name_in_another_script_is_a_name_like_any(tmp_path):
    path = tmp_path / ("名" * 80)
    storage.write_text(path, "text")
    assert path.read_text() == "text"
