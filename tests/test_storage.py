import json

import pytest

from invariantnet import storage


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
