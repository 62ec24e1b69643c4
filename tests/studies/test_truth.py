"""Problems of the studies of truth: what is called their symmetry is one, and what is called false is none."""

from dataclasses import replace

import numpy as np
import pytest

from invariantnet.inference.hypotheses import candidates
from studies.framework.records import Piece, current_version, write
from studies.pages import Page
from studies.truth import computed_sets as computed
from studies.truth import cost_of_auto, null_and_power, panel, real_sets, simulations, teachers
from studies.truth.asked_for import TARGETS, calibration_error
from studies.truth.null_and_power import SHAPES, TeacherRecipe
from studies.truth.panel_sets import COMPUTED, PANEL, TABLES
from studies.truth.problems import Problem, favourite, is_right, is_sure, judge

pytestmark = pytest.mark.usefixtures("annotations_unchecked")


def groups_of(shape):
    return candidates(list(SHAPES[shape]), shape, joins=True)


def copies(x, group):
    return group.elements.numpy(), [x[:, element] for element in group.elements.numpy()]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_twin_has_its_symmetry_exactly_and_no_larger_one(shape):
    groups = groups_of(shape)
    for truth in groups[1:]:
        rng = np.random.default_rng(0)
        teacher, twin, contrasts = teachers.draw_twins(groups, truth, rng)
        x = rng.normal(size=(50, truth.dim))
        for moved in copies(x, truth)[1]:
            np.testing.assert_allclose(twin(moved), twin(x), atol=1e-12)
        for other in groups[1:]:
            changes = [np.abs(twin(moved) - twin(x)).max() for moved in copies(x, other)[1]]
            assert (max(changes) > 1e-3) == (not other <= truth)
            assert max(np.abs(teacher(moved) - teacher(x)).max() for moved in copies(x, other)[1]) > 1e-3
        assert min(contrasts) >= teachers.CONTRAST


def test_a_teacher_and_its_twin_share_their_inputs_and_differ_in_their_truth():
    recipe = TeacherRecipe((4, 4), 100, "classes", True, 4)
    arguments = (recipe.shape, SHAPES[recipe.shape], recipe.twin_of)
    twin, _ = teachers.teacher_problem(*arguments, True, 100, 3, 4)
    plain, _ = teachers.teacher_problem(*arguments, False, 100, 3, 4)
    np.testing.assert_array_equal(twin.x, plain.x)
    assert (twin.true_group().name, plain.true_group().name) == (recipe.twin_of, "trivial")
    assert set(np.bincount(twin.y)) <= {33, 34}
    assert not np.array_equal(twin.y, plain.y)


def test_every_seed_covers_every_cell_before_the_next_seed():
    plan = null_and_power.STUDY.plan()
    assert len(plan) == len(set(plan)) == 1280
    cells = 2 * len(SHAPES) * len(null_and_power.SIZES) * len(null_and_power.KINDS)
    assert {r.seed for r in plan[:cells]} == {0}
    every = [replace(r, seed=0) for r in plan]
    assert all(every.count(cell) == null_and_power.SEEDS for cell in every[:cells])
    assert {r.twin_of for r in plan if r.shape == (8,)} == {"reversal", "cyclic", "reversal+cyclic"}
    assert {r.classes for r in plan} == {0, 2, 3}


def verdict(truth, *probabilities, n=1000, shape=(8,), names=("trivial", "reversal")):
    return null_and_power.Record(shape, n, "classes", 0, truth, names, probabilities, "", 1.0, 2.0)


def test_targets_count_what_they_say():
    records = [verdict("trivial", 0.05, 0.95), verdict("trivial", 0.95, 0.05), verdict("reversal", 0.0, 1.0)]
    found = {name: target.measure(records) for name, target in TARGETS.items()}
    assert found["false"] == 0.5
    assert found["power"] == pytest.approx(2 / 3)
    assert found["wrong"] == pytest.approx(1 / 3)
    assert found["decided"] == 1.0
    assert not any(TARGETS[name].met(records) for name in ("false", "power", "wrong", "calibration"))
    assert "| 8 | classes | – | – | 1/2, 1/1 | – |" in null_and_power.table(records)
    assert null_and_power.draw(records).axes


