"""Damaged files, without end: every reader gets mutated bytes of good files, and may raise nothing but ValueError.

Usage: .venv/bin/python benchmarks/fuzz.py [--seconds 60] [--seed 0] [--only npz] [--atheris] [--out results]

Mutations are random; with --atheris, where that is installed, they are led by coverage instead, one reader after
the other in a process of its own, each for its share of the seconds. The bytes that crashed a reader are written
to the working folder, for a test; with --out, the counts to fuzz.json.
"""

import argparse
import contextlib
import io
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

if "--atheris" in sys.argv:
    import atheris

    instrumented = atheris.instrument_imports(include=["invariantnet"])
else:
    instrumented = contextlib.nullcontext()
with instrumented:
    from invariantnet import InvariantClassifier, data as datasets
    from invariantnet.inference.scoring import BlockScore
    from invariantnet.inference.cache import FolderCache, NetworkKey
    from invariantnet.estimator.persistence import FORMAT, MODEL, RUN
    from invariantnet._system.files import write_json

RNG = np.random.default_rng(0)
X, Y = RNG.random((20, 4, 4)).astype(np.float32), np.array(["cat", "dog"] * 10)
SCORED = NetworkKey("race", "trivial", 0, 0)
INTERESTING = [
    b"\0",
    b"\xff" * 4,
    b"\x80",
    b"\x7f\xff\xff\xff",
    b"9" * 30,
    b"-1",
    b"NaN",
    b"null",
    b"[[[[",
    b"1e999",
    b'"',
]


@dataclass(frozen=True)
class Target:
    """A reader, and a good file for it."""

    good: bytes
    read: Callable[[bytes], object]


def targets(folder: Path) -> dict[str, Target]:
    """Every reader of foreign bytes; `folder` is where their files are written."""
    run = folder / "run"
    InvariantClassifier(["hflip"], (4, 4), hidden=2, n_networks=1, epochs=1, random_state=0).fit(X, Y).save(run)
    good = {name: (run / name).read_bytes() for name in (RUN, MODEL)}
    found = {
        "npz": Target(_saved(lambda f: np.savez(f, x=X, y=Y, x_test=X, y_test=Y)), _file(folder / "a.npz")),
        "compressed npz": Target(_saved(lambda f: np.savez_compressed(f, x=X, y=Y)), _file(folder / "b.npz")),
        "npy": Target(_saved(lambda f: np.save(f, X)), _arrays(folder / "arrays")),
        "csv": Target(b"a,b,label\n" + b"1.5,2,x\n-3e2,4,y\n" * 3, _file(folder / "c.csv")),
    }
    for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"):
        picture = Image.fromarray((X[0] * 255).astype(np.uint8))
        content = _saved(lambda f, p=picture, k=kind: p.save(f, k))
        found[kind.lower()] = Target(content, _image(folder / f"images {kind}", f"bad.{kind.lower()}"))
    for name in (RUN, MODEL):
        found[name] = Target(good[name], _model(folder / f"run {name}", name, good))
    found["values of run.json"] = Target(b"\x00\x00" + str(FORMAT).encode(), _values(folder / "run of values", good))
    store = FolderCache(folder / "store")
    store[SCORED] = BlockScore(np.array([1.0, 2.0]), {"x": 0.5})
    (path,) = store.folder.iterdir()
    found["score"] = Target(path.read_bytes(), _score(path))
    return found


def mutate(content: bytes, rng: random.Random) -> bytes:
    """A few random changes: bits, bytes, numbers, pieces cut, doubled or moved."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        length = min(rng.choice((1, 1, 2, 4, 16, 64)), len(data) - at)
        kind = rng.randrange(6)
        if kind == 0 and length:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + length] = rng.randbytes(length)
        elif kind == 2:
            word = rng.choice(INTERESTING)
            data[at : at + len(word) * rng.randrange(2)] = word
        elif kind == 3:
            del data[at : at + length]
        elif kind == 4:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other : other + length]
        elif rng.random() < 0.1:
            del data[at:]
    return bytes(data)


def crash(target: Target, content: bytes) -> str | None:
    """What came out of a reader that is no ValueError of one line, if anything did."""
    try:
        target.read(content)
    except ValueError as error:
        return None if str(error).strip() else "a ValueError that says nothing"
    except Exception:
        return traceback.format_exc()
    return None


def _saved(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _file(path: Path) -> Callable[[bytes], object]:
    def read(content: bytes) -> None:
        path.write_bytes(content)
        if path.suffix == ".npz":
            datasets.load_inputs(path, shape=(4, 4))
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
        Image.fromarray((X[0] * 255).astype(np.uint8)).save(folder / label / "good.png")

    def read(content: bytes) -> None:
        (folder / "cat" / name).write_bytes(content)
        datasets.load(folder, size=(4, 4))

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
    """One value of the record, of which two bytes say which, is replaced by the JSON or the text that follows."""
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
        assert SCORED not in (store := FolderCache(path.parent)) or store[SCORED].log_likelihood is not None

    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chosen = {n: t for n, t in targets(Path(folder)).items() if options.only in (None, n)}
        if options.atheris and options.only:
            led_by_coverage(chosen[options.only], options.seconds)
        tried, crashed = one_by_one(list(chosen), options) if options.atheris else at_random(chosen, options)
    if options.out:
        way = "led by coverage" if options.atheris else "at random"
        path = options.out / "fuzz.json"
        rows = json.loads(path.read_text()) if path.exists() else []
        rows = [row for row in rows if row["mutations"] != way]
        rows += [{"mutations": way, "reader": n, "files": tried[n], "crashes": crashed[n]} for n in tried]
        write_json(path, rows)
    print(f"{sum(tried.values()):,} files, {sum(crashed.values())} crashes; {tried}")
    sys.exit(any(crashed.values()))


Counts = dict[str, int]


def at_random(chosen: dict[str, Target], options: argparse.Namespace) -> tuple[Counts, Counts]:
    rng = random.Random(options.seed)
    tried, crashed = dict.fromkeys(chosen, 0), dict.fromkeys(chosen, 0)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for name, target in chosen.items():
            content = mutate(target.good, rng)
            tried[name] += 1
            if fault := crash(target, content):
                crashed[name] += 1
                Path(f"crash-{name.replace(' ', '-')}-{tried[name]}").write_bytes(content)
                print(f"{name}: {fault}", flush=True)
    return tried, crashed


def one_by_one(names: list[str], options: argparse.Namespace) -> tuple[Counts, Counts]:
    """Every reader in a process of its own: libFuzzer ends the one that it runs in."""
    tried, crashed = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for name in names:
        command = [sys.executable, __file__, "--atheris", "--only", name]
        seconds = str(max(1, options.seconds / len(names)))
        done = subprocess.run([*command, "--seconds", seconds], stderr=subprocess.PIPE, text=True, check=False)
        tried[name] = int(re.findall(r"^(?:#|stat::number_of_executed_units: )(\d+)", done.stderr, re.M)[-1])
        if done.returncode:
            crashed[name] = 1
            print(f"{name}: {done.stderr}", flush=True)
    return tried, crashed


def led_by_coverage(target: Target, seconds: float) -> None:
    def once(content: bytes) -> None:
        if fault := crash(target, content):
            raise RuntimeError(fault)

    corpus = Path(tempfile.mkdtemp())
    (corpus / "good").write_bytes(target.good)
    limits = [f"-max_total_time={int(seconds)}", "-max_len=4096", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], str(corpus), *limits], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
