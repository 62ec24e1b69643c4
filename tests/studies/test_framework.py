"""A tiny study: what is stored, what is run again, and what survives a kill."""

import ast
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_study import RUNS, Inner, TinyRecipe, TinyRecord, keep, run, square, tiny

from studies.framework import Claim, Part, freshness, running
from studies.framework.freshness import digest, meaning, settings, source_files
from studies.framework.records import Piece, current_version, read, records, select, write
from studies.framework.registry import NAMES, load
from studies.framework.running import Store, run_studies

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _forget():
    RUNS.clear()


def test_records_say_how_they_were_made_and_come_back_as_they_were(tmp_path):
    pieces = run(tiny(), tmp_path)
    first = pieces[0]
    assert first.recipe == {"n": 1, "seed": 0}
    assert first.version == current_version()
    assert first.digest == digest(tiny(), TinyRecipe(1, 0))
    assert "torch" in first.machine
    assert first.cpu_seconds >= 0
    assert records(pieces) == [
        TinyRecord(n, ((seed, float(n**2)),), Inner(), {"a": 1}) for seed in (0, 1) for n in (1, 2)
    ]
    assert [r.n for r in select(records(pieces), n=[2, 3])] == [2, 2]


def test_fresh_records_are_not_made_again(tmp_path):
    run(tiny(), tmp_path)
    before = (tmp_path / "tiny_study.json").read_bytes()
    run(tiny(), tmp_path)
    assert len(RUNS) == 4
    assert (tmp_path / "tiny_study.json").read_bytes() == before


def test_changed_code_and_changed_settings_make_records_stale(tmp_path):
    run(tiny(), tmp_path)
    changed = tiny(depends_on=("priors", "metrics"))
    assert Store(changed, tmp_path).count() == {"stale": 4, "unplanned": 0}
    other = tiny(parts={"few": Part(lambda seed: [TinyRecipe(n, seed, Inner((2.0,))) for n in (1, 2)], 2)})
    assert Store(other, tmp_path).count() == {"missing": 4, "unplanned": 4}
    run(other, tmp_path)
    assert Store(other, tmp_path).count() == {"fresh": 4, "unplanned": 0}, "what no recipe gives is dropped"


def test_recipes_without_a_record_are_run_before_those_whose_record_is_stale(tmp_path):
    run(tiny(), tmp_path, seeds=1)
    RUNS.clear()
    run(tiny(depends_on=("priors", "metrics")), tmp_path, seeds=2)
    assert [recipe.seed for recipe in RUNS] == [1, 1, 0, 0]


def test_records_of_an_older_version_without_a_digest_are_stale_until_they_are_made_again(tmp_path):
    old = [Piece({"n": n, "seed": 0}, "0.1.0", None, None, None, tuple(keep(TinyRecipe(n, 0), 0))) for n in (1, 2)]
    write(tiny(), tmp_path, old)
    assert Store(tiny(), tmp_path).count() == {"stale": 2, "missing": 2, "unplanned": 0}
    assert {piece.version for piece in run(tiny(), tmp_path)} == {current_version()}


def test_more_seeds_add_and_fewer_seeds_take_nothing_away(tmp_path):
    run(tiny(), tmp_path, seeds=1)
    assert len(RUNS) == 2
    assert len(run(tiny(), tmp_path, seeds=3)) == 6
    assert len(run(tiny(), tmp_path, seeds=1)) == 4, "those of the study's own seeds stay"


def test_studies_share_the_runs_of_equal_recipes(tmp_path):
    other = tiny(file="other.py", depends_on=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(freshness, "meaning", lambda *_: "")
        run_studies([tiny(), other], tmp_path, n_jobs=1)
        assert records(read(other, tmp_path)) == records(read(tiny(), tmp_path))
    assert len(RUNS) == 4


def test_a_study_without_a_quick_version_keeps_its_recipes_and_one_with_it_makes_them_small(tmp_path):
    quick = tiny(quick=lambda recipe: replace(recipe, n=0))
    assert tiny().plan(quick=True) == tiny().plan()
    assert quick.plan(quick=True) == [TinyRecipe(0, 0), TinyRecipe(0, 1)], "equal recipes are run once"


def test_what_this_machine_cannot_run_is_left_out_and_said(tmp_path, capfd):
    part = Part(lambda seed: [TinyRecipe(7, seed)], lacks=lambda: "buy a telescope")
    study = tiny(parts={**tiny().parts, "stars": part})
    assert len(run(study, tmp_path)) == 4
    assert "part stars: left out, buy a telescope" in capfd.readouterr().err
    assert Store(study, tmp_path).count()["missing"] == 1


@pytest.mark.parametrize("content", ["{torn", "[1]", '[{"recipe": {}}]', '[{"records": [{"unknown": 1}]}]'])
def test_a_foreign_file_is_refused_and_kept(tmp_path, content):
    (tmp_path / "tiny_study.json").write_text(content)
    with pytest.raises(ValueError, match="does not hold records of the study"):
        run(tiny(), tmp_path)
    assert (tmp_path / "tiny_study.json").read_text() == content


@pytest.mark.parametrize("options", [{"seeds": 0}, {"n_jobs": 0}])
def test_nothing_asked_for_is_an_error(tmp_path, options):
    with pytest.raises(ValueError, match="ask for at least one"):
        run_studies([tiny()], tmp_path, **options)


def test_a_failing_recipe_loses_none_of_the_finished_ones(tmp_path):
    def fails(recipe):
        if recipe == TinyRecipe(1, 1):
            raise KeyboardInterrupt
        return square(recipe)

    with pytest.raises(KeyboardInterrupt):
        run(tiny(run=fails), tmp_path)
    assert Store(tiny(), tmp_path).count() == {"fresh": 2, "missing": 2, "unplanned": 0}
    run(tiny(), tmp_path)
    assert len(RUNS) == 4


SLOW = textwrap.dedent(
    """
    import sys, time
    from dataclasses import dataclass
    from pathlib import Path
    from studies.framework import Part, Study
    from studies.framework.running import run_studies

    @dataclass(frozen=True)
    class Recipe:
        n: int
        seed: int

    def run(recipe):
        print(recipe.n, flush=True)
        time.sleep(0 if recipe.n < 2 or sys.argv[2] == "quickly" else 600)
        return [recipe]

    study = Study(
        file=__file__, question="", record=Recipe, run=run, alone=True,
        parts={"all": Part(lambda seed: [Recipe(n, seed) for n in range(4)])},
    )
    run_studies([study], Path(sys.argv[1]))
    """
)


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}

    def start(how):
        command = [sys.executable, script, tmp_path / "out", how]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )

    process = start("slowly")
    path = tmp_path / "out" / "slow.json"
    deadline = time.monotonic() + 60
    while not (path.exists() and len(json.loads(path.read_text())) == 2):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    stored = json.loads(path.read_text())
    assert start("quickly").communicate()[0].split() == ["2", "3"], "only what was not stored is run"
    assert json.loads(path.read_text())[:2] == stored


