"""The real command, as a user runs it."""

import json
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
    for command in ("fit", "predict", "report", "export", "groups", "reproduce", "bench"):
        assert command in result.stdout
        help_text = run(command, "--help").stdout
        assert f"invariantnet {command}" in help_text.split("options")[0]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["groups"], ["groups", "--help"], ["fit", "--help"], ["reproduce", "--help"]]
)
def test_quick_commands_do_not_load_torch(arguments):
    code = f"import sys, invariantnet.app.cli as c\ntry: c.main({arguments})\nfinally: assert 'torch' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_groups_lists_the_catalogue():
    from invariantnet.symmetries.catalogue import ACTIONS

    result = run("groups")
    assert result.returncode == 0
    for action in ACTIONS.values():
        assert action.name in result.stdout
        assert action.description in result.stdout


def test_groups_on_a_shape():
    lines = {
        line.split()[0]: line.split()
        for line in run("groups", "--shape", "28,28").stdout.splitlines()
        if line.strip()
    }
    assert lines["d4"][1:3] == ["8", "105"]
    assert lines["rot90"][1:3] == ["4", "196"]
    assert "does not act" in " ".join(lines["channels"])
    assert lines["permutations"][1] == "3.0e+29"


def test_module_is_the_same_command():
    module = subprocess.run(
        [sys.executable, "-m", "invariantnet", "groups"], capture_output=True, text=True, check=True
    )
    assert module.stdout == run("groups").stdout


def test_figure3(tmp_path):
    result = run("reproduce", "figure3", "--out", tmp_path / "new" / "folder")
    assert result.returncode == 0, result.stderr
    png, svg = tmp_path / "new/folder/figure3.png", tmp_path / "new/folder/figure3.svg"
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "d4: 10 orbits of 64 pixels" in svg.read_text()
    assert result.stdout.split() == [str(png), str(svg)]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["groups", "--shape", "3,a"], "'3,a' is not a list of sizes"),
        (["groups", "--shpe", "3"], "--shpe"),
        (["reproduce", "figure9"], "figure9"),
        (["reproduce", "figure3", "--out", "/dev/null/x"], "choose another output folder"),
        (["grops"], "grops"),
        ([], "groups, reproduce"),
        (["fit", "nowhere.npz"], "no such file"),
        (["fit", "digits:rotated", "--symmetries", "rot91"], "unknown group 'rot91'"),
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
        (["reproduce", "ablation", "--method", "evidence"], "has no --method evidence"),
        (["reproduce", "figure1", "--seeds", "0"], "at least one"),
        (["reproduce", "figure1", "--seeds", "many"], "many"),
        (["bench", "--repeats", "0"], "at least one"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, fault):
    result = run(*arguments)
    assert result.returncode == 2
    assert fault in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.stderr


def test_bench_prints_ratios_of_one_run():
    rows = json.loads(run("bench", "--repeats", "1", "--json").stdout)
    assert {"name", "milliseconds", "reference", "ratio"} == set(rows[0])
    for row in rows:
        reference = next(r for r in rows if r["name"] == row["reference"])
        assert row["ratio"] == pytest.approx(row["milliseconds"] / reference["milliseconds"], rel=0.01, abs=1e-3)
    assert "paper layer, q = 1" in run("bench", "--repeats", "1").stdout
