"""`python -m studies`: every command teaches, and bad input ends with one line and status 2."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from studies import cli
from studies.framework import Part
from studies.framework.registry import FOLDERS, NAMES, load, named
from studies.framework.running import Store

ROOT = Path(__file__).parents[2]


def test_help_is_fast_because_it_loads_neither_torch_nor_matplotlib():
    code = "import sys; from studies.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "assert not {'torch', 'matplotlib', 'sklearn'} & set(sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for command in ("status", "run", "reproduce", "bench", "docs"):
        assert command in result.stdout


def test_the_module_runs_from_the_root_of_the_repository():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "studies", "run", "nonsense"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("python -m studies: no study named 'nonsense': choose one of table1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "see python -m studies --help"),
        (["reproduce", "figure9"], "figure9"),
        (["reproduce", "posterior"], "posterior"),
        (["reproduce", "ablation", "--method", "evidence"], "has no --method evidence"),
        (["reproduce", "figure1", "--seeds", "0"], "at least one"),
        (["reproduce", "figure1", "--seeds", "many"], "many"),
        (["reproduce", "figure3", "--out", "/dev/null/x"], "choose another output folder"),
        (["run", "posterior", "--quick", "--n-jobs", "0"], "at least one"),
        (["run", "verdict", "--quick"], "verdict has no quick version"),
        (["bench", "--repeats", "0"], "at least one"),
    ],
)
def test_bad_input_is_one_line(here, capfd, arguments, words):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("python -m studies: ")
    assert words in line


def test_a_figure_without_records_is_drawn(here, capsys):
    cli.main(["reproduce", "figure3", "--out", "new/folder"])
    assert capsys.readouterr().out.split() == ["new/folder/figure3.png", "new/folder/figure3.svg"]
    assert "Rotated data set" in Path("new/folder/figure3.svg").read_text()


def test_a_quick_run_stores_records_and_shows_them(here, capfd, monkeypatch):
    from studies.inference import calibration

    def run(recipe):
        return [calibration.Record("signs", recipe.n, "sign", "sign", 0.9, "easy", 0, "sign", (1.0, 1.0))]

    few = [calibration.CalibrationRecipe("signs", truth, 100, "easy", 0) for truth in ("sign", "trivial")]
    parts = {"few": Part(lambda seed: few)}
    monkeypatch.setattr(calibration, "STUDY", replace(calibration.STUDY, run=run, parts=parts))
    cli.main(["run", "calibration", "--quick", "--n-jobs", "1"])
    said = capfd.readouterr()
    assert said.out.split()[:2] == ["runs/quick/calibration.json", "runs/quick/calibration.md"]
    assert "2 of 2 · calibration" in said.err
    assert len(json.loads(Path("runs/quick/calibration.json").read_text())) == 2
    assert "| data sets | 2 |" in Path("runs/quick/calibration.md").read_text()
    assert Path("runs/quick/calibration.png").exists()


def test_a_folder_of_studies_is_run_by_its_name():
    assert named("truth") == ("null_and_power", "simulations", "panel", "cost_of_auto")
    assert named("posterior") == ("posterior",)
    assert named("all") == NAMES
    assert not set(FOLDERS) & set(NAMES), "a name means one thing"


def test_status_lists_every_study(capsys):
    cli.main(["status", "--out", str(ROOT / "results")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.strip()][2:] == list(NAMES)
    store = Store(load("posterior"), ROOT / "results")
    (line,) = [line for line in lines if line.split()[:1] == ["posterior"]]
    counts, versions = store.count(), {piece.version for piece in store.pieces.values()}
    stale = counts["stale"] + counts["unplanned"]
    numbers = [str(n) for n in (counts["fresh"], counts["confirmed"], stale, counts["missing"]) if n]
    assert line.split()[1 : 1 + len(numbers)] == numbers
    assert all(version in line for version in versions)


def test_every_committed_file_belongs_to_a_study():
    assert {path.stem for path in (ROOT / "results").iterdir()} <= set(NAMES)


def test_every_command_that_a_page_names_exists():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "studies").rglob("*.py")]
    text = "\n".join(page.read_text() for page in pages)
    named = set(re.findall(r"python -m studies (\w+)(?: ([a-z]\w*))?", text))
    assert {command for command, _ in named} == {"status", "run", "confirm", "reproduce", "bench", "docs"}
    assert {study for command, study in named if command == "run" and study} <= {*NAMES, *FOLDERS, "all"}


def test_the_speed_table_is_printed(monkeypatch, capsys):
    from studies.cost import step_times

    monkeypatch.setattr(step_times, "best_times", lambda cases, repeats, calls: dict.fromkeys(cases, 0.002))
    cli.main(["bench", "--repeats", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert {row["ratio"] for row in rows} == {1.0}
    assert step_times.TARGETS.keys() <= {row["name"] for row in rows}
    cli.main(["bench", "--repeats", "1"])
    assert "training step of a 784-100-10 MLP" in capsys.readouterr().out


def test_interrupts_say_what_is_kept(here, capfd, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "state", interrupt)
    with pytest.raises(SystemExit) as end:
        cli.main(["reproduce", "figure1", "--quick"])
    assert end.value.code == 130
    assert "finished networks are kept: the same command goes on" in capfd.readouterr().err
