import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies import figures, results, tables
from studies.paper import TABLE_1
from studies.recipes import READINGS, quick
from studies.reproduce import EXPERIMENTS
from studies.run import FORMAT, build, load_record, run_network

COMMAND = Path(sys.executable).parent / "invariantnet"
ALL = ["figure1", "figure2", "table1", "ablation", "identity"]


def recipes_of(name, seeds):
    return [r for seed in range(seeds) for r in EXPERIMENTS[name].of_seed(seed)]


def test_recipes_are_the_papers():
    recipes = {name: recipes_of(name, 5) for name in ALL}
    assert [len(recipes[name]) for name in ALL] == [25, 75, 25, 3 * len(READINGS), 12]
    assert {r.hidden for r in recipes["figure1"] + recipes["figure2"]} == {100}
    assert {r.model: r.hidden for r in recipes["table1"]} == {
        "InvNet": 200,
        **dict.fromkeys(TABLE_1.keys() - {"InvNet"}, 100),
    }
    keys = {r.key for rs in recipes.values() for r in rs}
    figure2 = {r.key for r in recipes["figure2"]}
    assert sum(r.key in figure2 for r in recipes["figure1"]) == 20, "figures 1 and 2 share their runs"
    assert len(keys) == len({r for rs in recipes.values() for r in rs})
    assert not {quick(r).key for r in recipes["table1"]} & keys, "a quick run never passes for a real one"


def test_run_is_deterministic_and_complete():
    recipe = quick(recipes_of("ablation", 1)[0])
    first, again = run_network(recipe), run_network(recipe)
    assert first == again
    assert set(first["accuracy"]) == {"plain", "rotated", "flipped"}
    assert first["names"] == ["rot90", "flips", "trivial"]
    assert len(first["trajectory"]) == len(first["history"]) + 1
    assert first["trajectory"][first["best_epoch"]] == first["pi"]


@pytest.mark.parametrize("reading", READINGS)
def test_every_reading_builds_a_network(reading):
    from studies.run import load_without

    recipe = recipes_of("ablation", 1)[list(READINGS).index(reading)]
    layer = build(recipe, load_without("mnist:plain", 0, (6, 9)), 1234)[0]
    assert layer.prior_weight == (1234 if "per example" in reading else 1)
    assert layer.prior.alpha == (2.0, 2.0, 2.0)


def reproduce(out, *extra, wait=True):
    arguments = [COMMAND, "reproduce", "figure1", "--quick", "--seeds", "1", "--out", out, *extra]
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    if wait:
        output, error = process.communicate(timeout=300)
        return process.returncode, output, error
    return process


def test_killed_sweep_goes_on_where_it_stopped(tmp_path):
    process = reproduce(tmp_path / "killed", "--n-jobs", "1", wait=False)
    runs = tmp_path / "killed" / "runs"
    while not list(runs.glob("*.json")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    stored = {p: p.read_bytes() for p in runs.glob("*.json")}
    assert 1 <= len(stored) < 5
    assert reproduce(tmp_path / "killed")[0] == 0
    assert all(p.read_bytes() == content for p, content in stored.items()), "what was stored is not repeated"
    assert reproduce(tmp_path / "whole")[0] == 0
    for name in ("figure1.json", "figure1.md", "figure1.png"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (json.dumps({"format": FORMAT + 1}), "written by another version"),
        ("{torn", "no record of a run"),
        ("[1]", "no record of a run"),
    ],
)
def test_foreign_record_is_refused_and_kept(tmp_path, content, fault):
    recipe = quick(recipes_of("figure1", 1)[0])
    path = tmp_path / "runs" / f"{recipe.key}.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(ValueError, match=fault):
        load_record(path.parent, recipe)
    status, _, error = reproduce(tmp_path)
    assert status == 2
    assert fault in error
    assert len(error.strip().splitlines()) == 1
    assert path.read_text() == content


def records(what):
    """Made-up records in the promised format."""
    if what == "figure1":
        kinds = [("permuted", ["rot90"]), ("permuted", ["flips"]), ("rotated", ["rot90"]), ("flipped", ["flips"])]
        return [
            {
                "method": "paper",
                "data": d,
                "seed": s,
                "names": [*n, "trivial"],
                "trajectory": [[0.5, 0.5]] * (3 + s),
            }
            for d, n in [*kinds, ("plain", ["rot90"])]
            for s in range(2)
        ]
    return [
        {"method": "baseline", "model": m, "data": d, "seed": s, "accuracy": 90.0 + s}
        for m in ("MLP", "RotNet")
        for d in ("permuted", "rotated", "flipped")
        for s in range(2)
    ]


