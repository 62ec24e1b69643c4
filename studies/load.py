"""Much of everything, in bounded memory: examples, rows, classes, hypotheses, and the same again and again.

Usage: .venv/bin/python benchmarks/load.py [--share 1.0] [--only "predict many"] [--out results]

Each part runs in a process of its own, of which the peak of resident memory is taken, above that of the imports.
`--share 0.1` is the same with a tenth of the data; `--only` runs one part, and keeps the records of the others.
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

import invariantnet as inv
from invariantnet.app.cli import main as command
from invariantnet.app.runs import Settings, fit
from invariantnet.estimator.persistence import read_model_record
from invariantnet._system.files import write_json

SIDE = 8
MODEL = {"hidden": 16, "seeds": 1, "epochs": 1}


def examples(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Digits in any of four quarter turns, with noise, as many as one likes."""
    data = inv.datasets.load("digits:rotated", seed=0)
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(data.x_train), size=n)
    turns = inv.symmetry("rot90", (SIDE, SIDE)).elements.numpy()[rng.integers(4, size=n)]
    x = rng.normal(0, 0.05, (n, SIDE * SIDE)).astype(np.float32)
    x += np.take_along_axis(data.x_train[chosen], turns, 1)
    return x, data.y_train[chosen]


def fit_many(n: int) -> dict[str, Any]:
    """One fit of n examples of 8×8."""
    x, y = examples(n)
    before = resident()
    # Sixteen units are too few for so many: then the less constrained network predicts better.
    clf = inv.InvariantClassifier(["rot90"], (SIDE, SIDE), n_networks=1, epochs=1, random_state=0).fit(x, y)
    assert clf.symmetry_.name == "rot90"
    return {"examples": n, "data megabytes": x.nbytes >> 20, "peak megabytes above the data": peak() - before}


def many_classes(n: int) -> dict[str, Any]:
    """A hundred classes: a random picture each, in any of four quarter turns, with noise."""
    rng = np.random.default_rng(0)
    pictures, y = rng.random((100, SIDE, SIDE)), rng.integers(100, size=n)
    x = np.stack([np.rot90(pictures[c], k) for c, k in zip(y, rng.integers(4, size=n), strict=True)])
    x = (x + rng.normal(0, 0.2, x.shape)).astype(np.float32)
    before = resident()
    clf = inv.InvariantClassifier(["rot90"], hidden=64, random_state=0).fit(x[n // 10 :], y[n // 10 :])
    assert clf.symmetry_.name == "rot90"
    percent = round(100 * float(clf.score(x[: n // 10], y[: n // 10])))
    return {
        "examples": n,
        "classes": 100,
        "percent right": percent,
        "peak megabytes above the data": peak() - before,
    }


def many_hypotheses(n: int) -> dict[str, Any]:
    """Five candidates with all of their joins; digits in any of four flips, their three channels in any order."""
    data = inv.datasets.load("digits:flipped", seed=0)
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(data.x_train), size=n)
    shades = rng.permuted(np.tile([1.0, 0.5, 0.2], (n, 1)), axis=1)
    x = (shades[:, :, None] * data.x_train[chosen][:, None]).reshape(n, 3, SIDE, SIDE)
    x = (x + rng.normal(0, 0.05, x.shape)).astype(np.float32)
    before = resident()
    candidates = ["hflip", "vflip", "transpose", "channels", "sign"]
    clf = inv.InvariantClassifier(candidates, **MODEL, random_state=0).fit(x, data.y_train[chosen])
    assert clf.symmetry_ == inv.join(*(inv.symmetry(name, clf.input_shape_) for name in ("flips", "channels")))
    return {"examples": n, "hypotheses": len(clf.hypotheses_), "peak megabytes above the data": peak() - before}


def small_model(folder: Path) -> Path:
    fit(Settings("digits:rotated", ("rot90",), examples=300, **MODEL), folder / "run")
    return folder / "run"


def predict_many(n: int) -> dict[str, Any]:
    """DiskArray through `invariantnet predict`, from an .npy to a .csv: memory does not grow with them."""
    with tempfile.TemporaryDirectory() as scratch:
        run = small_model(Path(scratch))
        found = []
        for size in (n // 10, n):
            rows = np.lib.format.open_memmap(f"{scratch}/x.npy", "w+", np.uint8, (size, SIDE, SIDE))
            for start in range(0, size, 10**5):
                part = examples(min(10**5, size - start), start)[0].clip(0, 1) * 255
                rows[start : start + 10**5] = part.reshape(-1, SIDE, SIDE)
            found.append(separately(_predict, run, Path(scratch), size))
    return {"rows": n, "peak megabytes": found[1], "peak with a tenth": found[0],
            "bytes per row": round((found[1] - found[0]) * 2**20 / (0.9 * n))}  # fmt: skip


def _predict(run: Path, scratch: Path, n: int) -> int:
    before = resident()
    command(["predict", str(run), str(scratch), "--out", str(scratch / "p.csv")])
    with (scratch / "p.csv").open() as lines:
        assert sum(1 for _ in lines) == n + 1
    return peak() - before


def again_and_again(times: int) -> dict[str, Any]:
    """Fit, save, load, predict in a loop: memory is flat after the first rounds."""
    x, y = examples(500)
    sizes = []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(times):
            clf = inv.InvariantClassifier(["rot90"], (SIDE, SIDE), **MODEL, random_state=0).fit(x, y)
            clf.save(scratch)
            inv.InvariantClassifier.load(scratch).predict(x)
            assert read_model_record(Path(scratch)).chosen == clf.symmetry_.name
            sizes.append(resident())
    return {"rounds": times, "megabytes after a third": sizes[times // 3], "megabytes at the end": sizes[-1]}


def resident() -> int:
    """Megabytes now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def peak() -> int:
    """Megabytes at most so far; rusage would count those of the process that started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


def separately(function: Callable[..., Any], *arguments: Any) -> Any:
    """In a process of its own, whose peak of memory is its own too."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    path = options.out / "load.json"
    rows = {row["part"]: row for row in (json.loads(path.read_text()) if path.exists() else [])}
    for function, size, floor in PARTS:
        part = function.__name__.replace("_", " ")
        if options.only not in part:
            continue
        start = time.monotonic()
        n = max(floor, int(options.share * size))
        # A pool's process may not have children of its own; the prediction starts some.
        found = function(n) if function is predict_many else separately(function, n)
        rows[part] = {"part": part, **found, "seconds": round(time.monotonic() - start)}
        print(rows[part], flush=True)
        write_json(path, list(rows.values()))


PARTS = (
    (fit_many, 10**6, 20_000),
    (predict_many, 10**7, 1000),
    (many_classes, 20_000, 5000),
    (many_hypotheses, 2000, 1000),
    (again_and_again, 150, 9),
)
"""What is done, how often, and how often at least."""


if __name__ == "__main__":
    main()
