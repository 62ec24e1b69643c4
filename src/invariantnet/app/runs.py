"""`invariantnet fit` and `predict`: from a data set to a folder with a verdict, a network and a page; and back."""

import codecs
import contextlib
import csv
import hashlib
import json
import re
import shutil
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch

from invariantnet import data as datasets
from invariantnet._system.files import locked, replacing, writable_file, writable_folder, write_bytes
from invariantnet.choices import Method, Uncertainty
from invariantnet.data import Dataset
from invariantnet.data.fingerprint import fingerprint
from invariantnet.estimator import InvariantClassifier, persistence
from invariantnet.inference.cache import FolderCache
from invariantnet.report import evaluate, fit_plain, write_report
from invariantnet.training.distributed import our_team

PLAIN = "plain.safetensors"
CHUNK = 2**22
"""Numbers of inputs that are predicted at once."""
SEEDS = 2**32


@dataclass(frozen=True)
class Settings:
    """What a run is about; equal settings give equal runs."""

    data: str
    symmetries: tuple[str, ...] | str
    method: Method = "evidence"
    backbone: str = "mlp"
    hidden: int = 100
    n_networks: int = 2
    epochs: int | None = None
    tolerance: float = 0.0
    uncertainty: Uncertainty = "none"
    second_opinion: bool = False
    examples: int | None = None
    test_share: float = 0.2
    seed: int = 0
    n_jobs: int = 1


def digest(settings: Settings, data: Dataset) -> str:
    """Names the folder of unfinished work: that of other settings or other data is none of ours.

    The number of processes does not change results, and neither does the name of a file.
    """
    fields = {k: v for k, v in asdict(settings).items() if k not in ("n_jobs", "data")}
    parts = (data.x_train, data.y_train), (data.x_test, data.y_test)
    about = [fields, [fingerprint(*part) for part in parts], data.shape, data.class_names]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def fit(settings: Settings, out: Path, *, resume: bool = False, **reading: Any) -> dict[str, Any]:
    """Fit a classifier, write everything about it to `out`, and return the record."""
    if settings.examples is not None and settings.examples < 2:
        raise ValueError(f"{settings.examples} examples are too few to learn from: ask for more.")
    if not 0 <= settings.test_share < 1:
        raise ValueError(f"a test share of {settings.test_share} is no share: pass a number from 0 to below 1.")
    if not 0 <= settings.seed < SEEDS:
        raise ValueError(f"{settings.seed} is no seed: pass a whole number from 0 to {SEEDS - 1}.")
    data = _with_test_set(datasets.load(settings.data, seed=settings.seed, **reading), settings)
    work = out / persistence.UNFINISHED
    store = FolderCache(work / digest(settings, data), writes=not our_team().rank)
    if our_team().rank:
        record = _finished(out, store) if resume else None
        our_team().wait()  # until what an earlier run left is gone
        return record or _fit(settings, data, out, store)
    writable_folder(out)
    if work.exists() and not _is_ours(work):
        raise ValueError(
            f"{work} is not from this program, which needs that name: move it, or pass another --out."
        )
    with locked(out):
        if work.exists() and not resume:
            shutil.rmtree(work)
        finished = resume and _finished(out, store)
        our_team().wait()
        if finished:
            print(f"{out} holds the finished run of these settings and data: nothing to train.", file=sys.stderr)
            return _closed(out)
        return _fit(settings, data, out, store)


def _is_ours(work: Path) -> bool:
    """Whether it holds nothing but folders that are named by a digest: what a fit leaves, and may remove."""
    return (
        not work.is_symlink()
        and work.is_dir()
        and all(re.fullmatch("[0-9a-f]{16}", f.name) for f in work.iterdir())
    )


def _finished(out: Path, store: FolderCache) -> dict[str, Any] | None:
    """The record of a run of the same settings and data whose networks are there."""
    work = store.folder.parent
    if work.exists() and any(folder != store.folder for folder in work.iterdir()):
        return None  # another run had begun to write over it
    try:
        stored = persistence.read_record(out)
        InvariantClassifier.load(out)
        persistence.read_tensors(out / PLAIN)
    except ValueError:
        return None
    return stored if stored.get("digest") == store.folder.name else None


