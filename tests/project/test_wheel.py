"""The wheel: what is in it, what it needs, and that it works outside the repository."""

import email
import json
import os
import site
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command, cwd):
    elsewhere = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=elsewhere, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


def test_contents_and_metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(about))
    folders = {name.partition("/")[0] for name in names}
    assert folders == {"invariantnet", about.partition("/")[0]}, "only the package, and no studies or tests"
    assert {"invariantnet/py.typed", "invariantnet/data/mnist.npz", "invariantnet/data/MNIST.md"} <= set(names)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert metadata["Version"] == project["version"]
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert len(needed) == len(project["dependencies"])
    assert not [line for line in needed if line.startswith("matplotlib")], "only the studies draw"


def test_works_outside_the_repository(wheel, tmp_path):
    venv.create(tmp_path / "new")
    python = tmp_path / "new/bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    # Its dependencies are those of this environment; its own code is not.
    (own,) = (tmp_path / "new/lib").glob("python*/site-packages")
    (own / "dependencies.pth").write_text(site.getsitepackages()[0])
    home = run(python, "-c", "import invariantnet; print(invariantnet.__file__)", cwd=tmp_path)
    assert Path(home.strip()).is_relative_to(own)
    command = tmp_path / "new/bin/invariantnet"
    assert "rot90" in run(command, "symmetries", cwd=tmp_path)
    options = ("--symmetries", "hflip", "--examples", "200", "--hidden", "8", "--n-networks", "1", "--epochs", "1")
    run(command, "fit", "mnist:flipped", *options, cwd=tmp_path)
    assert json.loads((tmp_path / "runs/fit/run.json").read_text())["kind"] == "InvariantClassifier"
    assert "Try it" in (tmp_path / "runs/fit/report.html").read_text()