def test_calibration_error_is_the_distance_between_stated_and_observed():
    right, wrong = verdict("trivial", 0.8, 0.2), verdict("reversal", 0.8, 0.2)
    assert calibration_error([right] * 4 + [wrong]) == pytest.approx(0.0)
    assert calibration_error([wrong] * 5) == pytest.approx(0.8)
    silent = replace(wrong, strength="nothing learned")
    assert calibration_error([right] * 4 + [wrong, silent]) == pytest.approx(0.0), "no verdict, no judgement"


def test_simulations_of_christie_and_aston_compare_all_subgroups_of_the_square():
    for dim in (2, 4):
        found = simulations.flips(f"d = {dim}", 100, 0)
        orders = [g.order for g in found.hypotheses()]
        assert sorted(orders) == [1, 2, 2, 2, 2, 2, 4, 4, 4, 8]
        assert found.true_group().order == 4
        assert not found.is_true("exchange")
        assert 1.2 < found.x.std() < 1.6


@pytest.mark.parametrize("name", simulations.POLYNOMIAL)
def test_polynomials_have_their_group_and_no_larger_one(name):
    drawn = simulations.polynomials(name, 50, 0)
    for group in drawn.hypotheses():
        moved = [simulations.POLYNOMIAL[name](x[:, :5]) for x in copies(drawn.x, group)[1]]
        unchanged = np.allclose(moved, drawn.y)
        assert unchanged == drawn.is_true(group.name)


def test_sums_do_not_depend_on_the_order_and_seeds_draw_other_numbers():
    recipes = simulations.STUDY.plan()
    assert len(recipes) == 300 + 7 * 20
    first, second = (simulations.sums("K = 6", 50, seed) for seed in (0, 1))
    assert np.abs(first.x.sum(1) - first.y).max() <= simulations.SUM_NOISE
    assert not np.array_equal(first.x, second.x)
    assert first.true_group().name == "permutations"


@pytest.mark.parametrize("name", [*COMPUTED, *TABLES])
def test_the_truth_of_the_panel_is_among_its_hypotheses(name):
    known = PANEL[name]
    learned, tested = known.problems(0)
    assert learned.true_group().name in {g.name for g in learned.hypotheses()}
    assert len(learned.x) <= 1000
    assert learned.x.shape[1] == tested.x.shape[1] == np.prod(known.shape)
    seen = {row.tobytes() for row in learned.x}
    if name != "Ising":  # two cold lattices may be equal
        assert sum(row.tobytes() in seen for row in tested.x) <= 0.1 * len(tested.x)


def moved(problem, name, seed=0):
    """Every input moved by a random element of a hypothesis."""
    group = next(g for g in problem.hypotheses() if g.name == name)
    elements = group.sample(len(problem.x), seed)
    x = np.concatenate([problem.x, -problem.x], axis=1)
    return np.take_along_axis(x, elements, axis=1)


