"""The lock and the bill of materials name what is installed."""

import importlib.util
import json
import re
import subprocess
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("supply_chain", ROOT / "tools/supply_chain.py")
supply_chain = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(supply_chain)
LOCKED = re.compile(r"([a-z0-9.-]+)==[\w.!]+( --hash=sha256:[0-9a-f]{64})+")


def test_every_line_of_the_lock_is_a_version_with_a_hash():
    header, *lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert header.startswith("# ")
    names = [LOCKED.fullmatch(line)[1] for line in lines]
    assert len(names) > 100
    assert names == sorted(set(names))
    assert "torch" in names
    assert not [name for name in names if name.startswith(("nvidia", "cuda", "triton", "torchvision"))]


def test_a_lock_has_no_addresses_and_no_local_labels():
    digest = "0123456789abcdef" * 4
    file = {"url": "file:///somewhere/z.whl", "archive_info": {"hashes": {"sha256": digest}}}
    report = {
        "install": [
            {"metadata": {"name": "Zoo_Keeper.x", "version": "1.2+cpu"}, "download_info": file},
            {"metadata": {"name": "zoo", "version": "3"}, "download_info": file},
            {"metadata": {"name": "invariantnet", "version": "1"}, "download_info": {"dir_info": {}}},
        ]
    }
    lines = [f"zoo==3 --hash=sha256:{digest}", f"zoo-keeper-x==1.2 --hash=sha256:{digest}"]
    assert supply_chain.locked(report) == lines


def test_the_bill_of_materials_names_every_component():
    bill = json.loads(supply_chain.sbom())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["version"] == supply_chain.PROJECT["version"]
    versions = {component["name"]: component["version"] for component in bill["components"]}
    assert versions["torch"] == metadata.version("torch")
    assert versions["scikit-learn"] == metadata.version("scikit-learn")
    assert all(component["purl"].startswith("pkg:pypi/") for component in bill["components"])


def test_what_the_package_needs_is_locked():
    locked = {line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()}
    project = supply_chain.PROJECT
    needed = sum(project["optional-dependencies"].values(), project["dependencies"])
    assert {re.match("[A-Za-z0-9-]+", requirement)[0] for requirement in needed} <= locked


def test_a_locked_installation_resolves_nothing():
    """A resolver would take a newer release from the index, and refuse it because the lock has no hash of it."""
    command = ["make", "--dry-run", "--always-make", "setup", "LOCKED=1"]
    steps = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    installs = [step for step in steps if "pip install" in step]
    assert any("--require-hashes -r requirements.lock" in step for step in installs)
    assert all("--no-deps" in step for step in installs)
    assert any("pip check" in step for step in steps)
