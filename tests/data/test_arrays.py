"""Inputs that stay in their file: the same results as in memory, and never more than a block of them at once."""

import os
import pickle

import numpy as np
import pytest
import torch

from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet import data as datasets
from invariantnet.app.predictions import predict
from invariantnet.app.record import Settings
from invariantnet.app.runs import fit
from invariantnet.data import arrays as disk_arrays
from invariantnet.data.arrays import DiskArray, read
from invariantnet.inference.models import models_for
from invariantnet.nn import Symmetrized

DIGITS = datasets.load("digits:rotated", seed=0)
X, Y = DIGITS.x_train[:150], DIGITS.y_train[:150]
brief = pytest.mark.usefixtures("brief_comparison")


def on_disk(path, array):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def parameters(estimator):
    return torch.nn.utils.parameters_to_vector(estimator.network_.parameters())


@pytest.fixture
def only_few_at_once(monkeypatch):
    """No array is ever made of more than two examples: the file may be larger than memory."""
    whole = DiskArray.__array__

    def few(self, *args, **kwargs):
        assert len(self) <= 2
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(DiskArray, "__array__", few)


@brief
@pytest.mark.usefixtures("only_few_at_once")
@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize(
    ("method", "source"), [("evidence", DiskArray.of), ("heldout", lambda mapped: mapped), ("paper", DiskArray.of)]
)
def test_a_file_gives_what_memory_gives_to_the_last_bit(tmp_path, monkeypatch, method, source, fits):
    """Whether all copies fit into memory, so that they are made once, or not."""
    if not fits:
        monkeypatch.setattr(Symmetrized, "can_prepare", lambda *_: False)

    def make():
        return InvariantClassifier(["rot90"], (8, 8), method, hidden=8, n_networks=1, epochs=3, random_state=0)

    x, y = np.concatenate([X[:80], X[:20]]), np.concatenate([Y[:80], Y[:20]])  # some are there twice
    weights = np.arange(len(x)) % 4 % 3  # and some are left out
    mapped = source(on_disk(tmp_path / "x.npy", x))
    memory, disk = make().fit(x, y, weights), make().fit(mapped, y, weights)
    assert repr(disk.posterior_) == repr(memory.posterior_)
    assert disk.fingerprint_ == memory.fingerprint_
    assert disk.history_ == memory.history_
    assert torch.equal(parameters(disk), parameters(memory))
    np.testing.assert_array_equal(disk.predict_proba(mapped), memory.predict_proba(x))


@brief
@pytest.mark.usefixtures("only_few_at_once")
def test_regression_from_a_file(tmp_path):
    x, y = X[:40], X[:40].sum(1)
    mapped = on_disk(tmp_path / "x.npy", x)

    def make():
        return InvariantRegressor(["sign"], hidden=8, n_networks=1, epochs=2, random_state=0)

    memory, disk = make().fit(x, y), make().fit(mapped, y)
    np.testing.assert_array_equal(disk.predict(mapped), memory.predict(x))


@brief
def test_a_folder_of_npy_gives_the_run_of_an_npz_and_is_read_in_parts(tmp_path, monkeypatch):
    images = (X * 255).round().astype(np.uint8).reshape(-1, 8, 8)
    arrays = {"x": images, "y": Y, "x_test": images[:50], "y_test": Y[:50]}
    folder, archive = tmp_path / "data", tmp_path / "data.npz"
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(archive, **arrays)
    on_files, in_memory = datasets.load(folder), datasets.load(archive)
    assert isinstance(on_files.x_train, DiskArray)
    assert on_files.shape == in_memory.shape == (8, 8)
    np.testing.assert_array_equal(np.asarray(on_files.x_train), in_memory.x_train)

    sizes, whole = [], DiskArray.read
    monkeypatch.setattr(DiskArray, "read", lambda self: sizes.append(len(self)) or whole(self))
    monkeypatch.setattr(disk_arrays, "BLOCK_BYTES", 10 * X[0].nbytes)
    monkeypatch.setattr(Symmetrized, "can_prepare", lambda *_: False)  # as if all copies took too much memory
    records = [
        fit(Settings(str(source), ("rot90",), hidden=8, n_networks=1, epochs=1), tmp_path / f"run{i}")
        for i, source in enumerate((folder, archive))
    ]
    batch = models_for("mlp", (8, 8))[0].final.batch_size
    assert max(sizes) == batch < len(X), "never more than a batch or a block is read at once"
    assert sizes.count(10) > 50
    assert records[0].data.examples == 150
    assert records[0].evaluation.test_examples == 50
    assert records[0].evaluation == records[1].evaluation
    assert repr(records[0].model) == repr(records[1].model)
    for source in (folder, archive):
        predict(tmp_path / "run0", str(source), tmp_path / f"{source.name}.csv")
    assert (tmp_path / "data.csv").read_text() == (tmp_path / "data.npz.csv").read_text()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.uint8, ">f4", np.int32, bool])
def test_any_kind_of_number(tmp_path, dtype):
    array = np.random.default_rng(0).integers(0, 2, (9, 2, 3)).astype(dtype)
    mapped = on_disk(tmp_path / "x.npy", array)
    flat = torch.from_numpy(array.reshape(9, 6).astype(np.float32))
    every = DiskArray.of(mapped)
    assert torch.equal(read(every), flat)
    assert torch.equal(read(DiskArray.of(mapped[2:7])[1:]), flat[3:7]), "a part of a file begins where it begins"
    assert torch.equal(read(every[torch.tensor([7, 7, 0, 1, 2])]), flat[[7, 7, 0, 1, 2]])
    assert torch.equal(read(every[::-2][np.array([True, False, True, False, False])]), flat[[8, 4]])
    assert read(every[:0]).shape == (0, 6)
    assert torch.equal(read(pickle.loads(pickle.dumps(every[3:]))), flat[3:])


