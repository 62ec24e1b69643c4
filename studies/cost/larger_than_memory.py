"""How much memory does `invariantnet fit` take on a file of 10 GB?

The images have 3×128×128 bytes: noise whose upper or lower half is darker. The fit is a process of its own that
may have 2 GB of data (RLIMIT_DATA): {none, rot90} with MLPs, one network each, then one epoch of the chosen
network and one of the plain one. Resident memory is the process' own peak, with mapped files; its anonymous part
is sampled.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from studies.framework import Claim, Part, Study

SHAPE = (3, 128, 128)
"""Channels, height and width: 49 kB an image, as in a small photo."""
LIMIT = 2 * 10**9
"""Bytes of data that the fit may have: a fifth of the file."""
BLOCK = 1000
"""Images that are made at once."""
PAUSE = 0.2
"""Seconds between two samples of the memory."""


@dataclass(frozen=True)
class FileRecipe:
    """One file; its folder is a temporary one, so `TMPDIR` decides the disk."""

    gigabytes: float = 10.0
    seed: int = 0


@dataclass(frozen=True)
class Record:
    """What one fit took."""

    examples: int
    shape: tuple[int, ...]
    gigabytes: float
    seconds: int
    peak_resident_megabytes: int
    peak_anonymous_megabytes: int


def run(recipe: FileRecipe) -> list[Record]:
    """Make the file, fit, and remove the file."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        examples = make(folder, recipe)
        size = (folder / "x.npy").stat().st_size / 1e9
        return [Record(examples, SHAPE, round(size, 1), *fit(folder))]


def make(folder: Path, recipe: FileRecipe) -> int:
    """Write `x.npy` and `y.npy` block by block; return the number of images."""
    size = int(np.prod(SHAPE))
    n = int(recipe.gigabytes * 1e9 / size)
    rng = np.random.default_rng(recipe.seed)
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.uint8, shape=(n, *SHAPE))
    y = rng.integers(0, 2, n)
    for start in range(0, n, BLOCK):
        labels = y[start : start + BLOCK]
        part = np.frombuffer(rng.bytes(len(labels) * size), np.uint8).reshape(-1, *SHAPE).copy()
        part[labels == 0, :, :64] //= 2
        part[labels == 1, :, 64:] //= 2
        x[start : start + BLOCK] = part
    np.save(folder / "y.npy", y)
    return n


def fit(folder: Path) -> tuple[int, int, int]:
    """Run the fit; return its seconds, and its peaks of resident and anonymous memory in megabytes."""
    options = [
        "--symmetries",
        "rot90",
        "--backbone",
        "mlp",
        "--n-networks",
        "1",
        "--epochs",
        "1",
        "--hidden",
        "16",
    ]
    command = [sys.executable, "-m", "invariantnet", "fit", str(folder), *options, "--test-share", "0.05"]
    start, resident, anonymous = time.perf_counter(), 0, 0
    child = subprocess.Popen(
        [*command, "--out", str(folder / "run")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT)),
    )
    while child.poll() is None:
        resident = max(resident, _megabytes(child.pid, "VmHWM"))
        anonymous = max(anonymous, _megabytes(child.pid, "RssAnon"))
        time.sleep(PAUSE)
    if child.returncode:
        raise ValueError(f"the fit ended with status {child.returncode}: its messages are above.")
    return round(time.perf_counter() - start), resident, anonymous


def _megabytes(process: int, what: str) -> int:
    """Memory as the system counts it; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1000 for line in lines if line.startswith(what)), 0)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    (r,) = records
    shape = "×".join(map(str, r.shape))
    return {
        "bounded": Claim(
            f"`invariantnet fit` on {r.examples:,} images of {shape} bytes, a file of {r.gigabytes:.0f} GB: "
            f"resident memory peaked at {r.peak_resident_megabytes} MB (aimed at: 2,000), "
            f"{r.peak_anonymous_megabytes} MB of it the process' own, in {r.seconds / 60:.0f} minutes on a busy "
            "core.",
            r.peak_resident_megabytes <= 2000,
        ),
        "largest": Claim(
            "These are extrapolations: the largest problems run here are 60,000 images of 28×28 to the end, and "
            f"the file of {r.gigabytes:.0f} GB for one epoch."
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"file": Part(lambda _: [FileRecipe()])},
    run=run,
    quick=lambda recipe: replace(recipe, gigabytes=0.2),
    claims=claims,
    alone=True,
    depends_on=("app", "data", "estimator", "inference", "nn", "report", "symmetries", "training"),
)
