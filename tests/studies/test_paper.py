"""The paper's figures and tables: what would be run, that it runs, and how it is shown."""

from dataclasses import replace

import numpy as np
import pytest

from studies.datasets import SIX_AND_NINE, load, shifted_test_sets
from studies.framework import drawing, registry
from studies.framework.records import RESULTS, read, records, select
from studies.inference.fits import FitRecipe
from studies.paper import ablation, figure1, figure2, identity, table1
from studies.paper.networks import NetworkRecipe, NetworkResult, build, quick, run_network
from studies.paper.published import TABLE_1

PAPER = ["paper"]
DRAWN = [study.name for study in map(registry.load, registry.NAMES) if study.draw and study.parts]


def test_recipes_are_the_papers():
    recipes = {s.STUDY.name: s.STUDY.plan(parts=PAPER) for s in (figure1, figure2, table1, ablation, identity)}
    assert [len(found) for found in recipes.values()] == [25, 75, 25, 3 * len(ablation.READINGS), 12]
    assert {r.hidden for r in recipes["figure1"] + recipes["figure2"]} == {100}
    assert {r.model: r.hidden for r in recipes["table1"]} == {
        "InvNet": 200,
        **dict.fromkeys(TABLE_1.keys() - {"InvNet"}, 100),
    }
    assert len(set(recipes["figure1"]) & set(recipes["figure2"])) == 20, "figures 1 and 2 share their runs"


def test_ours_stand_beside_the_papers():
    assert {r.n for r in figure1.STUDY.plan(parts=["heldout"])} == {figure1.HELD_OUT_EXAMPLES}
    assert {r.n for r in figure1.STUDY.plan(parts=["evidence"])} == {60_000}
    assert "mnist:plain" not in {r.data for r in figure2.STUDY.plan()}
    names = {table1._model_name(r) for r in table1.STUDY.plan() if isinstance(r, FitRecipe)}
    assert names == {"ours (MLP, d4)", "ours (CNN, d4)", "ours (MLP, d4, all ten digits)"}


def test_a_run_is_deterministic_and_complete():
    recipe = replace(quick(table1.invnet(0)), examples=500, epochs=3)
    first = run_network(recipe)
    assert first == run_network(recipe)
    assert set(first.accuracy) == {"plain", "rotated", "flipped"}
    assert first.names == ("rot90", "flips", "trivial")
    assert len(first.trajectory) == 4
    assert first.pi in first.trajectory


@pytest.mark.parametrize("reading", ablation.READINGS)
def test_every_reading_builds_a_network(reading):
    recipe = ablation.recipes(0)[list(ablation.READINGS).index(reading)]
    layer = build(recipe, load("mnist:plain", 0, SIX_AND_NINE), 1234)[0]
    assert layer.prior_weight == (1234 if "per example" in reading else 1)
    assert layer.prior.alpha == (2.0, 2.0, 2.0)
    result = NetworkResult(dict.fromkeys(("plain", "rotated", "flipped"), 90.0), (), (), None)
    for made in (recipe, quick(recipe)):
        assert ablation.keep(made, result)[0].reading == reading


@pytest.mark.parametrize(
    "name", [name for name in registry.NAMES if registry.load(name).draw and registry.load(name).parts]
)
def test_figures_are_drawn_from_records_alone(tmp_path, name):
    study = registry.load(name)
    found = records(read(study, RESULTS))
    png, svg = drawing.draw(study, found, tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_text().rstrip().endswith("</svg>")
    assert drawing.is_current(png, study, found)
    assert not found or not drawing.is_current(png, study, found[:-1])


def test_the_same_records_give_the_same_bytes(tmp_path):
    found = records(read(figure2.STUDY, RESULTS))
    first, second = (
        drawing.draw(figure2.STUDY, found, folder, ["png"])[0].read_bytes() for folder in (tmp_path, tmp_path)
    )
    assert first == second


def test_tables_put_the_paper_beside_ours():
    rows = [table1.Record("baseline", "MLP", seed, 98.0 + seed, 43.0, 63.0, None) for seed in range(2)]
    line = "| MLP | 98.5 ± 0.7 | 98.3 ± 0.3 | 43.0 ± 0.0 | 43.3 ± 0.6 | 63.0 ± 0.0 | 64.1 ± 0.4 | 2 |"
    assert line in table1.table(rows)
    ours = [replace(r, model="ours (MLP, d4)", method="evidence") for r in rows]
    assert "| ours (MLP, d4) | 98.5 ± 0.7 | 43.0 ± 0.0 | 63.0 ± 0.0 | 2 |" in table1.table(ours)
    boxes = [figure2.Record("baseline", "MLP", d, s, 90.0 + s) for d in figure2.VARIANTS for s in range(2)]
    assert "| MLP | 90.5 ± 0.7 | 90.5 ± 0.7 | 90.5 ± 0.7 |" in figure2.table(boxes)
    path = figure1.Record("paper", "permuted", 0, ("flips", "trivial"), ((0.5, 0.5), (0.25, 0.75)))
    assert "| paper | permuted | flips | 0.250 | 0.250 – 0.250 |" in figure1.table([path])
    full = identity.Record("paper", "permuted", 0, ("flips", "trivial"), ((0.5, 0.5), (0.1, 0.9)))
    assert (
        "| permuted | flips / trivial | no symmetry | no symmetry (0.75) | no symmetry (0.90) |"
        in identity.table([full, path])
    )


def test_a_path_that_stopped_early_stays_where_it_stopped():
    names = ("trivial", "rot90")
    paths = [((0.5, 0.5), (0.1, 0.9), (0.0, 1.0)), ((0.5, 0.5), (0.2, 0.8))]
    found = [
        figure1.Record("evidence", data, seed, names, path, tuple(range(100, 100 * len(path), 100)))
        for data in figure1.PANELS
        for seed, path in enumerate(paths)
    ]
    axis = figure1.draw(found).axes[0]
    assert axis.get_ylabel() == "posterior by evidence"
    assert axis.get_xlabel() == "labels predicted"
    np.testing.assert_allclose(axis.lines[0].get_ydata(), [0.5, 0.15, 0.1])


@pytest.mark.parametrize("study", [table1.STUDY, figure1.STUDY, figure2.STUDY], ids=lambda s: s.name)
def test_committed_records_have_five_seeds_of_the_papers_networks(study):
    found = records(read(study, RESULTS))
    assert {r.seed for r in select(found, method=["paper", "baseline"])} == set(range(5))
    assert select(found, method="evidence")


def test_rotated_test_images_are_those_of_the_data_whichever_digits_it_has():
    ten, eight = (load("mnist:plain", 3, without) for without in ((), SIX_AND_NINE))
    images, labels = shifted_test_sets(ten, 3)["rotated"]
    np.testing.assert_array_equal(labels, ten.y_test)
    assert not np.array_equal(images, ten.x_test)
    images, labels = shifted_test_sets(eight, 3)["rotated"]
    rotated = load("mnist:rotated", 3)
    np.testing.assert_array_equal(images, rotated.x_test)
    np.testing.assert_array_equal(labels, rotated.y_test)


def test_baselines_know_nothing_of_symmetries():
    for recipe in table1.printed(0):
        assert isinstance(recipe, NetworkRecipe)
        assert bool(recipe.symmetries) == (recipe.model == "InvNet")
