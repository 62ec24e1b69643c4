"""What is installed, as a lock of versions or as a bill of materials (CycloneDX).

Usage: .venv/bin/python tools/supply_chain.py lock > requirements.lock
       .venv/bin/python tools/supply_chain.py sbom > sbom.json
"""

import json
import sys
from importlib import metadata

OURS, TOOLS = "invariantnet", {"pip", "setuptools", "wheel"}


def installed() -> dict[str, metadata.Distribution]:
    """Everything beside ourselves and the installer, by its usual name."""
    found = {d.metadata["Name"].lower().replace("_", "-"): d for d in metadata.distributions()}
    return {name: found[name] for name in sorted(found) if name not in {OURS, *TOOLS}}


def lock() -> str:
    """Versions as pip takes them; without the label of a local build."""
    lines = [f"{name}=={d.version.partition('+')[0]}" for name, d in installed().items()]
    return "\n".join(
        ["# The versions that the tests ran with: pip install -c requirements.lock invariantnet", *lines]
    )


def sbom() -> str:
    """The same with licences, in the format that scanners read."""
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
    us = {"type": "library", "name": OURS, "version": metadata.version(OURS)}
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": us}}
    return json.dumps({**document, "components": components}, indent=1)


def _licence(distribution: metadata.Distribution) -> str | None:
    about = distribution.metadata
    said = about.get("License-Expression") or about.get("License") or ""
    classifiers = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if c.startswith("License")]
    return next((text for text in (said.strip().split("\n")[0], *classifiers) if text), None)


if __name__ == "__main__":
    print({"lock": lock, "sbom": sbom}[sys.argv[1]]())
