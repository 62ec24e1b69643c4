"""Write the documentation pages that come from `results/`, and copy the figures they show.

Usage: .venv/bin/python tools/write_docs.py
"""

import shutil
from pathlib import Path

from invariantnet.experiments.page import reproduction_page
from invariantnet.storage import write_text

ROOT = Path(__file__).parent.parent
FIGURES = ("figure1", "figure2", "figure3")


def main() -> None:
    """Bring `docs/` up to date."""
    for name in FIGURES:
        shutil.copy(ROOT / "results" / f"{name}.png", ROOT / "docs/pictures" / f"{name}.png")
    write_text(ROOT / "docs/reproduction.md", reproduction_page(ROOT / "results"))


if __name__ == "__main__":
    main()