def test_rows_that_follow_one_another_take_no_memory(tmp_path):
    """Their numbers alone would take half a terabyte."""
    n = 2**36
    with (tmp_path / "x.bin").open("wb") as file:
        file.truncate(2 * n)
        file.seek(2 * n - 4)
        file.write(bytes([1, 2, 3, 4]))
    every = DiskArray.of(np.memmap(tmp_path / "x.bin", np.uint8, mode="r", shape=(n, 2)))
    assert len(every) == n
    assert read(every[-2:]).tolist() == [[1, 2], [3, 4]]
    assert read(every[1:][n // 2 :][n // 2 - 2 :]).tolist() == [[3, 4]]
    assert len(next(disk_arrays.blocks(every))) == disk_arrays.BLOCK
    assert disk_arrays.not_finite(every) == (0, 0)


def test_the_first_of_several_that_are_not_finite(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_arrays, "BLOCK_BYTES", 10 * X[0].nbytes)
    x = X.copy()
    x[[37, 38, 90], 5] = np.nan
    assert disk_arrays.not_finite(DiskArray.of(on_disk(tmp_path / "x.npy", x))) == (3, 37)
    assert disk_arrays.not_finite(torch.from_numpy(x)) == (3, 37)
    assert disk_arrays.not_finite(torch.from_numpy(X)) == (0, 0)


def test_what_does_not_lie_in_a_file_is_taken_into_memory(tmp_path):
    np.save(tmp_path / "x.npy", X)
    changed = np.load(tmp_path / "x.npy", mmap_mode="c")
    changed[0] = 1
    for array in (X, changed, on_disk(tmp_path / "t.npy", X.T.copy()).T, on_disk(tmp_path / "s.npy", X)[::2]):
        assert DiskArray.of(array) is None
    clf = InvariantClassifier(["rot90"], (8, 8), "paper", hidden=8, epochs=1, random_state=0)
    assert clf.fit(changed, Y).fingerprint_ == clf.fit(np.array(changed), Y).fingerprint_


def test_zero_has_one_sign(tmp_path):
    zeros = on_disk(tmp_path / "x.npy", np.array([[-0.0, 1.0]], np.float32))
    assert not read(DiskArray.of(zeros)).signbit().any()


def header(text):
    body = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "not a readable .npy"),
        (b"PK\x03\x04", "not a readable .npy"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (9, 2), }"), "not a readable .npy"),
        (
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"),
            "not a readable",
        ),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }"), "not a readable .npy"),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (1, 2), }") + bytes(16), "not a readable .npy"),
        (header("__import__('os').abort()"), "not a readable .npy"),
    ],
)
def test_damaged_files(tmp_path, content, fault):
    (tmp_path / "x.npy").write_bytes(content)
    np.save(tmp_path / "y.npy", Y)
    with pytest.raises(ValueError, match=fault) as error:
        datasets.load(tmp_path)
    assert "x.npy" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("x", "y", "fault"),
    [
        (X, None, r"y\.npy: not a readable"),
        (X, Y[:-1], "one label per input"),
        (X[:, 0], Y, "at least one number"),
        (np.where(X.max() == X, np.inf, X), Y, r"hold values that are not finite"),
        (X.T.copy().T, Y, "column by column"),
        (X.astype(str), Y, "not real numbers"),
    ],
)
def test_unfit_arrays(tmp_path, x, y, fault):
    np.save(tmp_path / "x.npy", x)
    if y is not None:
        np.save(tmp_path / "y.npy", y)
    with pytest.raises(ValueError, match=fault):
        datasets.load(tmp_path)


def test_faults_of_a_mapped_array_are_those_of_any_array(tmp_path):
    clf = InvariantClassifier(["rot90"], (8, 8), "paper", hidden=8, epochs=1, random_state=0)
    with pytest.raises(ValueError, match="NaN or infinite"):
        clf.fit(on_disk(tmp_path / "a.npy", np.where(X.max() == X, np.nan, X)), Y)
    with pytest.raises(ValueError, match="all inputs are equal"):
        clf.fit(on_disk(tmp_path / "b.npy", np.ones_like(X)), Y)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        clf.fit(on_disk(tmp_path / "c.npy", X[:1]), Y[:1])
    fitted = clf.fit(X, Y)
    with pytest.raises(ValueError, match="63 features"):
        fitted.predict(on_disk(tmp_path / "d.npy", X[:, 1:].copy()))


def test_a_file_that_shrinks_or_goes_away(tmp_path):
    found = DiskArray.of(on_disk(tmp_path / "x.npy", X))
    os.truncate(tmp_path / "x.npy", 5000)
    with pytest.raises(ValueError, match="ends early"):
        read(found[100:])
    (tmp_path / "x.npy").unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        read(found)


def test_wide_inputs_are_read_in_the_same_blocks_from_memory_and_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_arrays, "BLOCK_BYTES", 4 * 64 * 7)
    in_file = disk_arrays.blocks(DiskArray.of(on_disk(tmp_path / "x.npy", X)))
    assert [len(part) for part in disk_arrays.blocks(torch.from_numpy(X))] == [len(part) for part in in_file]
