"""Prose that names a file of the repository names one that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *(ROOT / "docs").rglob("*.md")]
FILE = re.compile(r"`((?:src|tests|studies|tools|results|docs|\.ci|\.github)/[\w./-]*)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)[^)]*\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_links_exist(page):
    text = page.read_text()
    assert not [name for name in FILE.findall(text) if not (ROOT / name).exists()]
    assert not [link for link in LINK.findall(text) if not (page.parent / link).exists()]
