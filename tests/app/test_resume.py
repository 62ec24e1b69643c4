"""A run that is interrupted, resumed, harmed or repeated: nothing is lost, and nothing is trained twice."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from problems import quickly_compared

from invariantnet import InvariantClassifier
from invariantnet._system.files import locked
from invariantnet.app import preparation, runs
from invariantnet.app.cli import main
from invariantnet.app.record import Settings, read_run
from invariantnet.app.runs import EVALUATION, fit
from invariantnet.data import duplicates, fingerprint
from invariantnet.data.fingerprint import hash_rows
from invariantnet.estimator import persistence
from invariantnet.estimator.persistence import MODEL
from invariantnet.inference import evidence
from invariantnet.inference.cache import FolderCache, NetworkKey
from invariantnet.inference.models import models_for
from invariantnet.inference.scoring import BlockScore, Scorer

pytestmark = pytest.mark.usefixtures("module_unchecked")
quick = pytest.mark.usefixtures("brief_comparison")
COMMAND = Path(sys.executable).parent / "invariantnet"
SLOW = ["fit", "digits:rotated", "--symmetries", "rot90", "--examples", "60", "--hidden", "8", "--epochs", "1"]
SLOW += ["--backbone", "mlp", "--n-networks", "1"]
LITTLE = Settings("digits:rotated", ("rot90",), backbone="mlp", examples=60, hidden=4, n_networks=1, epochs=1)


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, module_unchecked):
    folder = tmp_path_factory.mktemp("undisturbed")
    main([*SLOW, "--out", str(folder)])
    return contents(folder)


@pytest.fixture(scope="module")
def little(tmp_path_factory, module_unchecked):
    """The smallest run on digits."""
    folder = tmp_path_factory.mktemp("little")
    with quickly_compared():
        fit(LITTLE, folder)
    return folder


@pytest.fixture(scope="module")
def another(tmp_path_factory, module_unchecked):
    """The same with another seed."""
    folder = tmp_path_factory.mktemp("another")
    with quickly_compared():
        fit(replace(LITTLE, seed=1), folder)
    return folder


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
def test_an_interrupted_fit_goes_on_where_it_stopped(undisturbed, tmp_path, how, status, capfd):
    folder = tmp_path / "run"
    code, error = interrupted(folder, how, after=5)
    assert code == status
    assert "Traceback" not in error
    assert "--resume goes on" in error or how == signal.SIGKILL
    finished = {p: p.stat().st_mtime_ns for p in (folder / "unfinished").rglob("*.safetensors")}
    assert len(finished) >= 5
    main([*SLOW, "--out", str(folder), "--resume"])
    assert "results of the interrupted run are kept" in " ".join(capfd.readouterr().err.split())
    assert contents(folder) == undisturbed


@quick
def test_finished_scores_are_not_computed_again(tmp_path, monkeypatch):
    settings = replace(LITTLE, examples=100)
    calls = []
    original = Scorer.score

    def stop_after(n):
        def step(*a):
            if len(calls) > n:
                raise KeyboardInterrupt
            return original(*a)

        return lambda *a: calls.append(a[1]) or step(*a)

    monkeypatch.setattr(Scorer, "score", stop_after(3))
    with pytest.raises(KeyboardInterrupt):
        fit(settings, tmp_path)
    before = len(calls) - 1
    calls.clear()
    monkeypatch.setattr(Scorer, "score", lambda *a: calls.append(a[1]) or original(*a))
    fit(settings, tmp_path, resume=True)
    total = len(json.loads((tmp_path / "run.json").read_text())["posterior"]["race"]) * 2
    assert before == 3
    assert len(calls) <= total - before
    assert not (tmp_path / "unfinished").exists()


@quick
@pytest.mark.parametrize("over_another", [False, True])
@pytest.mark.parametrize("step", ["fit_baseline", "write_run", "last move"])
def test_a_fit_interrupted_after_its_training_does_not_train_again(
    little, another, tmp_path, monkeypatch, step, over_another
):
    folder = tmp_path / "run"
    if over_another:
        shutil.copytree(another, folder)
    with monkeypatch.context() as patch:
        owner, name = (Path, "replace") if step == "last move" else (runs, step)
        original = getattr(owner, name)
        # Files are moved into place by their temporary names; the model is the last.
        last = lambda *a: interrupt() if step != "last move" or a[0].name == MODEL else original(*a)  # noqa: E731
        patch.setattr(owner, name, last)
        with pytest.raises(KeyboardInterrupt):
            fit(LITTLE, folder, overwrite=over_another)
    if step != "fit_baseline" or not over_another:
        with pytest.raises(ValueError, match="was interrupted: finish it with --resume"):
            runs.write_report(folder)
    with monkeypatch.context() as patch:
        patch.setattr(InvariantClassifier, "fit_with", interrupt)
        fit(LITTLE, folder, resume=True)
    assert contents(folder) == contents(little)


@quick
def test_what_an_interrupted_fit_has_left_is_not_removed_in_silence(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(runs, "fit_baseline", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit(LITTLE, tmp_path)
    left = sorted(tmp_path.rglob("*"))
    for other in (LITTLE, replace(LITTLE, seed=1)):
        with pytest.raises(
            ValueError, match="an interrupted command: go on with --resume, begin anew with --over"
        ):
            fit(other, tmp_path)
    assert sorted(tmp_path.rglob("*")) == left
    fit(replace(LITTLE, seed=1), tmp_path, overwrite=True)
    assert read_run(tmp_path).settings.seed == 1


@quick
def test_a_fit_hashes_its_data_once_and_writes_its_model_once(little, tmp_path, monkeypatch):
    hashed = []
    for module in (duplicates, fingerprint):
        monkeypatch.setattr(module, "hash_rows", lambda x: hashed.append(len(x)) or hash_rows(x))
    written, original = [], persistence.write_bytes
    monkeypatch.setattr(
        persistence, "write_bytes", lambda path, content: written.append(path.name) or original(path, content)
    )
    fit(LITTLE, tmp_path)
    data = preparation.prepare(LITTLE).data
    assert hashed[:2] == [len(data.x_train), len(data.x_test)]
    assert len(hashed) == 4, (
        "the examples to learn from and the others once in the fit, and once in the line above"
    )
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
    for other in ({"seed": 1}, {"examples": 61}, {"hidden": 5}, {"test_share": 0.3}):
        named = next(iter(other)).replace("_", "-")
        with pytest.raises(ValueError, match=rf"a finished run with other settings \(--{named}\): go on with the"):
            fit(replace(LITTLE, **other), tmp_path, resume=True)
        with pytest.raises(KeyboardInterrupt):
            fit(replace(LITTLE, **other), tmp_path, resume=True, overwrite=True)
        assert "can be resumed (other settings, data or version, or damaged)" in capfd.readouterr().err
    with pytest.raises(ValueError, match="holds a finished run: replace it with --overwrite"):
        fit(LITTLE, tmp_path)
    assert contents(tmp_path) == contents(little)
    with pytest.raises(KeyboardInterrupt):
        fit(LITTLE, tmp_path, overwrite=True)


@quick
@pytest.mark.parametrize("harm", [MODEL, EVALUATION, "another run"])
def test_a_finished_fit_that_was_harmed_is_trained_again(little, tmp_path, harm):
    shutil.copytree(little, tmp_path, dirs_exist_ok=True)
    if harm == "another run":
        (tmp_path / "unfinished" / ("0" * 16)).mkdir(parents=True)
    else:
        (tmp_path / harm).write_bytes((little / harm).read_bytes()[:-9])
    fit(LITTLE, tmp_path, resume=True)
    assert contents(tmp_path) == contents(little)


@quick
def test_another_version_neither_uses_scores_nor_takes_the_run_for_finished(little, tmp_path, monkeypatch):
    shutil.copytree(little, tmp_path / "finished")
    with monkeypatch.context() as patch:
        patch.setattr(InvariantClassifier, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit(LITTLE, tmp_path / "run")
    (scores,) = (tmp_path / "run/unfinished").iterdir()
    trained, original = [], Scorer.score
    monkeypatch.setattr(Scorer, "score", lambda *a: trained.append(a) or original(*a))
    for module in (preparation, evidence):
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
    changed = models_for("mlp", (8, 8))
    for stage in ("training", "final"):
        other = replace(changed[0], **{stage: replace(getattr(changed[0], stage), weight_decay=0.2)})
        monkeypatch.setattr(preparation, "models_for", lambda *_, other=other: (other, *changed[1:]))
        assert preparation.prepare(LITTLE).digest != before


def test_a_folder_of_another_program_is_not_removed(tmp_path):
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
    with locked(tmp_path), pytest.raises(ValueError, match="another process is writing to"):
        fit(LITTLE, tmp_path)
    assert list(tmp_path.iterdir()) == []
