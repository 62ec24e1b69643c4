"""Data larger than memory: `invariantnet fit` on a file of 10 GB, and the memory that it takes.

Usage: .venv/bin/python benchmarks/memory.py [--gigabytes 10] [--folder DIR] [--out results]    (some minutes)

Makes images of 3×128×128 bytes, noise of which either the upper or the lower half is darker, and deletes them
afterwards. The fit is a process of its own that may have 2 GB of data (RLIMIT_DATA): hypotheses {none, rot90}, one
network each, then one epoch of the chosen network and one of the plain one. Resident memory is the process' own
peak, with mapped files; its anonymous part is sampled.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from invariantnet._system.files import write_json

SHAPE = (3, 128, 128)
LIMIT = 2 * 10**9
BLOCK = 1000


def make(folder: Path, gigabytes: float) -> int:
    """Write `x.npy` and `y.npy` block by block."""
    n = int(gigabytes * 1e9 / np.prod(SHAPE))
    rng = np.random.default_rng(0)
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.uint8, shape=(n, *SHAPE))
    y = rng.integers(0, 2, n)
    for start in range(0, n, BLOCK):
        labels = y[start : start + BLOCK]
        part = np.frombuffer(rng.bytes(len(labels) * int(np.prod(SHAPE))), np.uint8).reshape(-1, *SHAPE).copy()
        part[labels == 0, :, :64] //= 2
        part[labels == 1, :, 64:] //= 2
        x[start : start + BLOCK] = part
    np.save(folder / "y.npy", y)
    return n


def status(process: int) -> dict[str, int]:
    """Megabytes, as the system counts them."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    found = (line.split() for line in lines if line.startswith(("VmHWM", "RssAnon")))
    return {name.strip(":"): int(kilobytes) // 1000 for name, kilobytes, _ in found}


def fit(folder: Path) -> dict[str, float]:
    """Run the fit and watch it."""
    command = [sys.executable, "-m", "invariantnet", "fit", str(folder), "--symmetries", "rot90", "--n-networks", "1"]
    command += ["--epochs", "1", "--hidden", "16", "--test-share", "0.05", "--out", str(folder / "run")]
    start, seen = time.perf_counter(), {"VmHWM": 0, "RssAnon": 0}
    child = subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT)),
    )
    while child.poll() is None:
        seen = {name: max(value, status(child.pid).get(name, 0)) for name, value in seen.items()}
        time.sleep(0.2)
    if child.returncode:
        raise SystemExit(f"the fit ended with status {child.returncode}")
    return {
        "seconds": round(time.perf_counter() - start),
        "peak_resident_megabytes": seen["VmHWM"],
        "peak_anonymous_megabytes": seen["RssAnon"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        examples = make(folder, options.gigabytes)
        size = (folder / "x.npy").stat().st_size / 1e9
        found = {"examples": examples, "shape": list(SHAPE), "gigabytes": round(size, 1), **fit(folder)}
    finally:
        shutil.rmtree(folder)
    print(found)
    write_json(options.out / "memory.json", [found])


if __name__ == "__main__":
    main()
