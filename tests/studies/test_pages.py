"""The committed pages are what the committed records give, and say nothing that these do not support."""

from dataclasses import replace
from pathlib import Path

import pytest

from studies import pages
from studies.framework import Claim, Study
from studies.framework.records import RESULTS, Piece, current_version, read, write
from studies.framework.registry import NAMES, load
from studies.pages import PAGES, Page, outdated_pictures, render_readme

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_what_the_committed_records_give(name):
    assert (ROOT / f"docs/{name}.md").read_text() == Page().render(name), "run `python -m studies docs`"


def test_the_readme_shows_the_committed_records():
    readme = (ROOT / "README.md").read_text()
    assert readme == render_readme(), "run `python -m studies docs`"
    assert "<!-- panel -->\n| data | n |" in readme


def test_pictures_were_drawn_from_the_committed_records():
    assert not [study.name for study in outdated_pictures()], "run `python -m studies docs`"


def test_every_claim_is_on_a_page_and_every_study_with_results_is_shown():
    templates = "".join((pages.TEMPLATES / f"{name}.md.j2").read_text() for name in PAGES)
    for study in map(load, NAMES):
        if not read(study, RESULTS) and not study.reads:
            continue
        found = [
            r for source in (study, *map(load, study.reads)) for p in read(source, RESULTS) for r in p.records
        ]
        for claim in study.claims(found):
            assert f'claim("{study.name}", "{claim}")' in templates
        assert f'("{study.name}"' in templates


@pytest.fixture
def growth(tmp_path, monkeypatch):
    """A study of which half was measured with an older version."""
    study = load("growth")
    pieces = read(study, RESULTS)
    now = [replace(piece, version=current_version()) for piece in pieces[:2]]
    write(study, tmp_path, now + [replace(piece, version="0.0.1") for piece in pieces[2:]])
    return tmp_path


def test_numbers_of_an_older_version_are_marked_once_on_a_page(growth):
    page = Page(growth)
    assert page.table("growth").endswith("\n*(2 of 4 runs were measured with version 0.0.1.)*\n")
    assert page.picture("growth", "Cost") == "![Cost](pictures/growth.png)"
    assert "version" not in page.claim("growth", "memory")
    assert Page(growth).claim("growth", "memory").endswith("*(2 of 4 runs were measured with version 0.0.1.)*")


def test_numbers_of_this_version_are_not_marked(tmp_path):
    study = load("growth")
    write(study, tmp_path, [replace(piece, version=current_version()) for piece in read(study, RESULTS)])
    assert "version" not in Page(tmp_path).table("growth")


def test_a_claim_that_its_records_do_not_support_stops_the_rendering(growth):
    study = load("growth")
    pieces = read(study, growth)
    steep = [replace(piece, records=tuple(replace(r, last_slope=2.0) for r in piece.records)) for piece in pieces]
    write(study, growth, steep)
    with pytest.raises(
        ValueError, match=r"growth do not support “Blocks grow fourfold.*claim 'linear' in growth\.py"
    ):
        Page(growth).claim("growth", "linear")


def test_missing_records_name_the_command(tmp_path):
    with pytest.raises(ValueError, match="no records of verdict: run `python -m studies run verdict`"):
        Page(tmp_path).claim("verdict", "ratio")


def test_a_picture_of_other_records_is_out_of_date(growth, tmp_path):
    names = [study.name for study in outdated_pictures(RESULTS, tmp_path)]
    measured = [study for study in map(load, NAMES) if read(study, RESULTS) or not study.parts]
    assert names == [study.name for study in measured if study.draw], "no picture is there at all"


def test_marks_and_claims_need_no_more_than_a_study(tmp_path, monkeypatch):
    study = Study(file="tiny.py", question="", claims=lambda records: {"a": Claim("A.", len(records) == 0)})
    monkeypatch.setattr(pages, "load", lambda name: study)
    write(study, tmp_path, [Piece({}, current_version(), None, None, None, ())])
    assert Page(tmp_path).claim("tiny", "a") == "A."
