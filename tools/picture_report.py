"""Fit the demo's data and take the picture of its report that README and documentation show.

Usage: .venv/bin/python tools/picture_report.py   (needs Chromium: make browser)
"""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from invariantnet.app.runs import Settings, fit

PICTURE = Path(__file__).parent.parent / "docs/pictures/report.png"


def take(report: Path, picture: Path = PICTURE) -> None:
    """Take a picture of the parts of a report that a README shows.

    Args:
        report: The page.
        picture: File to write.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 820, "height": 900})
        page.goto(report.as_uri())
        page.get_by_role("button", name="rotate").click()
        page.evaluate(
            "document.querySelectorAll('section').forEach(s => ['symmetry', 'try'].includes(s.id) || s.remove())"
        )
        page.evaluate(
            "document.querySelectorAll('#symmetry details, #symmetry details ~ *, nav').forEach(e => e.remove())"
        )
        page.screenshot(path=picture, full_page=True)
        browser.close()


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        fit(Settings("mnist:rotated", ("rot90", "flips"), examples=3000), Path(folder))
        take(Path(folder) / "report.html")


if __name__ == "__main__":
    main()
