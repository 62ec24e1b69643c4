"""The page in a real browser: it draws, moves, predicts, and sends nothing anywhere."""

import hashlib
import json
import shutil

import numpy as np
import pytest
import safetensors.torch
import torch
from bad_inputs import with_text_everywhere

import invariantnet as inv
from invariantnet import InvariantClassifier
from invariantnet.app.record import Settings, read_run
from invariantnet.app.runs import BASELINE, EVALUATION, fit, write_report
from invariantnet.estimator import load_estimator
from invariantnet.estimator.persistence import RUN, read_tensors
from invariantnet.report.baseline import restore_baseline
from invariantnet.symmetries.plain import both_names

pytestmark = pytest.mark.usefixtures("annotations_unchecked")
brief = pytest.mark.usefixtures("brief_comparison")
MALICE = "<script>alert(1)</script>"
QUICK = {"backbone": "mlp", "hidden": 16, "n_networks": 1, "epochs": 10}


def test_page_says_what_the_record_says(run, visit):
    record = read_run(run)
    page = visit(run / "report.html")
    text = page.inner_text("body")
    assert "The data is symmetric under quarter turns (rot90)." in text
    assert "without the symmetry, trained in the same way" in text
    assert "they learned from a part of the examples. The final network, above, learned from all of them." in text
    assert record.model.verdict in page.locator("details").first.text_content()
    for price in record.model.posterior.prices:
        assert f"{100 * price.accuracy['rot90']:.1f} %" in text
    assert f"{100 * record.evaluation.accuracy.baseline['d4']:.1f} %" in text
    assert record.model.versions["torch"] in text
    settings = page.inner_text("#settings")
    assert "shape of an input\n8 × 8\n" in settings
    assert "joins\nyes\n" in settings
    for chart in page.query_selector_all("svg"):
        assert chart.get_attribute("aria-label")
    for picture in page.query_selector_all("img"):
        assert picture.get_attribute("alt")


def test_both_networks_in_the_page_are_those_of_torch(run, visit):
    page = visit(run / "report.html")
    clf = InvariantClassifier.load(run)
    tensors = read_tensors(run / EVALUATION)
    weights = {n.removeprefix(BASELINE): v for n, v in tensors.items() if n.startswith(BASELINE)}
    baseline = restore_baseline(clf, weights)
    x = np.random.default_rng(0).random((5, 64)).astype(np.float32)
    for row, ours in zip(x, clf.predict_proba(x), strict=True):
        np.testing.assert_allclose(
            page.evaluate("x => invariantnet.predict('chosen', x)", row.tolist()), ours, atol=1e-4
        )
        with torch.no_grad():
            theirs = baseline(torch.from_numpy(row)[None])[0].softmax(-1)
        np.testing.assert_allclose(
            page.evaluate("x => invariantnet.predict('baseline', x)", row.tolist()), theirs, atol=1e-4
        )


def change(page, which):
    return float(page.inner_text(f"#change-{which}").split()[-1])


def test_moving_an_input_moves_only_the_network_without_the_symmetry(run, visit):
    page = visit(run / "report.html")
    first = page.evaluate("invariantnet.input()")
    said = page.inner_text("#best-chosen")
    plain = []
    for _ in range(4):
        page.get_by_role("button", name="rotate").click()
        assert change(page, "chosen") < 1e-4
        assert page.inner_text("#best-chosen") == said
        plain.append(change(page, "baseline"))
    assert max(plain) > 0.01
    assert page.evaluate("invariantnet.input()") == first
    page.get_by_role("button", name="shift →").click()
    assert change(page, "chosen") > 1e-3, "not a symmetry that it has"
    page.select_option("#pick", index=1)
    assert page.evaluate("invariantnet.input()") != first


@pytest.mark.parametrize(
    "device",
    [{"viewport": {"width": 1200, "height": 900}}, {"viewport": {"width": 390, "height": 844}, "has_touch": True}],
)
def test_a_visitor_draws_and_reads_both_predictions(run, visit, device):
    page = visit(run / "report.html", **device)
    assert page.evaluate("document.documentElement.scrollWidth") <= device["viewport"]["width"]
    page.get_by_role("button", name="clear").click()
    empty = page.evaluate("invariantnet.input()")
    page.locator("#input").scroll_into_view_if_needed()
    box = page.locator("#input").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 20, steps=12)
    page.mouse.up()
    drawn = page.evaluate("invariantnet.input()")
    assert sum(drawn) > sum(empty) + 3
    for which in ("chosen", "baseline"):
        rows = page.locator(f"[data-network={which}] .row span:last-child").all_inner_texts()
        assert sum(map(float, rows)) == pytest.approx(1, abs=0.01)
        assert page.inner_text(f"#best-{which}")
    assert page.screenshot(full_page=True).startswith(b"\x89PNG")


