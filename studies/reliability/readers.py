"""Every reader of foreign bytes, with a good file for it."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from invariantnet import InvariantClassifier
from invariantnet import data as datasets
from invariantnet.estimator.persistence import FORMAT, MODEL, RUN
from invariantnet.inference.cache import FolderCache, NetworkKey
from invariantnet.inference.scoring import BlockScore

SIDE = 4
"""Height and width of the images: small files are mutated more thoroughly."""
X = np.random.default_rng(0).random((20, SIDE, SIDE)).astype(np.float32)
"""Inputs of a small problem, for files of data and of models."""
Y = np.array(["cat", "dog"] * 10)
"""Its labels."""

IMAGE_KINDS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
"""Formats of images."""
SCORED = NetworkKey("race", "trivial", 0, 0)
"""Key of the network whose score is read."""
VALUES = "values of run.json"
"""Name of the reader of single values inside run.json."""

NAMES = ("npz", "compressed npz", "npy", "csv", *(k.lower() for k in IMAGE_KINDS), RUN, MODEL, VALUES, "score")
"""The readers."""


@dataclass(frozen=True)
class Target:
    """A reader, and a good file for it."""

    good: bytes
    read: Callable[[bytes], object]


def targets(folder: Path) -> dict[str, Target]:
    """Prepare every reader.

    Args:
        folder: Where the readers' files are written.

    Returns:
        A target for each of `NAMES`.
    """
    run = folder / "run"
    InvariantClassifier(["hflip"], (SIDE, SIDE), hidden=2, n_networks=1, epochs=1, random_state=0).fit(X, Y).save(
        run
    )
    good = {name: (run / name).read_bytes() for name in (RUN, MODEL)}
    found = {
        "npz": Target(_saved(lambda f: np.savez(f, x=X, y=Y, x_test=X, y_test=Y)), _file(folder / "a.npz")),
        "compressed npz": Target(_saved(lambda f: np.savez_compressed(f, x=X, y=Y)), _file(folder / "b.npz")),
        "npy": Target(_saved(lambda f: np.save(f, X)), _arrays(folder / "arrays")),
        "csv": Target(b"a,b,label\n" + b"1.5,2,x\n-3e2,4,y\n" * 3, _file(folder / "c.csv")),
    }
    for kind in IMAGE_KINDS:
        found[kind.lower()] = Target(_picture(kind), _image(folder / f"images {kind}", f"bad.{kind.lower()}"))
    for name in (RUN, MODEL):
        found[name] = Target(good[name], _model(folder / f"run {name}", name, good))
    found[VALUES] = Target(b"\x00\x00" + str(FORMAT).encode(), _values(folder / "run of values", good))
    cache = FolderCache(folder / "cache")
    cache[SCORED] = BlockScore(np.array([1.0, 2.0]), {"x": 0.5})
    (path,) = cache.folder.iterdir()
    found["score"] = Target(path.read_bytes(), _score(path))
    return found


def _saved(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _picture(kind: str) -> bytes:
    return _saved(lambda file: Image.fromarray((X[0] * 255).astype(np.uint8)).save(file, kind))


def _file(path: Path) -> Callable[[bytes], object]:
    def read(content: bytes) -> None:
        path.write_bytes(content)
        if path.suffix == ".npz":
            datasets.load_inputs(path, shape=(SIDE, SIDE))
        datasets.load(path)

    return read


def _arrays(folder: Path) -> Callable[[bytes], object]:
    folder.mkdir()
    np.save(folder / "y.npy", Y)

    def read(content: bytes) -> None:
        # A new file each time: changing one that is mapped into memory is a fault of its own.
        (folder / "x.npy").unlink(missing_ok=True)
        (folder / "x.npy").write_bytes(content)
        datasets.load(folder)

    return read


def _image(folder: Path, name: str) -> Callable[[bytes], object]:
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        (folder / label / "good.png").write_bytes(_picture("PNG"))

    def read(content: bytes) -> None:
        (folder / "cat" / name).write_bytes(content)
        datasets.load(folder, size=(SIDE, SIDE))

    return read


def _model(folder: Path, name: str, good: dict[str, bytes]) -> Callable[[bytes], object]:
    folder.mkdir()
    for other, content in good.items():
        (folder / other).write_bytes(content)

    def read(content: bytes) -> None:
        (folder / name).write_bytes(content)
        clf = InvariantClassifier.load(folder)
        p = clf.predict_proba(X)
        assert p.shape == (len(X), len(clf.classes_))
        json.dumps([clf.posterior_.verdict, str(clf.posterior_), repr(clf)])

    return read


def _values(folder: Path, good: dict[str, bytes]) -> Callable[[bytes], object]:
    """Replace one value of the record: two bytes say which, the rest is the new value as JSON or text."""
    read_model = _model(folder, RUN, good)
    places = list(_places(json.loads(good[RUN])))

    def read(content: bytes) -> None:
        record = json.loads(good[RUN])
        *way, last = places[int.from_bytes(content[:2]) % len(places)]
        inner = record
        for step in way:
            inner = inner[step]
        try:
            inner[last] = json.loads(content[2:])
        except (ValueError, RecursionError):
            inner[last] = content[2:].decode(errors="replace")
        read_model(json.dumps(record).encode())

    return read


def _places(value: Any) -> Iterator[list[Any]]:
    """The way to every value inside, however deep."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield [step]
        yield from ([step, *rest] for rest in _places(inner))


def _score(path: Path) -> Callable[[bytes], object]:
    def read(content: bytes) -> None:
        path.write_bytes(content)
        cache = FolderCache(path.parent)
        assert SCORED not in cache or cache[SCORED].log_likelihood is not None

    return read