def _closed(out: Path) -> dict[str, Any]:
    """The record, when the page is written too and nothing of the work is left."""
    write_report(out)
    shutil.rmtree(out / persistence.UNFINISHED, ignore_errors=True)
    return persistence.read_record(out)


def _fit(settings: Settings, data: Dataset, out: Path, store: FolderCache) -> dict[str, Any]:
    keep = np.random.default_rng(settings.seed).permutation(len(data.x_train))[: settings.examples]
    x, y = data.x_train[keep], data.y_train[keep]
    clf = InvariantClassifier(
        settings.symmetries,
        data.shape,
        settings.method,
        backbone=settings.backbone,
        hidden=settings.hidden,
        n_networks=settings.n_networks,
        epochs=settings.epochs,
        tolerance=settings.tolerance,
        uncertainty=settings.uncertainty,
        second_opinion=settings.second_opinion,
        n_jobs=settings.n_jobs,
        random_state=settings.seed,
        verbose=int(our_team().rank == 0),
    )
    names = np.array(data.class_names)
    fitted = store.folder / "fitted"
    if (fitted / persistence.RUN).exists():
        clf = InvariantClassifier.load(fitted)
    else:
        clf.fit_with(x, names[y], cache=store)
        if not our_team().rank:
            clf.save(fitted)
    plain = fit_plain(clf, x, names[y], settings.seed)
    if our_team().rank:
        return persistence.record(clf)
    evaluation = evaluate(clf, plain, data.x_test, names[data.y_test])
    write_bytes(out / PLAIN, safetensors.torch.save(plain.state_dict()))
    persistence.save(
        clf,
        out,
        data={
            "source": data.provenance,
            "examples": len(x),
            "columns": data.columns,
            "test_accuracy": evaluation["accuracy"]["chosen"][clf.hypotheses_[0].name]
            if len(data.x_test)
            else None,
        },
        settings=asdict(settings),
        digest=store.folder.name,
        evaluation=evaluation,
    )
    return _closed(out)


def predict(run: Path, source: str, out: Path | None, **reading: Any) -> None:
    """Labels and probabilities of new inputs as CSV, to a file or to standard output, a few at a time.

    Embedded data is moved and permuted as it was for the fit, and of a table the columns are those of the fit.
    """
    clf, record = InvariantClassifier.load(run), persistence.read_record(run)
    if out is not None:
        writable_file(out)
    seed, columns = record.get("settings", {}).get("seed", 0), record.get("data", {}).get("columns")
    names, x = datasets.load_inputs(source, seed=seed, shape=clf.input_shape_, columns=columns, **reading)
    with contextlib.nullcontext(sys.stdout.buffer) if out is None else replacing(out) as file:
        lines = codecs.getwriter("utf-8")(file, "backslashreplace")
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["input", "label", *(f"p({c})" for c in clf.classes_)])
        size = max(1, CHUNK // clf.n_features_in_)
        for start in range(0, len(x), size):
            p = clf.predict_proba(x[start : start + size])
            labels = clf.classes_[p.argmax(1)]
            writer.writerows(
                [names[start + i], labels[i], *(f"{v:.6f}" for v in row)] for i, row in enumerate(p.tolist())
            )


def _with_test_set(data: Dataset, settings: Settings) -> Dataset:
    """A share of the examples to test on, where the data has no test set of its own."""
    share = round(settings.test_share * len(data.x_train))
    if len(data.x_test) or not share:
        return data
    if len(data.x_train) - share < 2:
        raise ValueError(
            f"a test share of {settings.test_share} leaves too few of {len(data.x_train)} examples to learn from: "
            "lower it, or pass more data."
        )
    order = np.random.default_rng(settings.seed).permutation(len(data.x_train))
    # Of every class an example is left to learn from.
    _, last = np.unique(data.y_train[order][::-1], return_index=True)
    kept = np.isin(np.arange(len(order)), len(order) - 1 - last)
    order = np.concatenate([order[~kept], order[kept]]) if kept[:share].any() else order
    share = min(share, len(order) - int(kept.sum()))
    test, train = order[:share], order[share:]
    return replace(
        data,
        x_train=data.x_train[train],
        y_train=data.y_train[train],
        x_test=data.x_train[test],
        y_test=data.y_train[test],
        provenance=f"{data.provenance}, {share} of its {len(order)} examples kept for testing",
    )