@brief
def test_text_from_data_is_text(tmp_path, visit):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6))
    name = tmp_path / "x<img src=x onerror=alert(2)>.npz"
    np.savez(name, x=x, y=np.where(np.abs(x[:, 0]) > 0.7, MALICE, "</script><b>near"))
    fit(Settings(str(name), ("sign",), tolerance=9.0, **QUICK), tmp_path / "run")
    page = visit(tmp_path / "run/report.html")
    assert MALICE in page.inner_text("[data-network=chosen]")
    assert page.locator("body b").count() == 0
    assert page.locator("h1 img").count() == 0
    assert "default-src 'none'" in page.content()
    page.get_by_role("button", name="sign").click()
    assert change(page, "chosen") < 1e-4


def test_a_page_made_of_a_strangers_record_is_inert(run, tmp_path, visit):
    malice = f"<img src=x onerror=alert(3)>{MALICE}\"'"

    shutil.copytree(run, tmp_path / "run")
    record = json.loads((run / RUN).read_text())
    record |= {part: with_text_everywhere(record[part], malice) for part in ("verdict", "versions")}
    record["settings"] |= {"data": malice, "symmetries": [malice]}
    record["data"]["source"] = record["learned"]["fingerprint"] = malice
    record["learned"]["classes"] = [f"{i}{malice}" for i in record["learned"]["classes"]]
    (tmp_path / "run/run.json").write_text(json.dumps(record))
    page = visit(write_report(tmp_path / "run"))
    assert malice in page.inner_text("body")
    assert page.locator("img[onerror]").count() == 0
    assert page.locator("script").count() == visit(run / "report.html").locator("script").count()


def waves(length, labels):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, *length)).astype(np.float32)
    return {"x": x, "y": labels(x)}


NETWORKS = {
    "convolutions": ({}, "rot90", {"backbone": "cnn"}),
    "convolutions along a sequence": (
        waves((20, 2), lambda x: x.sum((1, 2)) > 0),
        "reversal",
        {"backbone": "cnn"},
    ),
    "circular convolutions": (waves((70,), lambda x: x.sum(1) > 0), "cyclic", {}),
    "sets": (waves((6, 2), lambda x: x.sum((1, 2)) > 0), "permutations", {}),
    "means of outputs": (waves((6,), lambda x: x.sum(1) > 0), "sign", {"placement": "outputs"}),
    "ranges": ({}, "hflip+rotation:30", {"backbone": "plain cnn"}),
    "ranges of sequences": (waves((20, 2), lambda x: x.sum((1, 2)) > 0), "time-shift:3", {}),
    "numbers": (waves((6,), lambda x: abs(x).sum(1)), "sign", {"placement": "outputs", "pool": "mean"}),
}


BRIGHT_SHARE = """() => {
    const canvas = document.getElementById("input");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.filter((v, i) => i % 4 === 0 && v > 128).length / (pixels.length / 4);
}"""


@brief
@pytest.mark.parametrize("case", NETWORKS)
def test_networks_of_every_kind_run_inside_the_page(case, tmp_path, visit):
    arrays, symmetry, options = NETWORKS[case]
    if arrays:
        np.savez(tmp_path / "d.npz", **arrays)
    source = str(tmp_path / "d.npz") if arrays else "digits:rotated"
    settings = Settings(source, (symmetry,), tolerance=99.0, examples=60, **{**QUICK, "epochs": 3, **options})
    fit(settings, tmp_path / "run")
    page, clf = visit(tmp_path / "run/report.html"), load_estimator(tmp_path / "run")
    assert clf.symmetry_.name == symmetry
    assert page.evaluate(BRIGHT_SHARE) > 0.01, "the input is drawn"
    x = np.random.default_rng(1).random((3, clf.n_features_in_)).astype(np.float32)
    numbers = case == "numbers"
    theirs = np.stack(clf.predict(x, return_std=True), 1) if numbers else clf.predict_proba(x)
    ours = [page.evaluate("x => invariantnet.predict('chosen', x)", row.tolist()) for row in x]
    np.testing.assert_allclose(ours, theirs, atol=2e-4, rtol=1e-4)
    if clf.network_.exact:
        page.locator("button[data-move]").first.click()
        assert change(page, "chosen") < 1e-3


@brief
def test_a_network_without_symmetry_has_no_baseline(tmp_path, visit):
    settings = Settings("digits:plain", ("rot90",), examples=60, **{**QUICK, "backbone": "cnn", "epochs": 2})
    fit(settings, tmp_path)
    text = visit(tmp_path / "report.html").inner_text("body")
    assert "no symmetry" in text
    assert "without the symmetry" not in text, "there is none to leave out"


def test_report_is_made_again_from_its_folder_alone(run, tmp_path):
    again = tmp_path / "copy"
    shutil.copytree(run, again)
    (again / "report.html").unlink()
    assert write_report(again).read_bytes() == (run / "report.html").read_bytes()
    # Without the weights of the baseline there is still a page.
    record, tensors = json.loads((again / RUN).read_text()), read_tensors(again / EVALUATION)
    content = safetensors.torch.save({n: v for n, v in tensors.items() if not n.startswith(BASELINE)})
    (again / EVALUATION).write_bytes(content)
    (again / RUN).write_text(json.dumps({**record, "evaluation_sha256": hashlib.sha256(content).hexdigest()}))
    assert "without the symmetry" not in write_report(again).read_text()
    (again / EVALUATION).write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is damaged"):
        write_report(again)
    InvariantClassifier.load(run).save(tmp_path / "python")
    with pytest.raises(ValueError, match="saved from Python"):
        write_report(tmp_path / "python")


