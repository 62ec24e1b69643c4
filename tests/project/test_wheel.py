"""The wheel, installed elsewhere and run outside the repository, has everything."""

import json
import site
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command, cwd):
    result = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_wheel_works_outside_the_repository(tmp_path):
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "new", with_pip=True)
    python = tmp_path / "new/bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    # Its dependencies are those of this environment; its own code is not.
    (own,) = (tmp_path / "new/lib").glob("python*/site-packages")
    (own / "dependencies.pth").write_text(site.getsitepackages()[0])
    home = run(python, "-c", "import invariantnet; print(invariantnet.__file__)", cwd=tmp_path)
    assert Path(home.strip()).is_relative_to(own)
    command = tmp_path / "new/bin/invariantnet"
    assert "rot90" in run(command, "groups", cwd=tmp_path)
    options = ("--symmetries", "hflip", "--examples", "200", "--hidden", "8", "--n-networks", "1", "--epochs", "1")
    run(command, "fit", "mnist:flipped", *options, cwd=tmp_path)
    assert json.loads((tmp_path / "runs/fit/run.json").read_text())["kind"] == "InvariantClassifier"
    assert "Try it" in (tmp_path / "runs/fit/report.html").read_text()
