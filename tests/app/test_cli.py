"""The command line, as a user types it."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from invariantnet.app.cli import main
from invariantnet.app.cli.output import show_text

COMMAND = Path(sys.executable).parent / "invariantnet"


def run(*command):
    """Run a program in a process of its own."""
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("command", ["", "fit", "discover", "predict", "report", "export", "symmetries"])
def test_help_has_an_example_of_every_command_and_fits_into_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "None" not in text
    if command:
        assert f"invariantnet {command}" in text.split("options")[0]
    else:
        assert all(name in text for name in ("fit", "discover", "predict", "report", "export", "symmetries"))


def test_help_is_wrapped_where_the_terminal_ends(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    lines = [line.strip("│ ") for line in capsys.readouterr().out.splitlines()]
    assert "Symmetries that combine them are candidates too." in " ".join(lines)
    assert not {"are", "few", "say"} & set(lines), "a line of the source, wrapped again"


VERDICT = """symmetry         elements  probability  log evidence  in words
trivial                 1        0.000         415.5  no symmetry
reversal+cyclic        10        0.845         520.2  the reverse order of entries and shifts that wrap around
inconclusive: the reverse order of entries and shifts that wrap around (reversal+cyclic), and more
next steps:
- meanwhile the network is invariant to the favourite, the reverse order of entries and shifts that wrap"""


def test_a_verdict_fits_into_a_terminal_and_stays_as_it_is_in_a_pipe(capsys, monkeypatch):
    show_text(VERDICT)
    assert capsys.readouterr().out == f"{VERDICT}\n"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_text(VERDICT)
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert said.split() == VERDICT.split()
    column = lines[0].index("in words")
    assert lines[3].startswith(" " * column + "entries and"), "the last column goes on below itself"
    assert lines[-1].startswith("  "), "and a step beside its dash"


@pytest.mark.parametrize("arguments", [["--help"], ["symmetries"], ["fit", "--help"]])
def test_quick_commands_do_not_load_torch(arguments):
    code = (
        "import sys, invariantnet.app.cli as c\n"
        f"try: c.main({arguments})\n"
        "finally: assert 'torch' not in sys.modules"
    )
    result = run(sys.executable, "-c", code)
    assert result.returncode == 0, result.stderr


def test_symmetries_lists_the_catalogue_by_either_name_of_the_program():
    from invariantnet.symmetries.catalogue import CATALOGUE

    result = run(COMMAND, "symmetries")
    assert result.returncode == 0
    for entry in CATALOGUE.values():
        assert entry.name in result.stdout
        assert entry.description in result.stdout
    assert run(sys.executable, "-m", "invariantnet", "symmetries").stdout == result.stdout


def test_symmetries_on_a_shape(capsys):
    main(["symmetries", "--shape", "28,28"])
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["d4"][1:3] == ["8", "105"]
    assert lines["rot90"][1:3] == ["4", "196"]
    assert "does not act" in " ".join(lines["channels"])
    assert lines["permutations"][1] == "3.0e+29"


def test_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"invariantnet {metadata.version('invariantnet')}\n"


def is_one_line(said, fault):
    assert fault in said
    # On a machine under load, a command that has not started after two seconds says so first, and again.
    assert len([line for line in said.strip().splitlines() if not line.startswith("starting")]) == 1
    assert "Traceback" not in said


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
        (["predict", "nowhere"], "Missing from invariantnet predict: DATA: see invariantnet predict --help."),
        (["export"], "Missing from invariantnet export: RUN and FILE: see invariantnet export --help."),
        (["predict", "nowhere", "digits"], "cannot be read"),
        (["report", "nowhere"], "cannot be read"),
        (["export", "nowhere", "model.onnx"], "cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, fault, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    is_one_line(capsys.readouterr().err, fault)


def test_the_real_command_ends_in_the_same_way():
    result = run(COMMAND, "fit", "nowhere.npz")
    assert result.returncode == 2
    is_one_line(result.stderr, "no such file")
