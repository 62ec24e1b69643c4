"""The page's table of what each symmetry gains in each class."""

from dataclasses import replace

from invariantnet.inference.by_class import Gain
from invariantnet.inference.findings import ModelEvidence
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.report.class_table import MOST_CLASSES, MOST_SYMMETRIES, class_table
from invariantnet.report.posterior_charts import models_chart

POSTERIOR = SymmetryPosterior(
    names=("trivial", "rot180", "hflip"),
    orders=(1, 2, 2),
    probabilities=(0.9, 0.1, 0.0),
    log_evidence=(-10.0, -12.0, -90.0),
    log_evidence_spread=(0.0, 0.0, 0.0),
    examples=100,
    by_class=(
        Gain("rot180", "6", -1.5, 0.1, 20),
        Gain("rot180", "8", 0.04, 0.1, 20),
        Gain("hflip", "6", 0.5, 0.1, 20),
    ),
)


def test_clear_gains_and_losses_are_marked():
    table = class_table(POSTERIOR)
    assert table.symmetries == ("rot180", "hflip"), "the better one first"
    six, eight = table.rows
    assert (six.part, [(c.text, c.kind) for c in six.cells]) == (
        "6",
        [("−1.50 ± 0.10", "loss"), ("+0.50 ± 0.10", "gain")],
    )
    assert [(c.text, c.kind) for c in eight.cells] == [("+0.04 ± 0.10", ""), ("–", "")]
    assert not table.left_out


def test_a_long_table_shows_what_differs_most_and_says_what_it_leaves_out():
    names = ("trivial", *(f"g{k}" for k in range(9)))
    gains = tuple(Gain(name, str(c), -float(c), 0.1, 5) for name in names[1:] for c in range(30))
    many = replace(
        POSTERIOR,
        names=names,
        orders=(1,) * 10,
        probabilities=(0.1,) * 10,
        log_evidence=tuple(-float(k) for k in range(10)),
        log_evidence_spread=(0.0,) * 10,
        by_class=gains,
    )
    table = class_table(many)
    assert len(table.symmetries) == MOST_SYMMETRIES
    assert [row.part for row in table.rows] == [str(c) for c in range(30 - MOST_CLASSES, 30)]
    assert "3 symmetries" in table.left_out
    assert "10 classes" in table.left_out
    one_more = replace(many, by_class=tuple(g for g in gains if g.symmetry in names[: MOST_SYMMETRIES + 2]))
    assert (
        class_table(one_more).left_out
        == "Not shown: 1 symmetry that predicts worse and 10 classes that differ less."
    )


def test_where_nothing_was_learned_there_is_nothing_to_explain():
    assert class_table(replace(POSTERIOR, learned=False)) is None
    assert class_table(replace(POSTERIOR, by_class=())) is None


def test_models_are_drawn_where_several_were_compared():
    assert models_chart(POSTERIOR) is None
    models = (
        ModelEvidence("pooled cnn", 0.9, -10.0),
        ModelEvidence("deep mlp", 0.1, -40.0),
        ModelEvidence("linear", 0.0, -10.0, dropped=True),
    )
    drawn = models_chart(replace(POSTERIOR, models=models))
    assert "pooled cnn" in drawn
    assert ">−30.0<" in drawn
    assert ">≤ 0.0<" in drawn, "given up early, so that its evidence is a bound"
