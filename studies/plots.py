"""The one place that draws: figures are made without global state and saved as PNG and SVG."""

import io
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from invariantnet._system.files import write_bytes

STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "invariantnet",
}

COLORS = {"rot90": "#d1495b", "flips": "#00798c", "trivial": "#6c757d", "d4": "#edae49"}
"""One colour per hypothesis, in every figure."""


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name.png` and `name.svg`; the same figure gives the same bytes."""
    paths = []
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        buffer = io.BytesIO()
        with matplotlib.rc_context(STYLE):
            figure.savefig(buffer, format=kind, dpi=160, bbox_inches="tight", metadata=metadata)
        paths.append(folder / f"{name}.{kind}")
        write_bytes(paths[-1], buffer.getvalue())
    return paths
