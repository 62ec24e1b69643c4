"""The real command, as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).parent / "invariantnet"


def run(*arguments, **options):
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, timeout=300, check=False, **options
    )


def test_help_shows_every_command_and_an_example():
    result = run("--help")
    assert result.returncode == 0
    for command in ("fit", "predict", "report", "export", "symmetries"):
        assert command in result.stdout
        help_text = run(command, "--help").stdout
        assert f"invariantnet {command}" in help_text.split("options")[0]


@pytest.mark.parametrize("arguments", [["--help"], ["symmetries"], ["symmetries", "--help"], ["fit", "--help"]])
def test_quick_commands_do_not_load_torch(arguments):
    code = (
        "import sys, invariantnet.app.cli as c\n"
        f"try: c.main({arguments})\n"
        "finally: assert 'torch' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_symmetries_lists_the_catalogue():
    from invariantnet.symmetries.catalogue import CATALOGUE

    result = run("symmetries")
    assert result.returncode == 0
    for entry in CATALOGUE.values():
        assert entry.name in result.stdout
        assert entry.description in result.stdout


def test_symmetries_on_a_shape():
    lines = {
        line.split()[0]: line.split()
        for line in run("symmetries", "--shape", "28,28").stdout.splitlines()
        if line.strip()
    }
    assert lines["d4"][1:3] == ["8", "105"]
    assert lines["rot90"][1:3] == ["4", "196"]
    assert "does not act" in " ".join(lines["channels"])
    assert lines["permutations"][1] == "3.0e+29"


def test_module_is_the_same_command():
    module = subprocess.run(
        [sys.executable, "-m", "invariantnet", "symmetries"], capture_output=True, text=True, check=True
    )
    assert module.stdout == run("symmetries").stdout


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["symmetries", "--shape", "3,a"], "'3,a' is not a list of sizes"),
        (["symmetries", "--shpe", "3"], "--shpe"),
        (["grops"], "grops"),
        ([], "export, symmetries"),
        (["fit", "nowhere.npz"], "no such file"),
        (["fit", "digits:rotated", "--symmetries", "rot91"], "unknown symmetry 'rot91'"),
        (["fit", "digits:rotated", "--symmetries", ""], "at least one"),
        (["fit", "digits:rotated", "--symmetries", "channels"], "pass (C, H, W)"),
        (["fit", "digits:rotated", "--method", "magic"], "magic"),
        (["fit", "digits:rotated", "--examples", "1"], "too few"),
        (["fit", "digits:rotated", "--out", "/dev/null/x"], "choose another output folder"),
        (["fit", "digits:rotated", "--test-share", "1"], "is no share"),
        (["fit", "digits:rotated", "--hidden", "0"], "hidden is 0"),
        (["fit", "digits:rotated", "--size", "3"], "is not height and width"),
        (["predict", "nowhere", "digits"], "cannot be read"),
        (["report", "nowhere"], "cannot be read"),
        (["export", "nowhere", "model.onnx"], "cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, fault):
    result = run(*arguments)
    assert result.returncode == 2
    assert fault in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.stderr