def test_two_processes_do_not_write_to_one_folder(tmp_path):
    def inside(recipe):
        with pytest.raises(ValueError, match="another process is writing to"):
            run_studies([tiny()], tmp_path)
        return 0

    run(tiny(run=inside), tmp_path)


def test_only_what_is_computed_counts(tmp_path):
    path = tmp_path / "a.py"

    def of(source):
        path.write_text(source)
        meaning.cache_clear()
        return meaning(path)

    first = of('"""Docs."""\nX = 1\n"""Why."""\ndef f(x):\n    return x + X\n')
    assert of("# Comment\nX = 1\n\n\ndef f(x):\n    'Other docs.'\n    return (x + X)\n") == first
    assert of("X = 1\ndef f(x):\n    return x - X\n") != first
    assert of("X = 2\ndef f(x):\n    return x + X\n") != first
    assert of("X = 1\ndef f(x, y=0):\n    return x + X\n") != first
    of("X = 1\ndef draw():\n    return 0\n")
    without = meaning(path, frozenset(["draw"]))
    of("X = 1\ndef draw():\n    return 1\n")
    assert meaning(path, frozenset(["draw"])) == without, "how records are shown does not count"
    meaning.cache_clear()


def test_words_for_people_do_not_count_in_the_package(tmp_path, monkeypatch):
    path = tmp_path / "a.py"

    def of(source):
        path.write_text(source)
        meaning.cache_clear()
        return meaning(path)

    said, other = (f"def f(x):\n    raise ValueError(f'{{x}} is {words}: mend it')\n" for words in ("odd", "bad"))
    assert of(said) != of(other), "in a study it may be the name of data"
    monkeypatch.setattr(freshness, "PACKAGE", tmp_path)
    assert of(said) == of(other)
    assert of("POOL = 'max'\n") != of("POOL = 'mean'\n"), "one word is a choice, not prose"
    meaning.cache_clear()


def test_settings_name_what_is_unusual():
    assert settings(TinyRecipe(1, 0)) == {"n": 1, "seed": 0}
    assert settings(TinyRecipe(1, 0, Inner((2.0,)))) == {"n": 1, "seed": 0, "inner": {"values": [2.0]}}


def test_an_unknown_module_is_an_error():
    with pytest.raises(ValueError, match=r"no module nonsense: correct depends_on"):
        source_files("nonsense")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


@pytest.mark.parametrize("name", NAMES)
def test_a_study_depends_on_what_its_file_imports(name):
    study = load(name)
    assert study.name == name
    assert study.question
    if not study.parts:
        return
    files = {path for module in study.depends_on for path in source_files(module)}
    shared = ("invariantnet._system", "studies.framework", "invariantnet.app.cli")
    for module in imported(Path(study.file)):
        if module.startswith(("invariantnet.", "studies.")) and not module.startswith(shared):
            parts = module.removeprefix("invariantnet.").split(".")
            candidates = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
            found = [path for candidate in candidates for path in _files(candidate)]
            # Another study lends recipes, which the digest of a recipe covers, and words.
            lends = any(path.stem in (*NAMES, "published") for path in found)
            assert files & set(found) or lends, f"{module} is not in depends_on"


def _files(name):
    try:
        return source_files(name) if name != "studies" else []
    except ValueError:
        return []


def test_every_study_plans_different_recipes_and_can_be_described():
    for study in map(load, NAMES):
        recipes = study.plan()
        assert len({json.dumps(settings(r), sort_keys=True) for r in recipes}) == len(recipes)
        if study.quick:
            assert {type(r) for r in study.plan(quick=True)} == {type(r) for r in recipes}
            # The smallest of the learning curve's runs are quick as they are.
            passes = set(study.plan(quick=True)) & set(recipes)
            assert not passes or study.name == "learning", "a quick run never passes for a real one"


def test_an_unknown_study_is_named():
    with pytest.raises(ValueError, match=r"no study named 'nonsense': choose one of table1, figure1"):
        load("nonsense")


def test_claims_are_named_sentences():
    assert Claim("Water is wet.").holds
    assert running.machine().startswith(("Linux", "Darwin"))
