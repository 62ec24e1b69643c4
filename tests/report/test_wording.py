"""What the page says first, and how its charts name what was compared."""

import re
from dataclasses import replace

import numpy as np

from invariantnet.inference.findings import ModelEvidence
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.range_posterior import RangePosterior
from invariantnet.report.answers import shown_number
from invariantnet.report.charts import LONGEST, Bar, bars
from invariantnet.report.posterior_charts import models_chart, posterior_chart, range_charts
from invariantnet.report.wording import headline, meaning, next_steps, strengths, typed

LADDER = RangePosterior(
    family="rotation",
    values=(0.0, 90.0, 135.0),
    probabilities=(0.0, 0.7, 0.3),
    log_evidence=(-60.0, -20.0, -21.0),
    median=110.0,
    interval=(80.0, 130.0),
    unit="°",
    factor=False,
)
TURNS = SymmetryPosterior(
    names=("trivial", "rotation:90", "rotation:135"),
    orders=(1, 7, 13),
    probabilities=(0.0, 0.7, 0.3),
    log_evidence=(-60.0, -20.0, -21.0),
    log_evidence_spread=(1.0, 1.0, 1.0),
    examples=400,
    ranges={"rotation": LADDER},
)
LONG = "reversal+sign+cyclic"
NOISE = SymmetryPosterior(
    names=("trivial", "reversal", LONG),
    orders=(1, 2, 48),
    probabilities=(1 / 3, 1 / 3 - 1e-12, 1 / 3 + 1e-12),
    log_evidence=(-50.0, -50.0, -49.0),
    log_evidence_spread=(0.0, 0.0, 0.0),
    examples=40,
    learned=False,
)


ALONE = SymmetryPosterior(
    names=("trivial",),
    orders=(1,),
    probabilities=(1.0,),
    log_evidence=(-60.0,),
    log_evidence_spread=(1.0,),
    examples=400,
    left_out=("reversal", "sign"),
)


def test_where_nothing_was_compared_no_symmetry_is_denied():
    assert headline(ALONE, "trivial") == "No symmetry was compared, so the network has none."
    assert meaning(ALONE).startswith("No symmetry was the only candidate, because examples do not lie where")
    said = " ".join(next_steps(ALONE, "trivial"))
    assert "may still be there" in said
    assert "copies" not in said


def test_a_range_is_told_with_its_interval_and_not_as_the_rung_that_was_built_in():
    said = headline(TURNS, "rotation:90")
    assert said == "The data is symmetric under rotations (rotation), up to about 110°, between 80° and 130°."


def test_rungs_of_a_ladder_are_not_rounded():
    [(_, chart)] = range_charts(TURNS)
    assert ">135°<" in chart


def test_where_nothing_was_learned_nothing_is_favoured():
    assert NOISE.favourite == "trivial", "the safe one of equals"
    assert "No network" in headline(NOISE, "trivial")
    assert "guess" in meaning(NOISE)
    assert "strong" not in posterior_chart(NOISE)
    assert "strong" in posterior_chart(replace(NOISE, learned=True))


def test_an_open_verdict_says_what_is_sure():
    """Mirror images are there, be it alone or with quarter turns."""
    names, p = ("trivial", "hflip", "rot90", "d4"), (0.02, 0.55, 0.01, 0.42)
    open_one = replace(NOISE, names=names, orders=(1, 2, 4, 8), probabilities=p, learned=True)
    open_one = replace(open_one, log_evidence=(0.0,) * 4, at_least=(1.0, 0.97, 0.43, 0.42))
    assert open_one.established == "hflip"
    said = "The data is symmetric under at least left-right mirror images (hflip). What else holds is open"
    assert headline(open_one, "hflip") == f"{said}."
    assert "; at least left-right mirror images (hflip) with 0.970;" in open_one.verdict
    turns = replace(open_one, probabilities=(0.02, 0.4, 0.01, 0.57))
    assert any(
        step.endswith("which is sure: symmetries=['hflip'], or --symmetries hflip") for step in turns.next_steps
    )
    assert not any("which is sure" in step for step in open_one.next_steps), "the network has just that"
    assert headline(turns, "d4").startswith(f"{said}: quarter turns and mirror images (d4), with")
    sure = replace(open_one, probabilities=(0.02, 0.95, 0.01, 0.02))
    assert sure.established is None, "a strong verdict has said it"
    assert replace(open_one, refuted_by={"hflip": ("6",)}).established is None
    assert replace(open_one, at_least=()).established is None, "stored by an older version"


def test_long_names_are_on_several_lines_and_whole():
    chart = posterior_chart(NOISE)
    lines = re.findall(r'<text x="4" y="(\d+)">([^<]*)<', chart)
    assert max(len(text) for _, text in lines) <= LONGEST
    said = " ".join(text for _, text in lines)
    assert f"({LONG})" in said
    heights = [int(y) for y, _ in lines]
    assert heights == sorted(set(heights)), "one below the other"
    assert bars([Bar("short", 1.0, "1")], "").count("<text") == 2


def test_an_open_verdict_is_a_sentence():
    open_verdict = replace(TURNS, names=("trivial", "rot90", "d4"), ranges={}, probabilities=(0.1, 0.5, 0.4))
    said = headline(open_verdict, "rot90")
    assert said == "The data does not decide: quarter turns (rot90), with probability 0.500, is the favourite."


def test_numbers_are_written_as_people_write_them():
    assert shown_number(np.array([407786.9]), np.array([5551.47])) == "408,000 ± 5,600"
    assert shown_number(np.array([0.123456, -2.0])) == "0.123, -2"
    numbers = shown_number(np.array([2.0, 3.1004, 12345.678]), np.array([0.22, 0.2, 0.0123]))
    assert numbers == "2.00 ± 0.22, 3.10 ± 0.20, 12,345.678 ± 0.012", "as many decimals as the error"


def test_a_model_as_good_as_the_best_is_not_behind_by_minus_zero():
    best, same = ModelEvidence("plain mlp", 0.5, -10.0), ModelEvidence("deep mlp", 0.5, -10.01)
    assert "−0.0" not in models_chart(replace(TURNS, models=(best, same)))


def test_the_words_for_sure_and_unsure_are_explained_where_there_are_any():
    assert "Decisive means a probability of at least 0.99, strong of at least 0.90" in strengths(TURNS)
    assert strengths(NOISE) == strengths(ALONE) == ""


def test_options_are_not_broken_and_nothing_else_is_markup():
    said = str(typed("pass <b> or --second-opinion 0.02"))
    assert said == 'pass &lt;b&gt; or <span class="option">--second-opinion</span> 0.02'
