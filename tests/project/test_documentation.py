"""Every code block of the README and of the documentation runs, and prints what it says."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from fresh_process import run_code
from PIL import Image

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```(\w*)\n(.*?)```(?:\s*```\n(.*?)```)?", re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    return [(code, output) for lang, code, output in BLOCK.findall(page.read_text()) if lang == language]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path):
    code = "\n".join(code for code, _ in blocks(page, "python"))
    status, printed, errors = run_code(code, tmp_path)
    assert status == 0, errors
    expected = "".join(output for _, output in blocks(page, "python"))
    if expected:
        assert printed == expected
    for line in code.splitlines():
        said = re.match(r"print\(.*\)\s+# (.*)", line)
        if said:
            assert said[1].split(":")[0].split(" orbits")[0].split(", sparse")[0] in printed
    if page.name in ("README.md", "quick-start.md"):
        return  # their commands need photos, and have a test of their own
    for command in commands_of(str(page)):
        run_briefly(command, tmp_path)


def run_briefly(command: list[str], folder: Path) -> None:
    """Run a command as it is written, except that networks train briefly: the Python beside it has the verdict."""
    code = f"""
from invariantnet.app.cli import main
from problems import quickly_compared

with quickly_compared():
    main({command[1:]})
"""
    status, _, errors = run_code(code, folder)
    assert status == 0, errors


def test_readme_commands_are_targets_of_the_makefile():
    commands = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert commands == ["demo", "test"]
    for command in commands:
        plan = subprocess.run(["make", "-n", command], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert plan


def photos(folder: Path) -> None:
    for turn, name in enumerate(("lying", "standing")):
        (folder / name).mkdir(parents=True)
        for i in range(30):
            stripes = np.random.default_rng(i).integers(0, 255, (6, 1), dtype=np.uint8).repeat(6, axis=1)
            Image.fromarray(np.rot90(stripes, turn)).save(folder / name / f"{i}.png")


def commands_of(page: str) -> list[list[str]]:
    lines = [line for code, _ in blocks(ROOT / page, "") for line in code.splitlines()]
    return [
        line.replace(".venv/bin/", "").split() for line in lines if re.match(r"(\.venv/bin/)?invariantnet", line)
    ]


def test_commands_run_as_they_are_written(tmp_path):
    photos(tmp_path / "photos")
    photos(tmp_path / "new_photos")
    commands = commands_of("README.md")
    assert commands == commands_of("docs/quick-start.md")
    assert [command[1] for command in commands] == ["fit", "predict", "export"]
    for command in commands:
        run_briefly(command, tmp_path)
    assert (tmp_path / "runs/photos/report.html").exists()
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 61
    assert (tmp_path / "model.onnx").exists()


def test_demo_of_the_readme(tmp_path):
    recipe = re.search(r"^demo:.*\n\t(.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    run_briefly(recipe[1].replace("--examples 3000", "--examples 300").split(), tmp_path)
    assert (tmp_path / "runs/demo/report.html").exists()
