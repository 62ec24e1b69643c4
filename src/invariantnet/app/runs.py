"""`invariantnet fit`: from a data set to a folder with a verdict, a network and a page."""

import hashlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
from torch import Tensor, nn

from invariantnet._system.files import locked, writable_folder, write_bytes, write_text
from invariantnet._system.progress import say, working
from invariantnet.app.preparation import (
    AS_IT_IS,
    Prepared,
    Reading,
    deciding,
    make_estimator,
    prepare,
    say_if_classes_may_be_numbers,
    say_row_numbers,
)
from invariantnet.app.record import DataRecord, RunRecord, Settings, read_run, write_run
from invariantnet.app.unfinished import check_not_interrupted, check_ours, say_nothing_to_resume
from invariantnet.data.arrays import DiskArray, as_inputs
from invariantnet.estimator import load_estimator
from invariantnet.estimator.invariance import network_deviation
from invariantnet.estimator.persistence import (
    MODEL,
    RUN,
    UNFINISHED,
    ModelRecord,
    check_digest,
    read_model_record,
    read_tensors,
)
from invariantnet.estimator.stored import Backbone
from invariantnet.inference.cache import FolderCache
from invariantnet.report.answers import Estimator
from invariantnet.report.baseline import fit_baseline, needs_baseline, restore_baseline
from invariantnet.report.evaluation import ShownInputs, evaluate
from invariantnet.report.page import Subject, render
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.training.distributed import processes

EVALUATION, REPORT = "evaluation.safetensors", "report.html"
"""Names inside the folder of a run: the baseline and the inputs that the page shows, and the page."""

BASELINE = "baseline."
"""Prefix of the tensors that hold the weights of the baseline."""

FITTED = "fitted"
"""Folder of the fitted model while the run has not ended."""


def fit(
    settings: Settings,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    reading: Reading = AS_IT_IS,
) -> RunRecord | None:
    """Fit a classifier or a regressor and write everything about it to a folder.

    Args:
        settings: What to do.
        out: Folder to write to.
        resume: Whether to go on with an interrupted run of the same settings and data.
        overwrite: Whether to replace a finished run in the folder.
        reading: How files are read.

    Returns:
        The record; None in the processes that only help another to train.

    Raises:
        ValueError: If settings, data or folder cannot be used.
    """
    visible = not processes().rank
    if _holds_a_run(out) and not (resume or overwrite):
        raise ValueError(
            f"{out} holds a finished run: replace it with --overwrite, or keep it and pass another --out."
        )
    with working(f"reading {settings.data}", visible=visible):
        prepared = prepare(settings, reading)
    say_row_numbers(prepared.row_numbers, visible=visible)
    say_if_classes_may_be_numbers(prepared.data, settings, visible=visible)
    work = out / UNFINISHED
    cache = FolderCache(work / prepared.digest, writes=not processes().rank)
    if processes().rank:
        finished = resume and _is_finished(out, cache, prepared.own_backbone)
        processes().wait()  # until what an earlier run left is gone
        return None if finished else _fit(settings, prepared, out, cache)
    writable_folder(out)
    check_ours(work)
    with locked(out):
        if not (resume or overwrite):
            check_not_interrupted(out, work)
        if work.exists() and not resume:
            shutil.rmtree(work)
        finished = resume and _is_finished(out, cache, prepared.own_backbone)
        processes().wait()
        if not finished:
            if resume and not cache.folder.exists() and (work.exists() or (out / RUN).exists()):
                if not overwrite:
                    _refuse_other_settings(out, settings)
                say_nothing_to_resume(out)
            if resume and cache.kept:
                words = (
                    f"Going on: {cache.kept:,} results of the interrupted run are kept, and their time is saved."
                )
                say(words, visible=visible)
            return _fit(settings, prepared, out, cache)
        print(f"{out} holds the finished run of these settings and data: nothing to train.", file=sys.stderr)
        return _close(out, prepared.own_backbone)


def write_report(folder: Path, backbone: Backbone | None = None) -> Path:
    """Write the page of a run beside its record; nothing is trained.

    Args:
        folder: Folder of the run.
        backbone: The backbone of the user's own that it was fitted with.

    Returns:
        The file that was written.

    Raises:
        ValueError: If the folder holds no run, or a damaged one.
    """
    record = read_run(folder)
    if record is None:
        raise ValueError(f"{folder} holds a model that was saved from Python: `invariantnet fit` makes reports.")
    estimator, tensors = load_estimator(folder, backbone=backbone), read_tensors(folder / EVALUATION)
    check_digest(folder, EVALUATION, record.evaluation_sha256)
    try:
        page = render(_subject(record, estimator, tensors))
    except Exception as error:  # files of a stranger can hold anything anywhere
        raise ValueError(f"no page can be made of {folder / RUN} ({error}): fit again.") from None
    write_text(folder / REPORT, page)
    return folder / REPORT


def _holds_a_run(out: Path) -> bool:
    try:
        return (out / RUN).exists()
    except (OSError, ValueError):  # no path at all: a later check names the fault
        return False


