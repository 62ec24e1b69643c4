"""A run from start to end, as a user lives it: fit, interrupt, go on, predict, report, export."""

import csv
import json

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet.app.cli import main
from invariantnet.app.predictions import predict
from invariantnet.app.preparation import Reading, with_test_set
from invariantnet.app.record import Settings
from invariantnet.app.runs import fit
from invariantnet.data import load

pytestmark = pytest.mark.usefixtures("annotations_unchecked")
QUICK = {"backbone": "mlp", "hidden": 16, "n_networks": 1, "epochs": 5}
OPTIONS = ("--backbone", "mlp", "--hidden", "16", "--n-networks", "1", "--epochs", "100")
quick = pytest.mark.usefixtures("brief_comparison")


@pytest.fixture
def run(capfd):
    """Run a command; what it prints."""

    def run(*arguments):
        main([str(argument) for argument in arguments])
        return capfd.readouterr().out

    return run


def test_the_command_says_what_it_found_and_where(digits_run):
    said = (digits_run.parent / "said.txt").read_text()
    assert "decisive: quarter turns (rot90)" in said
    assert said.strip().endswith("report.html")


def test_fit_stores_model_record_and_report(digits_run):
    assert {p.name for p in digits_run.iterdir()} == {
        "model.safetensors",
        "evaluation.safetensors",
        "run.json",
        "report.html",
    }
    record = json.loads((digits_run / "run.json").read_text())
    assert record["chosen"] == "rot90"
    assert record["data"]["test_accuracy"] > 0.8
    assert record["posterior"]["names"] == ["trivial", "flips", "rot90", "d4"]


def test_predict_writes_labels_and_probabilities(digits_run, run, tmp_path):
    said = run("predict", digits_run, "digits:rotated", "--out", tmp_path / "new/p.csv")
    assert said.splitlines()[-1] == str(tmp_path / "new/p.csv")
    with (tmp_path / "new/p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:3] == ["input", "label", "p(0)"]
    for row in rows[:20]:
        p = {name: float(v) for name, v in row.items() if name.startswith("p(")}
        assert sum(p.values()) == pytest.approx(1, abs=1e-4)
        assert max(p, key=p.get) == f"p({row['label']})"
    assert run("predict", digits_run, "digits:rotated") == (tmp_path / "new/p.csv").read_text()


def test_report_and_export_from_the_folder(digits_run, run, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.optim.Optimizer, "__init__", lambda *_, **__: pytest.fail("a report trains nothing"))
    before = (digits_run / "report.html").read_bytes()
    assert run("report", digits_run).strip() == str(digits_run / "report.html")
    assert (digits_run / "report.html").read_bytes() == before
    assert run("export", digits_run, tmp_path / "m.onnx").strip() == str(tmp_path / "m.onnx")
    x = np.random.default_rng(0).random((4, 8, 8)).astype(np.float32)
    (p,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})
    np.testing.assert_allclose(p, InvariantClassifier.load(digits_run).predict_proba(x), atol=1e-4)


@quick
def test_own_images(here, run):
    """Left or right half bright, in two classes of which each is its own mirror image: bars or crosses."""
    rng = np.random.default_rng(0)
    for name in ("bar", "cross"):
        (here / "photos" / name).mkdir(parents=True)
        for i in range(30):
            image = rng.integers(0, 60, (12, 12), dtype=np.uint8)
            row = rng.integers(2, 10)
            image[row] = 255
            if name == "cross":
                image[:, rng.integers(2, 10)] = 255
            Image.fromarray(image).save(here / "photos" / name / f"{i}.png")
    said = run("fit", "photos", "--symmetries", "hflip,vflip", "--size", "8,8", *OPTIONS)
    assert said.splitlines()[-1] == "runs/fit/report.html"
    record = json.loads((here / "runs/fit/run.json").read_text())
    assert "12 of its 60 examples kept for testing" in record["data"]["source"]
    assert record["learned"]["classes"] == ["bar", "cross"]
    rows = run("predict", "runs/fit", "photos").splitlines()
    assert len(rows) == 61
    assert rows[1].startswith("bar/0.png,")
    said = run("predict", "runs/fit", "photos", "--out", "p.csv").splitlines()
    right = sum(row.split(",")[0].split("/")[0] == row.split(",")[1] for row in rows[1:])
    assert said[0] == f"{100 * right / 60:.1f} % right of 60 labelled inputs"
    counts = np.array([line.split()[1:] for line in said[2:4]]).astype(object)
    assert sum(int(n) for n in counts.flat if n != "·") == 60
    assert run("predict", "runs/fit", "photos/bar/0.png").splitlines()[1].startswith("0.png,")