def test_a_page_about_noise_claims_no_symmetry(run, tmp_path):
    shutil.copytree(run, tmp_path / "noise")
    record = json.loads((run / RUN).read_text())
    record["posterior"]["learned"] = False
    (tmp_path / "noise/run.json").write_text(json.dumps(record))
    text = write_report(tmp_path / "noise").read_text()
    assert "The data is symmetric" not in text
    assert "No network has learned to predict the labels" in text


@brief
def test_doubts_are_shown_with_what_the_networks_disagree_about(tmp_path, visit):
    settings = Settings(
        "digits:rotated", ("rot90",), examples=120, uncertainty="laplace", second_opinion=True, **QUICK
    )
    record = fit(settings, tmp_path / "run")
    page = visit(tmp_path / "run/report.html")
    figures = page.locator("#doubtful figure")
    assert figures.count() == 8
    assert "of them its own" in figures.first.inner_text()
    doubts = [item.size for item in record.evaluation.doubtful]
    assert doubts == sorted(doubts, reverse=True)
    assert "Laplace's approximation" in page.locator("details").first.text_content()
    posterior = record.model.posterior
    agrees = (posterior.laplace[1] > posterior.laplace[0]) == (posterior.probabilities[1] > 0.5)
    assert ("It agrees" if agrees else "It disagrees") in page.content()
    assert all(0 <= item.epistemic <= item.size + 1e-6 for item in record.evaluation.doubtful)


@brief
def test_a_huge_group_without_a_network_of_its_own_is_said_to_be_sampled(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 7, 2, 2)).astype(np.float32)
    np.savez(tmp_path / "layers.npz", x=x, y=x.sum((1, 2, 3)) > 0)
    fit(Settings(str(tmp_path / "layers.npz"), ("channels",), tolerance=9.0, **QUICK), tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "is averaged over 128 sampled elements of any order of the channels" in page
    assert "5,040" in page


@brief
def test_a_huge_group_with_a_network_of_its_own_is_exact(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 200)).astype(np.float32)
    np.savez(tmp_path / "sets.npz", x=x, y=x.sum(1) > 0)
    fit(Settings(str(tmp_path / "sets.npz"), ("permutations",), tolerance=9.0, **QUICK), tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "is exactly invariant to any order of entries" in page
    assert "7.8e+374" in page


@brief
def test_a_mixture_of_schemes_is_not_called_invariant(tmp_path):
    record = fit(Settings("digits:rotated", ("rot90",), "paper", examples=300, **QUICK), tmp_path / "run")
    assert not record.model.exact
    page = (tmp_path / "run/report.html").read_text()
    assert "exactly invariant to" not in page
    assert "mixes weight-sharing schemes, most of all" in page


@brief
def test_a_slider_moves_the_input_as_the_range_does(tmp_path, visit):
    settings = Settings("digits:rotation:45", ("rotation:90", "contrast:2"), joins=False, examples=60, **QUICK)
    fit(settings, tmp_path)
    page = visit(tmp_path / "report.html")
    assert page.locator("input[data-slider]").count() == 1, "contrast is no affine map"
    before = np.array(page.evaluate("invariantnet.input()"), dtype=np.float32)
    turn, label = page.locator("input[data-slider]"), page.locator("#slid-0")
    assert label.text_content() == "0°"
    turn.fill("36")
    assert label.text_content() == "+45°"
    turns = inv.symmetry("rotation:90", shape=(8, 8))
    expected = turns.move(torch.from_numpy(before), [0.5]).numpy()
    np.testing.assert_allclose(page.evaluate("invariantnet.input()"), expected, atol=1e-5)
    assert "the last move changed a probability" in page.locator("#change-chosen").text_content()
    turn.fill("48")
    np.testing.assert_allclose(
        page.evaluate("invariantnet.input()"), np.rot90(before.reshape(8, 8)).flatten(), atol=1e-6
    )
    turn.fill("24")
    assert np.array_equal(page.evaluate("invariantnet.input()"), before), "sliders do not add up"


def test_neither_short_names_nor_colours_stand_alone(run, visit):
    page = visit(run / "report.html")
    race = page.locator("#race svg").text_content()
    assert "no symmetry" in race
    assert "trivial" not in race
    said = page.locator("#race p").inner_text()
    for name in read_run(run).model.posterior.names:
        assert both_names(name) in said, "the picture has only the short one"
    assert "moved by quarter turns and mirror images" in page.locator("#prices thead").inner_text()
    wrong = page.locator("#copies .wrong").all_text_contents()
    assert wrong
    assert all(text.endswith("✗") for text in wrong)
    assert page.locator("#copies figcaption span", has_text="✗").count() == len(wrong)
