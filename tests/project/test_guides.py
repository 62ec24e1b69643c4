"""Prose names files that exist, and commands that can be given."""

import re
from pathlib import Path

import pytest
import tyro

from invariantnet.app import cli
from studies import cli as studies_cli

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *(ROOT / "docs").rglob("*.md")]
FILE = re.compile(r"`((?:src|tests|studies|tools|results|docs|\.ci|\.github)/[\w./-]*)`")
COMMAND = re.compile(r"`(invariantnet|python -m studies) ([^`…]+)`")
PROGRAMS = {"invariantnet": cli.Command, "python -m studies": studies_cli.Command}
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)[^)]*\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_links_exist(page):
    text = page.read_text()
    named = [name for name in FILE.findall(text) if "NAME" not in name]
    assert not [name for name in named if not (ROOT / name).exists()]
    assert not [link for link in LINK.findall(text) if not (page.parent / link).exists()]


def can_be_given(program: str, arguments: list[str]) -> bool:
    try:
        tyro.cli(PROGRAMS[program], args=arguments)
    except SystemExit as end:
        return end.code == 0
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_can_be_given(page):
    if page.name == "CHANGELOG.md":
        return  # it names commands of the past
    for program, words in COMMAND.findall(page.read_text()):
        arguments = words.replace("NAME", "posterior").split()
        # A command that is only mentioned has no arguments; asking for its help shows that it is there.
        if len(arguments) == 1:
            arguments.append("--help")
        assert can_be_given(program, arguments), words