@quick
def test_own_table_as_json(here, run):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    species = np.where(np.abs(x[:, 0]) > 0.7, "far", "near")
    lines = ["a,b,c,species", *(",".join([*map(str, row), name]) for row, name in zip(x, species, strict=True))]
    (here / "table.csv").write_text("\n".join(lines))
    record = json.loads(run("fit", "table.csv", "--label", "species", "--json", *OPTIONS))
    assert record["settings"]["symmetries"] == "auto"
    assert {"sign", "reversal", "permutations"} <= set(record["posterior"]["names"]), "what suits a table"
    assert record["chosen"] == "sign"
    assert record == json.loads((here / "runs/fit/run.json").read_text())
    (here / "new.csv").write_text("a,b,c\n2,0,0\n0.1,0,0\n")
    labels = [line.split(",")[1] for line in run("predict", "runs/fit", "new.csv").splitlines()]
    assert labels == ["label", "far", "near"]


@quick
def test_columns_of_a_table_go_by_their_names(tmp_path):
    """`y` is an input here and `kind` the label: by position, or by the usual names of labels, all is wrong."""
    x = np.random.default_rng(0).normal(size=(200, 3))
    rows = [",".join(map(str, [*row, int(row[1] > 0)])) for row in x]
    (tmp_path / "t.csv").write_text("\n".join(["x,y,z,kind", *rows]))
    shuffled = [",".join(map(str, [7, row[2], row[0], row[1]])) for row in x]
    (tmp_path / "new.csv").write_text("\n".join(["id,z,x,y", *shuffled]))
    fit(Settings(str(tmp_path / "t.csv"), ("sign",), **QUICK), tmp_path / "run", reading=Reading(label="kind"))
    answers = []
    for name in ("t.csv", "new.csv"):
        predict(tmp_path / "run", str(tmp_path / name), tmp_path / "p.csv")
        answers.append((tmp_path / "p.csv").read_text())
    assert answers[0] == answers[1]
    (tmp_path / "bare.csv").write_text("\n".join(rows))
    with pytest.raises(ValueError, match="no column 'x', 'y', 'z', which the model was fitted with"):
        predict(tmp_path / "run", str(tmp_path / "bare.csv"), None)


@quick
def test_a_column_that_counts_rows_is_named_and_can_be_left_out(tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=(60, 2))
    rows = [f"{i},{a},{b},{int(a > 0)}" for i, (a, b) in enumerate(x.tolist())]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,b,label", *rows]))
    settings = Settings(str(tmp_path / "t.csv"), ("sign",), **QUICK)
    fit(settings, tmp_path / "all")
    said = " ".join(capsys.readouterr().err.split())
    assert "id only counts the rows, and is an input all the same: leave it out with --without id." in said
    record = fit(settings, tmp_path / "some", reading=Reading(without=("id",)))
    assert record.data.columns == ("a", "b")
    assert "counts the rows" not in capsys.readouterr().err


@quick
def test_embedded_data_is_predicted_as_it_was_fitted(tmp_path):
    """The permutation of pixels is that of the fit's seed."""
    settings = Settings("digits:permuted", ("rot180",), seed=1, **{**QUICK, "epochs": 20})
    record = fit(settings, tmp_path / "run")
    predict(tmp_path / "run", "digits:permuted", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    data = load("digits:permuted", seed=1)
    right = np.mean(np.array(labels) == np.array(data.class_names)[data.y_test])
    assert right == pytest.approx(record.data.test_accuracy)
    assert right > 0.7


@quick
def test_predictions_of_a_regressor_that_was_saved_from_python(tmp_path, capfd):
    x = np.random.default_rng(0).normal(size=(60, 3))
    reg = InvariantRegressor(["sign"], hidden=4, n_networks=1, epochs=1, random_state=0).fit(x, 1e3 + x[:, 0] ** 2)
    reg.save(tmp_path / "model")
    (tmp_path / "new.csv").write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in x)]))
    main(["predict", str(tmp_path / "model"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv")])
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    mean, error = reg.predict(x.astype(np.float32), return_std=True)
    np.testing.assert_allclose([float(row["mean"]) for row in rows], mean, rtol=1e-6)
    np.testing.assert_allclose([float(row["standard error"]) for row in rows], error, rtol=1e-6)
    capfd.readouterr()
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path / "model")])
    assert "saved from Python" in capfd.readouterr().err


@quick
def test_no_class_goes_to_the_test_set_alone_and_no_test_set_is_no_number(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 4))
    y = np.array(["a"] * 20 + ["b"] * 19 + ["rare"])
    np.savez(tmp_path / "d.npz", x=x, y=y)
    for seed in range(6):
        settings = Settings(str(tmp_path / "d.npz"), ("sign",), seed=seed, test_share=0.5)
        data = with_test_set(load(settings.data), settings)
        assert set(data.y_train) == {0, 1, 2}
        assert len(data.x_train) == len(data.x_test) == 20
    fit(Settings(str(tmp_path / "d.npz"), ("sign",), test_share=0.0, **QUICK), tmp_path / "run")

    def refuse(constant):
        raise AssertionError(constant)

    json.loads((tmp_path / "run/run.json").read_text(), parse_constant=refuse)
    assert (tmp_path / "run/report.html").exists()
