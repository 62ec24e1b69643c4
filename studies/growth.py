"""How the cost grows: with examples, numbers per input, hypotheses and elements of the group; slopes on log axes.

Usage: .venv/bin/python benchmarks/growth.py [--out results]     (about five minutes, one thread)

Examples and hypotheses: CPU seconds of a whole comparison, with nothing dropped. Inputs and elements: CPU seconds
of a training step, batch 64. For inputs of 3×224×224 the peak of resident memory is given too.
"""

import argparse
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure

import invariantnet as inv
from studies.speed_table import best_times, training_step
from studies.plots import COLORS, STYLE, save
from invariantnet.inference import Evidence, gather_evidence
from invariantnet.inference.hypotheses import hypotheses
from invariantnet.nn import Symmetrized, mlp
from invariantnet._system.files import write_json

ALL = ("trivial", "hflip", "vflip", "rot180", "transpose", "flips", "rot90", "d4")


def comparison(n: int, names: tuple[str, ...], shape: tuple[int, ...] = (8, 8)) -> float:
    """CPU seconds of a comparison of the named groups, one network each, all of the same number of units."""
    x, y = torch.rand(n, int(np.prod(shape))), torch.randint(2, (n,))
    groups = hypotheses([inv.symmetry(name, shape=shape) for name in names], closed=False)

    def make(group: inv.Group) -> torch.nn.Module:
        return Symmetrized(mlp(shape, 2, 32, units=8 // group.order), [group])

    start = time.process_time()
    gather_evidence(make, groups, x, y, config=Evidence(n_networks=1, sure=0.0, margin=np.inf))
    return time.process_time() - start


def step(shape: tuple[int, ...], name: str, hidden: int = 100) -> float:
    """Seconds of a training step."""
    x, y = torch.rand(64, int(np.prod(shape))), torch.randint(10, (64,))
    group = inv.symmetry(name, shape=shape)
    call = training_step(Symmetrized(mlp(shape, 10, hidden), [group]), x, y)
    return best_times({"step": call}, repeats=5, calls=3)["step"]


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


CURVES: dict[str, tuple[str, list[int], Callable[[int], float]]] = {
    "examples": (
        "whole comparison, {trivial, rot90}",
        [2000, 8000, 32000],  # as training sets grow: in between, one more block costs a step
        lambda n: comparison(n, ("rot90",)),
    ),
    "hypotheses": ("whole comparison, 1,000 examples", [2, 4, 8], lambda k: comparison(1000, ALL[:k])),
    "elements": (
        "step on 28×28",
        [1, 2, 4, 8, 28],
        lambda g: step((28, 28), {1: "trivial", 2: "hflip", 4: "rot90", 8: "d4", 28: "cyclic"}[g]),
    ),
    "inputs": (
        "step with rot90",
        [28 * 28, 56 * 56, 112 * 112, 3 * 112 * 112, 3 * 224 * 224],
        lambda d: step(
            {
                784: (28, 28),
                3136: (56, 56),
                12544: (112, 112),
                37632: (3, 112, 112),
                150528: (3, 224, 224),
            }[d],
            "rot90",
        ),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    out = parser.parse_args().out
    torch.set_num_threads(1)
    rows = []
    for name, (what, sizes, measure) in CURVES.items():
        before = peak_megabytes()
        seconds = [measure(size) for size in sizes]
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        # The last doubling or so, where fixed costs no longer count.
        last = float(np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2]))
        rows.append(
            {
                "growth with": name,
                "measured": what,
                "sizes": sizes,
                "seconds": [round(s, 5) for s in seconds],
                "slope": round(slope, 2),
                "last slope": round(last, 2),
                "peak megabytes above the start": round(peak_megabytes() - before),
            }
        )
        print(rows[-1], flush=True)
    write_json(out / "growth.json", rows)
    draw(rows, out)


def draw(rows: list[dict], out: Path) -> None:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11, 2.8))
        for axis, row in zip(figure.subplots(1, len(rows)), rows, strict=True):
            axis.loglog(row["sizes"], row["seconds"], "o-", color=COLORS["rot90"])
            linear = np.array(row["sizes"]) * row["seconds"][-1] / row["sizes"][-1]
            axis.loglog(row["sizes"], linear, "--", color=COLORS["trivial"], linewidth=1)
            shown = row["sizes"] if len(row["sizes"]) < 5 else row["sizes"][::2]
            axis.set_xticks(shown, [f"{size:,}" for size in shown])
            axis.minorticks_off()
            axis.set(
                xlabel=row["growth with"], title=f"slope {row['slope']:.2f}, at the end {row['last slope']:.2f}"
            )
        figure.axes[0].set_ylabel("seconds; dashed: linear")
        figure.tight_layout()
        save(figure, out, "growth")


if __name__ == "__main__":
    main()
