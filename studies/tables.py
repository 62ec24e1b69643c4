"""Table 1 and the ablation as Markdown, the paper's numbers beside ours."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from studies.calibration import summary
from studies.paper import TABLE_1
from studies.posterior import scores
from studies.results import Flat

SHIFTS = ("plain", "rotated", "flipped")


def table1(records: Flat) -> str:
    """One row per model: ours and the paper's, mean ± standard deviation over seeds."""
    rows = []
    for model in dict.fromkeys([*TABLE_1, *(r["model"] for r in records)]):
        found = [r for r in records if r["model"] == model]
        if not found:
            continue
        cells = [model]
        for shift in SHIFTS:
            cells.append(spread([r[shift] for r in found]))
            cells.append("{:.1f} ± {:.1f}".format(*TABLE_1[model][shift]) if model in TABLE_1 else "–")
        rows.append([*cells, str(len(found))])
    header = ["model", *(cell for shift in SHIFTS for cell in (f"{shift}: ours", "paper")), "seeds"]
    return markdown(header, rows)


def ablation(records: Flat) -> str:
    """One row per reading of the text: π and the three numbers."""
    rows = [["*the paper*", "–", *("{:.1f} ± {:.1f}".format(*TABLE_1["InvNet"][shift]) for shift in SHIFTS)]]
    for reading in dict.fromkeys(r["reading"] for r in records):
        found = [r for r in records if r["reading"] == reading]
        pi = np.array([r["pi"] for r in found]).mean(0)
        rows.append(
            [reading, " / ".join(f"{p:.2f}" for p in pi), *(spread([r[s] for r in found]) for s in SHIFTS)]
        )
    return markdown(["reading", "π (rot / flip / none)", *SHIFTS], rows)


def regularisation(records: Flat) -> str:
    """One row per setting: what the truth gains on every seed, and how much that differs between starts."""
    kinds = tuple(dict.fromkeys(r["data"] for r in records))
    settings = ("features", "epochs", "learning_rate", "weight_decay")
    rows = []
    for setting in dict.fromkeys(tuple(r[name] for name in settings) for r in records):
        cells = [f"{value:g}" for value in setting]
        for kind in kinds:
            found = [r for r in records if (*(r[name] for name in settings), r["data"]) == (*setting, kind)]
            cells.append(", ".join(f"{r['gain']:.0f} ± {r['spread']:.0f}" for r in found))
        rows.append(cells)
    return markdown(["features", "epochs", "rate", "decay", *kinds], rows)


def figure2(records: Flat) -> str:
    """The numbers behind the box plots."""
    rows = []
    for model in dict.fromkeys(r["model"] for r in records):
        found = [r for r in records if r["model"] == model]
        cells = [[r["accuracy"] for r in found if r["data"] == d] for d in ("permuted", "rotated", "flipped")]
        rows.append([model, *(spread(cell) if cell else "–" for cell in cells)])
    return markdown(["model", "permuted", "rotated", "flipped"], rows)


def figure1(records: Flat) -> str:
    """Where π ends: mean over seeds, and the range."""
    rows = []
    for method, data, names in dict.fromkeys((r["method"], r["data"], tuple(r["names"])) for r in records):
        found = [r for r in records if (r["method"], r["data"], tuple(r["names"])) == (method, data, names)]
        ends = np.array([r["trajectory"][-1] for r in found])
        for k, name in enumerate(names):
            low, high = ends[:, k].min(), ends[:, k].max()
            rows.append([method, data, name, f"{ends[:, k].mean():.3f}", f"{low:.3f} – {high:.3f}"])
    return markdown(["method", "data", "scheme", "π at the end", "range over seeds"], rows)


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation of a sample."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.1f} ± {deviation:.1f}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def posterior(records: Flat) -> str:
    """How often the truth was named, and with what probability."""
    rows = [
        [
            row["data"],
            str(row["n"]),
            row["candidates"],
            row["truth"],
            f"{row['method']}, {row['backbone'].upper()}",
            row["favourite"],
            f"{row['lowest']:.3f}",
            f"{row['accuracy']:.1f}",
        ]
        for row in scores(records)
    ]
    header = [
        "data",
        "n",
        "candidates",
        "truth",
        "method",
        "truth is favourite",
        "its lowest posterior",
        "accuracy",
    ]
    return markdown(header, rows)


def calibration(records: Flat) -> str:
    """Stated against observed, in three lines."""
    found = summary(records)
    rows = [
        ["data sets", f"{found['data sets']:.0f}"],
        ["favourite is the truth", f"{100 * found['right']:.1f} %"],
        ["verdicts with at least 90 %", f"{found['confident']:.0f}"],
        ["of these right", f"{100 * found['right among confident']:.1f} %"],
        ["symmetry claimed with 90 % where there is none", f"{100 * found['false claims']:.1f} %"],
    ]
    return markdown(["", ""], rows)


def opinions(records: Flat) -> str:
    """Prequential evidence and Laplace's approximation on the same data: how often right, at which cost."""
    rows = []
    asked = [r for r in records if r.get("laplace")]
    for kind in sorted({(_of_images(r), r["n"]) for r in asked}):
        found = [r for r in asked if (_of_images(r), r["n"]) == kind]
        first, second = np.mean([r["seconds"] for r in found], axis=0)
        right = [sum(_favourite(r) == r["truth"] for r in found), sum(r["laplace"] == r["truth"] for r in found)]
        agreed = [r for r in found if _favourite(r) == r["laplace"]]
        sure = sum(r["laplace"] == r["truth"] for r in agreed)
        counts = [f"{count} of {len(found)}" for count in right]
        name = "MNIST" if kind[0] else "calibration"
        rows.append([name, str(kind[1]), *counts, f"{sure} of {len(agreed)}", f"{first:.1f}", f"{second:.1f}"])
    header = ["data", "n", "prequential right", "Laplace right", "right where they agree"]
    header += ["prequential, CPU s", "Laplace, CPU s"]
    return markdown(header, rows)


def _of_images(record: dict[str, Any]) -> bool:
    return "names" in record


def _favourite(record: dict[str, Any]) -> str:
    names = record.get("names")
    return names[int(np.argmax(record["probabilities"]))] if names else record["favourite"]
