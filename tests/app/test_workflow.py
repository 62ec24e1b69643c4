"""A run from start to end, as a user lives it: fit, interrupt, go on, predict, report, export."""

import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet._system.files import locked
from invariantnet.app import preparation, runs
from invariantnet.app.cli import main
from invariantnet.app.predictions import predict
from invariantnet.app.preparation import Reading, with_test_set
from invariantnet.app.record import Settings, read_run
from invariantnet.app.runs import EVALUATION, fit
from invariantnet.data import load
from invariantnet.estimator import base as estimator_base
from invariantnet.estimator import networks, persistence
from invariantnet.estimator.persistence import MODEL
from invariantnet.inference import race
from invariantnet.inference.cache import FolderCache, NetworkKey
from invariantnet.inference.scoring import BlockScore, Scorer

COMMAND = Path(sys.executable).parent / "invariantnet"
DIGITS = (
    "fit",
    "digits:rotated",
    "--symmetries",
    "rot90",
    "--examples",
    "600",
    "--hidden",
    "32",
    "--epochs",
    "10",
)


def run(*arguments, **options):
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    result = run(*DIGITS, "--out", folder)
    assert result.returncode == 0, result.stderr
    assert "decisive: the symmetry rot90" in result.stdout
    assert result.stdout.strip().endswith("report.html")
    return folder


def test_fit_stores_model_record_and_report(model):
    assert {p.name for p in model.iterdir()} == {
        "model.safetensors",
        "evaluation.safetensors",
        "run.json",
        "report.html",
    }
    record = json.loads((model / "run.json").read_text())
    assert record["chosen"] == "rot90"
    assert record["data"]["test_accuracy"] > 0.8
    assert record["posterior"]["names"] == ["trivial", "rot90"]


def test_predict_writes_labels_and_probabilities(model, tmp_path):
    result = run("predict", model, "digits:rotated", "--out", tmp_path / "new/p.csv")
    assert result.stdout.strip() == str(tmp_path / "new/p.csv")
    with (tmp_path / "new/p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:3] == ["input", "label", "p(0)"]
    for row in rows[:20]:
        p = {name: float(v) for name, v in row.items() if name.startswith("p(")}
        assert sum(p.values()) == pytest.approx(1, abs=1e-4)
        assert max(p, key=p.get) == f"p({row['label']})"
    assert run("predict", model, "digits:rotated").stdout == (tmp_path / "new/p.csv").read_text()


def test_report_and_export_from_the_folder(model, tmp_path):
    before = (model / "report.html").read_bytes()
    assert run("report", model).stdout.strip() == str(model / "report.html")
    assert (model / "report.html").read_bytes() == before
    assert run("export", model, tmp_path / "m.onnx").returncode == 0
    x = np.random.default_rng(0).random((4, 8, 8)).astype(np.float32)
    (p,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})
    np.testing.assert_allclose(p, InvariantClassifier.load(model).predict_proba(x), atol=1e-4)


def test_own_images(tmp_path):
    """Left or right half bright, in two classes of which each is its own mirror image: bars or crosses."""
    rng = np.random.default_rng(0)
    for name in ("bar", "cross"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(60):
            image = rng.integers(0, 60, (12, 12), dtype=np.uint8)
            row = rng.integers(2, 10)
            image[row] = 255
            if name == "cross":
                image[:, rng.integers(2, 10)] = 255
            Image.fromarray(image).save(tmp_path / "photos" / name / f"{i}.png")
    result = run("fit", "photos", "--symmetries", "hflip,vflip", "--size", "8,8", "--hidden", "32", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / "runs/fit/run.json").read_text())
    assert "24 of its 120 examples kept for testing" in record["data"]["source"]
    assert record["learned"]["classes"] == ["bar", "cross"]
    rows = run("predict", "runs/fit", "photos", cwd=tmp_path).stdout.splitlines()
    assert len(rows) == 121
    assert rows[1].startswith("bar/0.png,")


