"""Files of strangers run nothing: not in the readers, and not in the report."""

import ast
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from bad_inputs import X, Y, damaged, photos, with_text_everywhere

import invariantnet
from invariantnet import InvariantClassifier
from invariantnet import data as datasets
from invariantnet.app.runs import EVALUATION, write_report
from invariantnet.estimator.persistence import MODEL, RUN
from invariantnet.inference.cache import FolderCache, NetworkKey
from invariantnet.inference.scoring import BlockScore

SOURCES = sorted(Path(invariantnet.__file__).parent.rglob("*.py"))
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "subprocess", "yaml", "code"}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "torch.hub.load", "yaml.load",
    "joblib.load", "pd.read_pickle", "importlib.import_module", "runpy.run_path",
}  # fmt: skip
FORBIDDEN_OPTIONS = {"allow_pickle", "shell"}
LAZY = {"__init__.py", "backbones.py"}
"""The package imports its own modules when they are asked for, by names that it has itself; and the module of a
backbone that was named on the command line, never one that a file names."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_nothing_in_the_package_runs_what_it_reads(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
            assert not {name.split(".")[0] for name in names} & FORBIDDEN_MODULES
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in FORBIDDEN_CALLS or (called.startswith("importlib") and path.name in LAZY)
            for option in node.keywords:
                if option.arg in FORBIDDEN_OPTIONS:
                    assert isinstance(option.value, ast.Constant)
                    assert option.value.value is False


class Malice:
    """Leaves a mark wherever it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def torch_archive(path, payload):
    torch.save({"network.module.0.weight": payload}, path)


def object_archive(path, payload):
    with path.open("wb") as file:
        np.savez(file, x=np.array([payload] * 4, dtype=object), y=np.array([payload] * 4, dtype=object))


def named_array(path, payload):
    """An archive whose member is a bare pickle, as old versions of numpy would load it."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", pickle.dumps(payload))
        archive.writestr("y.npy", pickle.dumps(payload))


def bare_pickle(path, payload):
    path.write_bytes(pickle.dumps(payload))


def bare_array(path, payload):
    with path.open("wb") as file:
        np.save(file, np.array([payload], dtype=object), allow_pickle=True)


MALICIOUS = {
    "archive of objects": object_archive,
    "archive of pickles": named_array,
    "bare pickle": bare_pickle,
    "array of objects": bare_array,
    "torch's archive": torch_archive,
}
READERS = {
    "npz": lambda path, fitted: datasets.load(path.rename(path.with_suffix(".npz"))),
    "inputs": lambda path, fitted: datasets.load_inputs(path.rename(path.with_suffix(".npz")), shape=(4, 4)),
    "npy": lambda path, fitted: _arrays(path),
    "csv": lambda path, fitted: datasets.load(path.rename(path.with_suffix(".csv"))),
    "image": lambda path, fitted: _image(path),
    "tensors": lambda path, fitted: InvariantClassifier.load(_model(path, fitted, MODEL)),
    "record": lambda path, fitted: InvariantClassifier.load(_model(path, fitted, RUN)),
    "baseline": lambda path, fitted: write_report(_model(path, fitted, EVALUATION)),
    "score": lambda path, fitted: _score(path),
}


def _arrays(path):
    (path.parent / "arrays").mkdir()
    path.rename(path.parent / "arrays/x.npy")
    np.save(path.parent / "arrays/y.npy", Y)
    datasets.load(path.parent / "arrays")


def _image(path):
    folder = photos()(path.parent)
    path.rename(folder / "cat/bad.png")
    datasets.load(folder)


def _model(path, fitted, name):
    folder = damaged(fitted, path.parent / "run", lambda run, model: (run, model))
    path.replace(folder / name)
    return folder


def _score(path):
    store = FolderCache(path.parent / "store")
    key = NetworkKey("race", "trivial", 0, 0)
    store[key] = BlockScore(np.zeros(2), {})
    (file,) = store.folder.iterdir()
    path.replace(file)
    return FolderCache(store.folder)[key]


@pytest.mark.parametrize("kind", MALICIOUS)
@pytest.mark.parametrize("reader", READERS)
def test_malicious_files_leave_no_mark(kind, reader, tmp_path, fitted):
    mark = tmp_path / "mark"
    MALICIOUS[kind](tmp_path / "malice", Malice(mark))
    pickle.loads(pickle.dumps(Malice(mark)))
    assert mark.exists(), "the malice would work"
    mark.unlink()
    with pytest.raises((ValueError, KeyError)):
        READERS[reader](tmp_path / "malice", fitted)
    assert not mark.exists()


def test_code_in_a_record_is_text(tmp_path, fitted):
    mark = tmp_path / "mark"
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    free = ("learned", "verdict", "versions", "data")

    def change(run, model):
        settings = {**run["settings"], "data": code, "symmetries": [code]}
        texts = {part: with_text_everywhere(run[part], code) for part in free}
        return {**run, **texts, "settings": settings}, model

    folder = damaged(fitted, tmp_path / "run", change)
    clf = InvariantClassifier.load(folder)
    assert set(clf.predict(X)) <= {code}
    assert "__import__" in write_report(folder).read_text()
    assert not mark.exists()
    assert set(InvariantClassifier.load(fitted).predict(X)) <= set(Y)


def test_an_array_cannot_hide_behind_another_of_its_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        for name, array in {"x": np.zeros((1000, 7)), "x.npy": np.zeros((4, 2)), "y.npy": np.arange(4)}.items():
            with archive.open(name, "w") as member:
                np.lib.format.write_array(member, array)
    with pytest.raises(ValueError, match="two of its arrays have the same name"):
        datasets.load(tmp_path / "bomb.npz")
