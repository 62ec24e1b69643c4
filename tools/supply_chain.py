"""Write a lock with the hash of every installed file, or a bill of materials (CycloneDX).

Usage: .venv/bin/python tools/supply_chain.py lock > requirements.lock     (make lock; asks the index)
       .venv/bin/python tools/supply_chain.py sbom > sbom.json             (make sbom; lists what is installed)
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS: str = PROJECT["name"]
INSTALLERS = {"pip", "setuptools", "wheel"}
HEADER = """\
# The files that the tests ran with: Linux on x86-64, CPython 3.11, the CPU build of torch. LOCKED=1 make setup
"""


def installed() -> dict[str, metadata.Distribution]:
    """Map the normalised name of every distribution, except this project and installers, to its metadata."""
    found = {_normalised(d.metadata["Name"]): d for d in metadata.distributions()}
    return {name: found[name] for name in sorted(found) if name not in {OURS, *INSTALLERS}}


def lock() -> str:
    """Ask pip what it would install into a new environment, without installing it."""
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        report = Path(scratch) / "report.json"
        command = [f"{scratch}/bin/python", "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run(
            [*command, "--report", report, "-r", "requirements-dev.txt"], cwd=ROOT, stdout=sys.stderr, check=True
        )
        return HEADER + "\n".join(locked(json.loads(report.read_text())))


def locked(report: dict[str, Any]) -> list[str]:
    """Make a sorted line per file: name, version without a local label such as `+cpu`, and hash; no address."""
    lines = []
    for item in report["install"]:
        about, source = item["metadata"], item["download_info"]
        if "archive_info" in source:  # this project itself comes from a folder
            version = about["version"].partition("+")[0]
            digest = source["archive_info"]["hashes"]["sha256"]
            lines.append(f"{_normalised(about['name'])}=={version} --hash=sha256:{digest}")
    return sorted(lines, key=lambda line: line.partition("==")[0])


def sbom() -> str:
    """List every installed component with its licence, in the format that scanners read."""
    components = [
        {
            "type": "library",
            "name": name,
            "version": d.version,
            "purl": f"pkg:pypi/{name}@{d.version.partition('+')[0]}",
            "licenses": [{"license": {"name": licence}}] if (licence := _licence(d)) else [],
        }
        for name, d in installed().items()
    ]
    project = {"type": "library", "name": OURS, "version": PROJECT["version"]}
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": project}}
    return json.dumps({**document, "components": components}, indent=1)


def _normalised(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _licence(distribution: metadata.Distribution) -> str | None:
    about = distribution.metadata
    said = about.get("License-Expression") or about.get("License") or ""
    classifiers = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if c.startswith("License")]
    return next((text for text in (said.strip().split("\n")[0], *classifiers) if text), None)


if __name__ == "__main__":
    print({"lock": lock, "sbom": sbom}[sys.argv[1]]())