@pytest.mark.parametrize("what", ["figure1", "figure2"])
def test_figures_are_drawn_from_records_alone(tmp_path, what):
    png, svg = getattr(figures, what)(records(what), tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "Rotated data set" in svg.read_text()
    first = png.read_bytes()
    getattr(figures, what)(records(what), tmp_path)
    assert png.read_bytes() == first


def test_tables_put_the_paper_beside_ours():
    flat = [
        {
            "method": "baseline",
            "model": "MLP",
            "seed": s,
            "plain": 98.0 + s,
            "rotated": 43.0,
            "flipped": 63.0,
            "pi": None,
        }
        for s in range(2)
    ]
    table = tables.table1(flat)
    assert "| MLP | 98.5 ± 0.7 | 98.3 ± 0.3 | 43.0 ± 0.0 | 43.3 ± 0.6 | 63.0 ± 0.0 | 64.1 ± 0.4 | 2 |" in table
    assert "90.5 ± 0.7" in tables.figure2(records("figure2"))
    assert "| paper | permuted | flips | 0.500 | 0.500 – 0.500 |" in tables.figure1(records("figure1"))


def test_missing_results_name_the_command(tmp_path):
    with pytest.raises(ValueError, match="run `invariantnet reproduce table1"):
        results.read(tmp_path, "table1")


ROOT = Path(__file__).parent.parent


def test_pages_are_what_the_committed_results_give():
    from studies.beyond import beyond_page
    from studies.page import reproduction_page
    from studies.reliability import reliability_page
    from studies.speed import speed_page

    pages = {
        "reproduction": reproduction_page,
        "beyond": beyond_page,
        "speed": speed_page,
        "reliability": reliability_page,
    }
    for name, page in pages.items():
        assert (ROOT / f"docs/{name}.md").read_text() == page(ROOT / "results")
    for name in ("figure1", "figure2", "figure3", "posterior", "calibration", "growth", "schemes", "learning"):
        assert (ROOT / f"docs/pictures/{name}.png").read_bytes() == (ROOT / f"results/{name}.png").read_bytes()


def test_readme_shows_the_committed_results():
    from studies.beyond import headline

    readme = (ROOT / "README.md").read_text()
    for name, table in headline(ROOT / "results").items():
        assert f"<!-- {name} -->\n{table}<!-- end -->" in readme


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("table1", {"method", "model", "seed", "plain", "rotated", "flipped", "pi"}),
        ("figure1", {"method", "data", "seed", "names", "trajectory"}),
        ("figure2", {"method", "model", "data", "seed", "accuracy"}),
    ],
)
def test_committed_records_have_the_promised_fields(name, fields):
    records = results.read(ROOT / "results", name)
    assert all(fields <= set(r) for r in records)
    of_the_paper = [r for r in records if r["method"] in ("paper", "baseline")]
    assert {r["seed"] for r in of_the_paper} == set(range(5))
    assert {r["method"] for r in records} - {"paper", "baseline"} <= {"evidence", "heldout"}
    assert any(r["method"] == "evidence" for r in records)


def test_our_method_is_drawn_beside_the_papers(tmp_path):
    from studies.reproduce import reproduce as run_here

    results.write(tmp_path, "figure2", records("figure2"))
    run_here("figure2", tmp_path, method="evidence", seeds=1, quick=True, jobs=2)
    flat = results.read(tmp_path, "figure2")
    assert flat[: len(records("figure2"))] == records("figure2")
    ours = [r for r in flat if r["method"] == "evidence"]
    assert {r["data"] for r in ours} == {"permuted", "rotated", "flipped"}
    assert "ours (evidence)" in (tmp_path / "figure2.svg").read_text()
    assert "| ours (evidence) |" in (tmp_path / "figure2.md").read_text()
    run_here("figure2", tmp_path, method="evidence", seeds=1, quick=True, jobs=2)
    assert results.read(tmp_path, "figure2") == flat


def test_posterior_paths_are_drawn_below(tmp_path):
    names = ["trivial", "rot90"]
    ours = [
        {"method": "evidence", "data": d, "seed": s, "names": names, "trajectory": path, "predicted": predicted}
        for d in ("permuted", "rotated", "flipped", "plain")
        for s, path, predicted in (
            (0, [[0.5, 0.5], [0.1, 0.9], [0, 1]], [100, 300]),
            (1, [[0.5, 0.5], [0, 1]], [100]),
        )
    ]
    _, svg = figures.figure1([*records("figure1"), *ours], tmp_path)
    assert "posterior by evidence" in svg.read_text()
    assert "labels predicted" in svg.read_text()
