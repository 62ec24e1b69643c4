"""The lock and the bill of materials say what is installed."""

import importlib.util
import json
import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("supply_chain", ROOT / "tools/supply_chain.py")
supply_chain = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(supply_chain)
PINNED = re.compile(r"[a-z0-9.-]+==[\w.!]+")


def test_every_line_of_the_lock_is_a_version():
    for text in (supply_chain.lock(), (ROOT / "requirements.lock").read_text()):
        _, *lines = text.splitlines()
        assert len(lines) > 20
        assert all(PINNED.fullmatch(line) for line in lines)
        assert any(line.startswith("torch==") for line in lines)


def test_the_bill_of_materials_names_every_component():
    bill = json.loads(supply_chain.sbom())
    assert bill["bomFormat"] == "CycloneDX"
    versions = {component["name"]: component["version"] for component in bill["components"]}
    assert versions["torch"] == metadata.version("torch")
    assert versions["scikit-learn"] == metadata.version("scikit-learn")
    assert all(component["purl"].startswith("pkg:pypi/") for component in bill["components"])


def test_what_the_package_needs_is_locked():
    locked = {line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()}
    needed = re.findall(r'^  "([a-z-]+)[><=]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert len(needed) >= 13
    assert {name.lower() for name in needed} <= locked
