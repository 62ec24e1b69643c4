"""Folders of photographs that are too many for memory: decoded once, then read from disk."""

import os

import numpy as np
import pytest
from PIL import Image

import invariantnet as inv
from invariantnet.data import folders
from invariantnet.data.arrays import DiskArray
from invariantnet.data.image_cache import VARIABLE, cache_folder


@pytest.fixture
def photographs(tmp_path, monkeypatch):
    """JPEG files of different sizes, more than memory is said to hold."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(folders, "IN_MEMORY", 0)
    rng = np.random.default_rng(0)
    for k, name in enumerate(("dark", "light")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(6):
            pixels = rng.integers(120 * k, 120 * k + 100, (20 + i, 30 - i, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.jpg")
    return tmp_path / "photos"


def counted(monkeypatch):
    decoded = []
    original = folders.read_image
    monkeypatch.setattr(folders, "read_image", lambda *a: decoded.append(a) or original(*a))
    return decoded


def test_they_are_decoded_once_and_equal_those_in_memory(photographs, monkeypatch):
    decoded = counted(monkeypatch)
    data = inv.datasets.load(photographs, size=(8, 8))
    assert isinstance(data.x_train, DiskArray)
    assert len(decoded) == 12
    inv.datasets.load(photographs, size=(8, 8))
    assert len(decoded) == 13  # the first tells the size
    monkeypatch.setattr(folders, "IN_MEMORY", 10**9)
    np.testing.assert_array_equal(np.asarray(data.x_train), inv.datasets.load(photographs, size=(8, 8)).x_train)


@pytest.mark.parametrize("change", ["a file", "the size"])
def test_what_has_changed_is_decoded_again(change, photographs, monkeypatch):
    inv.datasets.load(photographs, size=(8, 8))
    decoded = counted(monkeypatch)
    if change == "a file":
        os.utime(photographs / "dark" / "0.jpg", (1, 1))
    inv.datasets.load(photographs, size=(8, 8) if change == "a file" else (9, 9))
    assert len(decoded) == 12


def test_they_are_learned_from_and_predicted(photographs, brief_comparison):
    data = inv.datasets.load(photographs, size=(8, 8))
    clf = inv.InvariantClassifier(["hflip"], data.shape, backbone="mlp", hidden=4, n_networks=1, epochs=1)
    clf.fit(data.x_train, data.y_train)
    new = inv.datasets.load_inputs(photographs, shape=data.shape)
    assert isinstance(new.x, DiskArray)
    assert len(clf.predict(new.x)) == 12


def test_a_damaged_image_leaves_no_array_behind(photographs):
    (photographs / "light" / "5.jpg").write_bytes(b"no image")
    with pytest.raises(ValueError, match="not a readable image"):
        inv.datasets.load(photographs, size=(8, 8))
    assert not list(cache_folder().iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "cache"))
    with pytest.raises(ValueError, match="cache"):
        cache_folder()
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache_folder().is_dir()