LABELS = {
    "Connect-4": lambda x: computed.prospects(x) > 0,
    "poker hands": lambda x: computed.hand_category(
        x.reshape(-1, 5, 17)[..., :13].argmax(-1), x.reshape(-1, 5, 17)[..., 13:].argmax(-1)
    ),
    "parity": lambda x: x.prod(1) < 0,
    "Ising": lambda x: computed.energy(x.reshape(-1, 6, 6)),
    "Ising with weak rows": lambda x: computed.energy(x.reshape(-1, 6, 6), computed.ALONG_ROWS),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_are_computed_obey_their_symmetry_and_no_other(name):
    problem, _ = PANEL[name].problems(1)
    np.testing.assert_allclose(LABELS[name](problem.x), problem.y, atol=1e-12)
    for group in problem.hypotheses():
        same = np.isclose(LABELS[name](moved(problem, group.name)), problem.y, atol=1e-12)
        assert same.all() == problem.is_true(group.name)


def test_exchanging_the_sides_of_connect_four_exchanges_the_classes():
    x, y = computed.connect_four(200, 0)
    np.testing.assert_array_equal(computed.prospects(-x) > 0, y == 0)
    assert (x.sum(1) == 0).all(), "as many stones of one side as of the other"
    boards = x.reshape(-1, 6, 7)
    assert not ((boards[:, :-1] != 0) & (boards[:, 1:] == 0)).any(), "no stone hangs in the air"
    assert len(computed.LINES) == 69


@pytest.mark.parametrize(
    ("ranks", "suits", "category"),
    [
        ([0, 2, 4, 6, 8], [0, 1, 2, 3, 0], 0),
        ([0, 0, 4, 6, 8], [0, 1, 2, 3, 0], 1),
        ([0, 0, 4, 4, 8], [0, 1, 2, 3, 0], 2),
        ([0, 0, 0, 4, 8], [0, 1, 2, 3, 0], 2),
        ([8, 7, 6, 5, 4], [0, 1, 2, 3, 0], 2),
        ([12, 0, 1, 2, 3], [0, 1, 2, 3, 0], 2),
        ([12, 11, 0, 1, 2], [0, 1, 2, 3, 0], 0),
        ([0, 2, 4, 6, 8], [1, 1, 1, 1, 1], 2),
    ],
    ids=["high card", "pair", "two pairs", "three", "straight", "low ace", "no straight around", "flush"],
)
def test_hands_of_poker_are_told_apart(ranks, suits, category):
    assert computed.hand_category(np.array([ranks]), np.array([suits])) == category


def test_spirals_wind_the_other_way_in_a_mirror():
    x, y = computed.spirals(300, 0, ordered=True)
    points = x.reshape(-1, computed.POINTS, 2)

    def winding(points):
        along = points[..., 0] + 1j * points[..., 1]
        return np.angle(along[:, 1:] * along[:, :-1].conj()).sum(1) > 0

    assert np.mean(winding(points) == y) > 0.7
    mirrored = moved(Problem(x, y, (16, 2), (computed.mirror(),)), "mirror", seed=0).reshape(points.shape)
    assert set(np.unique(np.round(mirrored[..., 0] / points[..., 0]))) == {-1.0, 1.0}
    turns = computed.turns(8)
    assert turns.order == 8
    np.testing.assert_allclose(np.linalg.norm(turns.elements.numpy()[1] @ x[0]), np.linalg.norm(x[0]))


def test_reversed_waves_are_classes_of_their_own(monkeypatch):
    monkeypatch.setattr(computed, "WAVE_NOISE", 0.0)
    x, y = computed.waves(300, 0)
    spectra = np.abs(np.fft.fft(x))
    spectra /= spectra.max(1, keepdims=True)
    for wave in range(computed.WAVES):
        pair = np.isin(y, (wave, wave + computed.WAVES))
        np.testing.assert_allclose(spectra[pair] - spectra[pair][:1], 0, atol=1e-9)
    assert len(np.unique(y)) == 2 * computed.WAVES


def test_tiles_to_learn_from_and_to_test_on_are_apart():
    picture = np.arange(64 * 80, dtype=float).reshape(64, 80, 1)
    left, right = real_sets.tiles(picture, 16)
    assert left.shape == (12, 1, 16, 16)
    assert right.shape == (4, 1, 16, 16)
    assert (left % 80).max() + 16 < (right % 80).min()
    np.testing.assert_array_equal(left[0, 0], picture[:16, :16, 0])


def test_tiles_are_posed_in_all_eight_ways():
    tile = np.arange(9.0).reshape(1, 3, 3)
    found = real_sets.posed(np.repeat(tile[None], 200, axis=0), np.random.default_rng(0))
    assert len({pose.tobytes() for pose in found}) == 8


def test_series_are_read_without_their_package(tmp_path, monkeypatch):
    folder = tmp_path / "sktime/datasets/data/Tiny"
    folder.mkdir(parents=True)
    (tmp_path / "sktime/__init__.py").touch()
    for part, lines in (("TRAIN", "1,2,3:b\n4,5,6:a\n"), ("TEST", "7,8,9:b\n")):
        (folder / f"Tiny_{part}.ts").write_text(f"# about\n@problemName Tiny\n@data\n{lines}")
    monkeypatch.syspath_prepend(tmp_path)
    x, y = real_sets.read_series("Tiny")
    np.testing.assert_array_equal(x, [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    np.testing.assert_array_equal(y, [1, 0, 1])
    assert real_sets.missing_series() == ""


def test_a_false_truth_is_refused():
    with pytest.raises(ValueError, match="cyclic cannot be the truth: make it a candidate"):
        Problem(np.zeros((2, 4)), np.zeros(2), (4,), ("reversal",), ("cyclic",)).true_group()


def test_a_verdict_on_a_small_problem(brief_comparison):
    found = judge(simulations.sums("K = 4", 60, 0), 0)
    assert found.names[0] == "trivial"
    assert sum(found.probabilities) == pytest.approx(1, abs=1e-3)
    assert favourite(found) in found.names
    assert is_sure(found) == (max(found.probabilities) >= 0.9)


def test_the_panel_measures_ours_and_its_rivals(brief_comparison):
    (record,) = panel.run(panel.PanelRecipe("wine", 0, 60))
    assert set(record.scores) == {"ours", "mlp", "forest"}
    assert record.scores["forest"] > 80
    assert record.truth == "trivial"
    assert "| wine | 60 | trivial (meaning) |" in panel.table([record])
    unknown = replace(record, data="leaves", truth=None, proof="none")
    assert "| leaves | 60 | not known | – |" in panel.table([record, unknown])
    proved = replace(record, data="digits", proof="classes exchanged", probabilities=(0.95, 0.05, 0.0, 0.0))
    said = panel.claims([record, unknown, proved])["verdicts"].sentence
    assert said.startswith(
        "Of 1 verdicts on 1 sets whose truth is proved, 1 name it with at least 90 %. Of 2 verdicts"
    )


def test_the_default_is_timed_against_its_winner(brief_comparison):
    (record,) = cost_of_auto.run(cost_of_auto.CostRecipe("wine", 0, 60))
    assert record.seconds > record.comparison > 0
    assert record.alone > 0
    assert "The slowest verdict on at most 200 examples" in cost_of_auto.claims([record])["small"].sentence
    assert "| wine | 60 |" in cost_of_auto.table([record])


def test_the_page_shows_what_was_measured_and_names_the_command_for_the_rest(tmp_path):
    page = Page(tmp_path).render("truth")
    for name in ("null_and_power", "simulations", "panel", "cost_of_auto"):
        assert f"Not measured yet: `python -m studies run {name}`." in page
    found = simulations.Record(simulations.FLIPS, "d = 2", 100, 0, "a", ("a", "b"), (0.95, 0.05), "strong", 3.0)
    write(simulations.STUDY, tmp_path, [Piece({}, current_version(), None, None, None, (found,))])
    page = Page(tmp_path).render("truth")
    assert "| flips of a function, d = 2 | 100 | a | 1 of 1 | 1 | 0 | 0.98 / 0.57 / 0.95 | 3.0 |" in page
    assert "named as often as asked for in every setting." in page
    assert "run simulations`." not in page


def test_missed_targets_of_simulations_are_named():
    wrong = simulations.Record(simulations.FLIPS, "d = 4", 400, 0, "a", ("a", "b"), (0.05, 0.95), "strong", 3.0)
    assert not is_right(wrong)
    said = simulations.claims([wrong])["flips"].sentence
    assert "but for d = 4, n = 400 (0 % of 1, asked for 99 %)." in said
