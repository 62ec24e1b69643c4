"""Write what the documentation and the README take from `results/`, and copy the figures they show.

Usage: .venv/bin/python tools/write_docs.py
"""

import re
import shutil
from pathlib import Path

from invariantnet._system.files import write_text
from studies.beyond import beyond_page, headline
from studies.page import reproduction_page
from studies.reliability import reliability_page
from studies.speed import speed_page

ROOT = Path(__file__).parent.parent
FIGURES = (
    "figure1",
    "figure2",
    "figure3",
    "posterior",
    "calibration",
    "growth",
    "schemes",
    "learning",
    "uncertainty",
)


def readme() -> str:
    """The README with its tables as the results have them."""
    text = (ROOT / "README.md").read_text()
    for name, table in headline(ROOT / "results").items():
        text = re.sub(f"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{table}\g<2>", text, flags=re.DOTALL)
    return text


def main() -> None:
    """Bring `docs/` and the README up to date."""
    for name in FIGURES:
        shutil.copy(ROOT / "results" / f"{name}.png", ROOT / "docs/pictures" / f"{name}.png")
    write_text(ROOT / "docs/reproduction.md", reproduction_page(ROOT / "results"))
    write_text(ROOT / "docs/beyond.md", beyond_page(ROOT / "results"))
    write_text(ROOT / "docs/speed.md", speed_page(ROOT / "results"))
    write_text(ROOT / "docs/reliability.md", reliability_page(ROOT / "results"))
    write_text(ROOT / "README.md", readme())


if __name__ == "__main__":
    main()
