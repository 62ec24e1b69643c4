"""One version, one changelog, one list of supported Pythons: what states them agrees."""

import re
import tomllib
from collections import Counter
from datetime import date
from pathlib import Path

import yaml
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SECTION = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def releases() -> list[tuple[str, str]]:
    """List the dated sections of the changelog, newest first."""
    first, *dated = SECTION.findall((ROOT / "CHANGELOG.md").read_text())
    assert first == ("Unreleased", "")
    return dated


def test_changelog_lists_releases_from_new_to_old():
    versions = [Version(version) for version, _ in releases()]
    days = [date.fromisoformat(day) for _, day in releases()]
    assert versions == sorted(versions, reverse=True)
    assert days == sorted(days, reverse=True)
    assert set(re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)) <= KINDS


def test_no_change_belongs_to_two_releases():
    text = (ROOT / "CHANGELOG.md").read_text()
    entries = [entry for entry in re.split(r"^(?=- )|\n\n", text, flags=re.MULTILINE) if entry.startswith("- ")]
    repeated = [entry for entry, count in Counter(entry.strip() for entry in entries).items() if count > 1]
    assert len(entries) > 100
    assert not repeated


def test_citation_names_the_last_release():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    version, day = releases()[0]
    assert (citation["version"], citation["date-released"]) == (version, date.fromisoformat(day))
    assert citation["license"] == PROJECT["license"]


def test_a_development_version_comes_after_the_last_release():
    version, last = Version(PROJECT["version"]), Version(releases()[0][0])
    assert version > last if version.is_devrelease else version == last


def test_hosted_checks_run_on_every_supported_python():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    prefix = "Programming Language :: Python :: "
    supported = [line.removeprefix(prefix) for line in PROJECT["classifiers"] if line.startswith(prefix)]
    checks = workflow["jobs"]["checks"]
    assert checks["strategy"]["matrix"]["python"] == supported
    assert PROJECT["requires-python"] == f">={supported[0]}"
    hosted = [step.get("run", "") for step in checks["steps"]]
    for command in re.findall("^make .*$", (ROOT / ".ci/run").read_text(), re.MULTILINE):
        assert command in hosted
