"""A sample of stale records tells whether changed code gives the same numbers."""

import pytest
from tiny_study import RUNS, TinyRecipe, run, tiny

from studies.framework.confirming import confirm
from studies.framework.records import read, records
from studies.framework.running import Store


@pytest.fixture(autouse=True)
def _forget():
    RUNS.clear()


def test_a_sample_with_equal_numbers_confirms_the_other_stale_records(tmp_path):
    before = run(tiny(), tmp_path)
    changed = tiny(depends_on=("priors", "metrics"))
    RUNS.clear()
    assert confirm(changed, tmp_path, sample=1, n_jobs=1) == 4
    assert len(RUNS) == 1
    assert Store(changed, tmp_path).count() == {"fresh": 1, "confirmed": 3, "unplanned": 0}
    after = read(changed, tmp_path)
    assert records(after) == records(before)
    assert {(piece.confirmed.sampled, piece.confirmed.of) for piece in after if piece.confirmed} == {(1, 4)}
    run(changed, tmp_path)
    assert len(RUNS) == 1, "what is confirmed is not run again"
    again = tiny(depends_on=("priors", "metrics", "choices"))
    assert Store(again, tmp_path).count() == {"stale": 4, "unplanned": 0}, "it holds for that code only"


def test_one_other_number_confirms_nothing(tmp_path):
    run(tiny(), tmp_path)
    changed = tiny(depends_on=("metrics",), run=lambda recipe: recipe.n**2 + (recipe == TinyRecipe(2, 1)))
    with pytest.raises(ValueError, match=r"1 of 4 recipes give other numbers now \(TinyRecipe\(n=2, seed=1"):
        confirm(changed, tmp_path, sample=9, n_jobs=1)
    fewer = tiny(depends_on=("priors", "choices"), run=lambda recipe: 0)
    with pytest.raises(ValueError, match="2 of 2"):
        confirm(fewer, tmp_path, sample=2, n_jobs=1)
    assert Store(fewer, tmp_path).count() == {"fresh": 2, "stale": 2, "unplanned": 0}


@pytest.mark.parametrize(
    ("changes", "sample", "fault"),
    [({}, 1, "no stale records"), ({"depends_on": ()}, 0, "at least one"), ({"alone": True}, 1, "run it again")],
)
def test_what_cannot_be_confirmed_is_said(tmp_path, changes, sample, fault):
    run(tiny(), tmp_path)
    with pytest.raises(ValueError, match=fault):
        confirm(tiny(**changes), tmp_path, sample=sample)