def _refuse_other_settings(out: Path, settings: Settings) -> None:
    """Refuse to replace a finished run of other settings by going on with it."""
    try:
        record = read_run(out)
    except (ValueError, OSError):  # damaged: nothing is lost by a new one
        return
    before, now = (deciding(s) for s in (record.settings if record else settings, settings))
    if differing := [name.replace("_", "-") for name in now if now[name] != before[name]]:
        named = ", ".join(f"--{name}" for name in differing)
        raise ValueError(
            f"{out} holds a finished run with other settings ({named}): go on with the same, pass another --out, "
            "or replace it with --overwrite."
        )


def _is_finished(out: Path, cache: FolderCache, backbone: Backbone | None) -> bool:
    """Whether a run of the same settings, data and version is complete but for its page."""
    work = cache.folder.parent
    if work.exists() and any(folder != cache.folder for folder in work.iterdir()):
        return False  # another run had begun to write over it
    try:
        record = read_run(out)
        if record is None or record.digest != cache.folder.name:
            return False
        load_estimator(out, backbone=backbone)
        check_digest(out, EVALUATION, record.evaluation_sha256)
    except (ValueError, OSError):
        return False
    return True


def _fit(settings: Settings, prepared: Prepared, out: Path, cache: FolderCache) -> RunRecord | None:
    data, fitted = prepared.data, cache.folder / FITTED
    clf = _fitted_estimator(settings, prepared, cache)
    baseline = fit_baseline(clf, data.x_train, data.targets(data.y_train), prepared.known.rows)
    processes().wait()
    if processes().rank:
        return None
    with working(f"evaluating on {len(data.x_test):,} test examples", visible=True):
        evaluation, shown = evaluate(clf, baseline, data.x_test, data.targets(data.y_test))
    if evaluation.left_out:
        print(f"of the test data, {evaluation.left_out}", file=sys.stderr)
    score = evaluation.accuracy.chosen[TRIVIAL] if evaluation.test_examples else None
    content = safetensors.torch.save(_evaluation_tensors(baseline if needs_baseline(clf) else None, shown))
    record = RunRecord(
        data=DataRecord(
            source=data.provenance,
            examples=len(data.x_train),
            columns=data.columns,
            label=prepared.label,
            test_accuracy=None if data.has_numbers else score,
            test_explained=score if data.has_numbers else None,
        ),
        settings=settings,
        digest=prepared.digest,
        evaluation=evaluation,
        evaluation_sha256=hashlib.sha256(content).hexdigest(),
        model=_with_deviation(read_model_record(fitted), clf, data.x_test),
    )
    write_bytes(out / EVALUATION, content)
    write_run(out, record)
    # The last step: until here the fitted model is still among the unfinished work, and a crash loses nothing.
    (fitted / MODEL).replace(out / MODEL)
    return _close(out, prepared.own_backbone)


def _with_deviation(model: ModelRecord, clf: Estimator, x_test: np.ndarray | DiskArray) -> ModelRecord:
    """State the deviation from invariance on test inputs, where there are any."""
    measured = network_deviation(clf.network_, clf.symmetry_, as_inputs(x_test), clf.likelihood)
    return model if measured is None else replace(model, deviation=measured)


def _fitted_estimator(settings: Settings, prepared: Prepared, cache: FolderCache) -> Estimator:
    """Fit the estimator, or read it where an interrupted run has left it."""
    data, fitted, first = prepared.data, cache.folder / FITTED, not processes().rank
    if (fitted / RUN).exists():
        return load_estimator(fitted, backbone=prepared.own_backbone)
    clf = make_estimator(settings, data, backbone=prepared.backbone, verbose=int(first))
    clf.fit_with(data.x_train, data.targets(data.y_train), cache=cache, known=prepared.known)
    if first:
        clf.save(fitted)
    return clf


def _close(out: Path, backbone: Backbone | None) -> RunRecord | None:
    """Write the page, and remove what is left of the work."""
    with working("writing the page", visible=True):
        write_report(out, backbone)
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    return read_run(out)


def _evaluation_tensors(baseline: nn.Module | None, shown: ShownInputs) -> dict[str, Tensor]:
    weights = baseline.state_dict() if baseline else {}
    tensors = {f"{BASELINE}{name}": value for name, value in weights.items()} | vars(shown)
    return {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}


def _subject(record: RunRecord, clf: Estimator, tensors: dict[str, Tensor]) -> Subject:
    """What the page of a run is about."""
    weights = {name.removeprefix(BASELINE): value for name, value in tensors.items() if name.startswith(BASELINE)}
    return Subject(
        title=record.settings.data,
        source=record.data.source,
        examples=record.data.examples,
        model=record.model,
        estimator=clf,
        evaluation=record.evaluation,
        inputs=ShownInputs(tensors["examples"], tensors["doubtful"]),
        baseline=restore_baseline(clf, weights) if weights else None,
        settings=tuple(_settings(record)),
    )


def _settings(record: RunRecord) -> Iterator[tuple[str, str]]:
    """What a run was asked, and how its inputs were read, as the page lists it."""
    for name, value in vars(record.settings).items():
        yield name.replace("_", " "), _as_text(value)
        if name == "data":
            yield "shape of an input", " × ".join(map(str, record.model.learned.input_shape))
            if record.data.label:
                yield "label", record.data.label


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "default" if value is None else ", ".join(value) if isinstance(value, tuple) else str(value)
