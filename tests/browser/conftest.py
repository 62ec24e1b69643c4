"""A real browser, in which pages must be silent and alone."""

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def run(digits_run):
    return digits_run


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        if "CI" in os.environ:
            pytest.fail("no Chromium: `make browser` installs it")
        pytest.skip("no Chromium: `make browser` installs it")
    with sync_playwright() as playwright:
        # Inside a container Chromium's own sandbox is not to be had.
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])


@pytest.fixture
def visit(browser):
    """Open a page; afterwards it must have been silent, and alone."""
    said, asked, contexts = [], [], []

    def open_page(path, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not said
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
