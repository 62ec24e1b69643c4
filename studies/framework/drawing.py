"""Figures: one style, one colour per hypothesis, and files that name what they were drawn from."""

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib
from PIL import Image

from invariantnet._system.files import write_bytes
from studies.framework.freshness import meaning
from studies.framework.records import AnyStudy

STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "invariantnet",
}
"""Settings of matplotlib: no frame, text that stays text, the same bytes every time."""

COLORS = {"rot90": "#d1495b", "flips": "#00798c", "trivial": "#6c757d", "d4": "#edae49"}
"""One colour per hypothesis, in every figure."""

OTHER = "#9b89b3"
"""Colour of all other hypotheses."""

DOTS_PER_INCH = 160
"""Sharp on a screen of twice the usual density."""

SOURCE = "Source"
"""Name of the text in a PNG file that says what it was drawn from."""


def draw(
    study: AnyStudy, records: Sequence[Any], folder: Path, kinds: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Draw a study's figure; the same records give the same bytes.

    Args:
        study: A study with a figure.
        records: What to draw.
        folder: Where the files go.
        kinds: Formats of the files.

    Returns:
        The files.
    """
    assert study.draw is not None
    metadata = {"png": {"Software": None, SOURCE: drawn_from(study, records)}, "svg": {"Date": None}}
    paths = []
    with matplotlib.rc_context(STYLE):
        figure = study.draw(records)
        for kind in kinds:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, bbox_inches="tight", metadata=metadata[kind])
            paths.append(folder / f"{study.name}.{kind}")
            write_bytes(paths[-1], buffer.getvalue())
    return paths


def drawn_from(study: AnyStudy, records: Sequence[Any]) -> str:
    """Digest of the records and of the code that draws them."""
    parts = [json.dumps([asdict(r) for r in records]), meaning(Path(study.file)), meaning(Path(__file__))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_current(path: Path, study: AnyStudy, records: Sequence[Any]) -> bool:
    """Say whether a PNG file was drawn from these records by this code."""
    if not path.exists():
        return False
    with Image.open(path) as picture:
        return picture.info.get(SOURCE) == drawn_from(study, records)