def test_own_table_as_json(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    species = np.where(np.abs(x[:, 0]) > 0.7, "far", "near")
    lines = ["a,b,c,d,species", *(",".join([*map(str, row), name]) for row, name in zip(x, species, strict=True))]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    result = run("fit", "table.csv", "--label", "species", "--json", "--hidden", "32", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["settings"]["symmetries"] == "auto"
    assert {"sign", "reversal", "permutations"} <= set(record["posterior"]["names"]), "what suits a table"
    assert record["chosen"] == "sign"
    assert record == json.loads((tmp_path / "runs/fit/run.json").read_text())
    (tmp_path / "new.csv").write_text("a,b,c,d\n2,0,0,0\n0.1,0,0,0\n")
    labels = [
        line.split(",")[1] for line in run("predict", "runs/fit", "new.csv", cwd=tmp_path).stdout.splitlines()
    ]
    assert labels == ["label", "far", "near"]


QUICK = {"hidden": 16, "n_networks": 1, "epochs": 5}


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


SLOW = (*DIGITS, "--n-networks", "4")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(*SLOW, "--out", folder).returncode == 0
    return contents(folder)


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def interrupted(folder, how, after):
    process = subprocess.Popen(
        [COMMAND, *SLOW, "--out", folder],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # A shell that runs the tests in the background ignores Ctrl-C, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while len(list((folder / "unfinished").rglob("*.safetensors"))) < after:
        assert time.monotonic() < deadline
        assert process.poll() is None, "finished before it could be interrupted"
        time.sleep(0.02)
    process.send_signal(how)
    _, error = process.communicate(timeout=60)
    return process.returncode, error.decode()


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_interrupted_fit_goes_on_where_it_stopped(undisturbed, tmp_path, how, status):
    folder = tmp_path / "run"
    code, error = interrupted(folder, how, after=5)
    assert code == status
    assert "Traceback" not in error
    assert "--resume goes on" in error or how == signal.SIGKILL
    finished = {p: p.stat().st_mtime_ns for p in (folder / "unfinished").rglob("*.safetensors")}
    assert len(finished) >= 5
    result = run(*SLOW, "--out", folder, "--resume")
    assert result.returncode == 0, result.stderr
    assert contents(folder) == undisturbed


def test_finished_scores_are_not_computed_again(tmp_path, monkeypatch):
    settings = Settings("digits:rotated", ("rot90",), examples=300, hidden=8, n_networks=1, epochs=1)
    calls = []
    original = Scorer.score

    def stop_after(n):
        def step(*a):
            if len(calls) > n:
                raise KeyboardInterrupt
            return original(*a)

        return lambda *a: calls.append(a[1].name) or step(*a)

    monkeypatch.setattr(Scorer, "score", stop_after(3))
    with pytest.raises(KeyboardInterrupt):
        fit(settings, tmp_path)
    before = len(calls) - 1
    calls.clear()
    monkeypatch.setattr(Scorer, "score", lambda *a: calls.append(a[1].name) or original(*a))
    fit(settings, tmp_path, resume=True)
    total = len(json.loads((tmp_path / "run.json").read_text())["posterior"]["race"]) * 2
    assert before == 3
    assert len(calls) <= total - before
    assert not (tmp_path / "unfinished").exists()


LITTLE = Settings("digits:rotated", ("rot90",), examples=200, hidden=8, n_networks=1, epochs=1)


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    """The smallest run on digits."""
    folder = tmp_path_factory.mktemp("little")
    fit(LITTLE, folder)
    return folder


@pytest.mark.parametrize("over_another", [False, True])
@pytest.mark.parametrize("step", ["fit_baseline", "write_run", "last move"])
def test_a_fit_interrupted_after_its_training_does_not_train_again(
    little, tmp_path, monkeypatch, step, over_another
):
    folder = tmp_path / "run"
    if over_another:
        fit(replace(LITTLE, seed=1), folder)
    with monkeypatch.context() as patch:
        owner, name = (Path, "replace") if step == "last move" else (runs, step)
        original = getattr(owner, name)
        # Files are moved into place by their temporary names; the model is the last.
        last = lambda *a: interrupt() if step != "last move" or a[0].name == MODEL else original(*a)  # noqa: E731
        patch.setattr(owner, name, last)
        with pytest.raises(KeyboardInterrupt):
            fit(LITTLE, folder)
    if step != "fit_baseline" or not over_another:
        with pytest.raises(ValueError, match="was interrupted: finish it with --resume"):
            runs.write_report(folder)
    with monkeypatch.context() as patch:
        patch.setattr(InvariantClassifier, "fit_with", interrupt)
        fit(LITTLE, folder, resume=True)
    assert contents(folder) == contents(little)


def test_a_fit_hashes_its_data_once_and_writes_its_model_once(little, tmp_path, monkeypatch):
    monkeypatch.setattr(estimator_base, "fingerprint", interrupt)
    written, original = [], persistence.write_bytes
    monkeypatch.setattr(
        persistence, "write_bytes", lambda path, content: written.append(path.name) or original(path, content)
    )
    fit(LITTLE, tmp_path)
    assert written == [MODEL]
    assert contents(tmp_path) == contents(little)


def test_a_finished_fit_is_not_trained_again(little, tmp_path, monkeypatch, capfd):
    shutil.copytree(little, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(InvariantClassifier, "fit_with", interrupt)
    monkeypatch.setattr(runs, "fit_baseline", interrupt)
    (tmp_path / "report.html").unlink()
    (tmp_path / "unfinished" / read_run(little).digest).mkdir(parents=True)
    fit(replace(LITTLE, n_jobs=2), tmp_path, resume=True)
    assert contents(tmp_path) == contents(little)
    assert "holds the finished run of these settings and data: nothing to train" in capfd.readouterr().err
    for other in ({"seed": 1}, {"examples": 201}, {"hidden": 9}):
        with pytest.raises(KeyboardInterrupt):
            fit(replace(LITTLE, **other), tmp_path, resume=True)
    with pytest.raises(KeyboardInterrupt):
        fit(LITTLE, tmp_path)


@pytest.mark.parametrize("harm", [MODEL, EVALUATION, "another run"])
def test_a_finished_fit_that_was_harmed_is_trained_again(little, tmp_path, harm):
    shutil.copytree(little, tmp_path, dirs_exist_ok=True)
    if harm == "another run":
        (tmp_path / "unfinished" / ("0" * 16)).mkdir(parents=True)
    else:
        (tmp_path / harm).write_bytes((little / harm).read_bytes()[:-9])
    fit(LITTLE, tmp_path, resume=True)
    assert contents(tmp_path) == contents(little)


def test_another_version_neither_uses_scores_nor_takes_the_run_for_finished(little, tmp_path, monkeypatch):
    shutil.copytree(little, tmp_path / "finished")
    with monkeypatch.context() as patch:
        patch.setattr(InvariantClassifier, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit(LITTLE, tmp_path / "run")
    (scores,) = (tmp_path / "run/unfinished").iterdir()
    trained, original = [], Scorer.score
    monkeypatch.setattr(Scorer, "score", lambda *a: trained.append(a) or original(*a))
    for module in (preparation, race):
        monkeypatch.setattr(module, "package_version", lambda: "999")
    # Even under the name of its own work, a version does not find the scores of another.
    scores.rename(scores.parent / preparation.prepare(LITTLE).digest)
    fit(LITTLE, tmp_path / "run", resume=True)
    networks = len(trained)
    assert networks == 2 * len(read_run(little).model.posterior.race)
    fit(LITTLE, tmp_path / "finished", resume=True)
    assert len(trained) == 2 * networks


def test_other_settings_of_training_are_another_run(monkeypatch):
    before = preparation.prepare(LITTLE).digest
    monkeypatch.setattr(networks, "FINAL", replace(networks.FINAL, weight_decay=0.2))
    assert preparation.prepare(LITTLE).digest != before


def test_somebody_elses_folder_of_the_name_is_not_removed(tmp_path):
    theirs = tmp_path / "unfinished" / "thesis.tex"
    theirs.parent.mkdir()
    theirs.write_text("years of work")
    for resume in (False, True):
        with pytest.raises(ValueError, match="is not from this program, which needs that name: move it"):
            fit(LITTLE, tmp_path, resume=resume)
    assert list(tmp_path.rglob("*")) == [theirs.parent, theirs]
    assert theirs.read_text() == "years of work"


def test_store_takes_a_torn_file_for_an_absent_one(tmp_path):
    key = NetworkKey("race", "../a", 0, 1)
    store = FolderCache(tmp_path)
    store[key] = BlockScore(np.array([1.0, 2.0]), {"x": 0.5})
    again = FolderCache(tmp_path)
    assert key in again
    np.testing.assert_array_equal(again[key].log_likelihood, [1.0, 2.0])
    assert again[key].accuracy == {"x": 0.5}
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    assert key not in FolderCache(tmp_path)
    del again[key]
    assert list(again) == []
    assert list(tmp_path.iterdir()) == []


def test_second_process_on_one_folder_is_told_so(tmp_path):
    with locked(tmp_path):
        result = run(*DIGITS, "--out", tmp_path)
    assert result.returncode == 2
    assert "another process is writing to" in result.stderr
    assert list(tmp_path.iterdir()) == []
