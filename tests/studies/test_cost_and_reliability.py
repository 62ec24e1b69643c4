"""Studies of cost and reliability, made small."""

import random

import pytest

from studies.cost import basis, growth, larger_than_memory, verdict
from studies.paper import networks
from studies.reliability import children, faults, fuzz, load, mutants


def test_a_basis_is_measured():
    (record,) = basis.run(basis.BasisRecipe(shape=(3, 8, 8)))
    assert record.seconds < 10
    assert "| d4 | 3×8×8 |" in basis.table([record])


def test_growth_is_a_slope_on_logarithmic_axes(monkeypatch):
    monkeypatch.setitem(growth.CURVES, "linear", growth.Curve("made up", (10, 100, 1000), lambda n: n / 1000))
    (record,) = growth.run(growth.GrowthRecipe("linear"))
    assert record.slope == record.last_slope == 1.0
    assert record.seconds == (0.01, 0.1, 1.0)


def test_growth_measures_comparisons_and_steps():
    assert growth.comparison(200, ["hflip"]) > 0
    assert growth.step((4, 4), "hflip") > 0


def test_a_large_problem_costs_a_product():
    small, large = growth.LargeProblem(examples=1000), growth.LargeProblem(examples=2000)
    assert large.operations == 2 * small.operations
    assert large.bytes_read == 2 * small.bytes_read
    assert large.core_seconds(0.1) == pytest.approx(2 * small.core_seconds(0.1))


def test_a_verdict_is_timed_network_by_network():
    cache = verdict.TimedCache()
    cache["a"], cache["b"] = 1, 2
    assert cache["b"] == 2
    assert cache.used == {"b"}
    assert set(cache.seconds) == {"a", "b"}
    racing, loop = (
        verdict.Record(m, 1.0, n, ("a", "b"), p) for m, n, p in (("racing", 3, (0, 1)), ("plain loop", 4, (1, 0)))
    )
    claims = verdict.claims([racing, loop, verdict.Record("all examples", 4.0, 2)])
    assert claims["ratio"].holds
    assert claims["saved"].holds
    assert not claims["same verdict"].holds, "the two name different symmetries"


def test_a_file_for_a_fit_is_made_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(larger_than_memory, "BLOCK", 2)
    n = larger_than_memory.make(tmp_path, larger_than_memory.FileRecipe(gigabytes=3e-4))
    assert n == 6
    assert (tmp_path / "x.npy").stat().st_size > 6 * 3 * 128 * 128


def test_a_killed_study_is_resumed_and_compared(monkeypatch):
    """One random moment and tiny networks; the study tries many moments."""
    monkeypatch.setattr(networks, "QUICK_EXAMPLES", 300)
    monkeypatch.setattr(networks, "QUICK_EPOCHS", 2)
    (record,) = faults.run(faults.FaultRecipe("killed", "reproduce", 1, 0))
    assert (record.times, record.lost) == (1, 0)
    assert "| kill -9 of reproduce | at a random moment | 1 |" in faults.table([record])


def test_what_is_lost_is_noticed(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{torn")
    assert len(children.torn(tmp_path)) == 1
    tally = faults.Tally()
    tally.check(False, "something")
    assert tally.lost == ["something"]


def test_how_long_a_run_took_is_not_compared(tmp_path):
    for seconds in (1, 2):
        (tmp_path / f"{seconds}").mkdir()
        piece = f'[{{"recipe": {{}}, "cpu_seconds": {seconds}, "records": [3]}}]'
        (tmp_path / f"{seconds}" / "figure1.json").write_text(piece)
    assert children.contents(tmp_path / "1") == children.contents(tmp_path / "2")
    assert children.stored(tmp_path / "1") != children.stored(tmp_path / "2")


def test_fuzzing_counts_files_and_crashes(here, monkeypatch):
    targets = {"npz": fuzz.Target(b"good", lambda content: {}["missing"])}
    monkeypatch.setattr(fuzz, "targets", lambda folder: targets)
    (record,) = fuzz.run(fuzz.FuzzRecipe("npz", 0, "at random", seconds=0.01))
    assert record.files == record.crashes > 0
    assert len(list(here.glob("crash-npz-*"))) == record.crashes, "the bytes are kept, for a test"
    assert not fuzz.claims([record])["no crash"].holds


def test_mutations_are_reproducible():
    assert fuzz.mutate(b"abcdef" * 9, random.Random(1)) == fuzz.mutate(b"abcdef" * 9, random.Random(1))


@pytest.fixture
def here_and_now(monkeypatch):
    """New processes would import torch again."""
    monkeypatch.setattr(load, "separately", lambda function, *arguments: function(*arguments))


def test_load_is_measured(here_and_now, annotations_unchecked):
    (record,) = load.run(load.LoadRecipe("again and again", 3, 0))
    assert record.measured["rounds"] == 3
    assert "| again and again | rounds 3, megabytes after a third" in load.table([record])


def test_every_row_is_predicted(here_and_now):
    assert load.predict_many(1000)["rows"] == 1000


SOURCE = '''
LIMIT = 3

@cached(size=1)
def f(x, y=2):
    """Doc."""
    if x < LIMIT and y:
        return [a + 1 for a in zip(x, y, strict=True)]
    return x
'''


def test_mutants_change_the_mathematics_only():
    found = list(mutants.mutants(SOURCE))
    changes = [m.change.partition(" in: ")[0] for m in found]
    assert set(changes) == {
        "x < LIMIT and y → not (x < LIMIT and y)",
        "2 → 3",
        "x < LIMIT and y → x < LIMIT or y",
        "x < LIMIT → x <= LIMIT",
        "a + 1 → a - 1",
        "1 → 2",
    }
    assert all("strict=True" in m.content and "size=1" in m.content and "LIMIT = 3" in m.content for m in found)


def test_a_mutant_meets_the_fastest_tests_of_its_line_first():
    tests = mutants.Tests({"slow": 2.0, "fast": 1.0, "other": 0.5}, {7: ["slow", "fast"], 9: [""]})
    assert tests.of(range(7, 8)) == ["fast", "slow"]
    assert tests.of(range(9, 10)) == ["other", "fast", "slow"], "executed by importing the module"
    assert tests.of(range(1, 2)) == []


def test_the_tests_of_every_module_exist():
    for module in mutants.MODULES:
        assert (mutants.ROOT / mutants._path(module)).exists()
        assert all((mutants.ROOT / path).exists() for path in mutants._tests(module))


def test_forked_work_has_a_limit():
    assert mutants.forked(lambda: 0, 10) == 0
    assert mutants.forked(lambda: 3, 10) != 0
    assert mutants.forked(lambda: __import__("time").sleep(60), 0.1) != 0
