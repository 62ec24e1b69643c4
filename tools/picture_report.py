"""Fit the demo's data and take the picture of its report that README and documentation show.

Usage: .venv/bin/python tools/picture_report.py   (needs Chromium: make browser)
"""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from invariantnet.app.runs import Settings, fit

PICTURE = Path(__file__).parent.parent / "docs/pictures/report.png"


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        fit(Settings("mnist:rotated", ("rot90", "flips"), examples=3000), Path(folder))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 820, "height": 900})
        page.goto((Path(folder) / "report.html").as_uri())
        page.get_by_role("button", name="rotate").click()
        page.locator("h2", has_text="What invariance costs").evaluate(
            "h => { const hidden = [...document.querySelectorAll('section')].slice(2, -1); "
            "hidden.filter(s => s.id !== 'try').forEach(s => s.remove()); "
            "document.querySelector('section:last-of-type').remove(); }"
        )
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
