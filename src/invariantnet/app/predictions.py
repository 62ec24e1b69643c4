"""`invariantnet predict`: what a fitted model says of new inputs, and how often it is right."""

import codecs
import contextlib
import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from sklearn.metrics import confusion_matrix

from invariantnet import data as datasets
from invariantnet._system.files import replacing, writable_file
from invariantnet._system.progress import working
from invariantnet.app.preparation import AS_IT_IS, Reading
from invariantnet.app.record import read_run
from invariantnet.data.arrays import DiskArray
from invariantnet.estimator import InvariantClassifier, InvariantRegressor, load_estimator
from invariantnet.estimator.stored import Backbone

Estimator = InvariantClassifier | InvariantRegressor

CHUNK = 2**22
"""Numbers of inputs that are predicted at once, so that memory stays bounded."""

MOST_CLASSES = 12
"""Classes of a confusion matrix that fits into a terminal; of more, the commonest confusions are told."""


def predict(
    run: Path, source: str, out: Path | None, reading: Reading = AS_IT_IS, backbone: Backbone | None = None
) -> str:
    """Write predictions of new inputs as CSV: labels and probabilities, or means and standard errors.

    Embedded data is moved and permuted as it was for the fit, and of a table the columns are those of the fit.

    Args:
        run: Folder of the model.
        source: Inputs, by name or by path.
        out: File to write; standard output if None.
        reading: How files are read; the shape is that of the model.
        backbone: The backbone of the user's own that the model was fitted with.

    Returns:
        How good the predictions are, in words; empty if the inputs have no labels that the model knows.

    Raises:
        ValueError: If the model or the inputs cannot be used, or the file cannot be written.
    """
    with working(f"reading {run} and {source}", visible=True):
        estimator, record = load_estimator(run, backbone=backbone), read_run(run)
        if out is not None:
            writable_file(out)
        seed, columns = (record.settings.seed, record.data.columns) if record else (0, None)
        new = datasets.load_inputs(
            source,
            seed=seed,
            shape=estimator.input_shape_,
            columns=columns,
            size=reading.size,
            color=reading.color,
            label=reading.label or (record.data.label if record else None),
        )
    said: list[np.ndarray] = []
    with contextlib.nullcontext(sys.stdout.buffer) if out is None else replacing(out) as file:
        lines = codecs.getwriter("utf-8")(file, "backslashreplace")
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["input", *_columns(estimator)])
        names = iter(new.names)
        for part in _parts(estimator, new.x):
            best, rows = _predicted(estimator, part)
            said.append(best)
            writer.writerows([next(names), *row] for row in rows)
    return "" if new.labels is None else _assessed(estimator, np.concatenate(said), new.labels)


def _parts(estimator: Estimator, x: np.ndarray | DiskArray) -> Iterator[np.ndarray | DiskArray]:
    size = max(1, CHUNK // estimator.n_features_in_)
    return (x[start : start + size] for start in range(0, len(x), size))


def _columns(estimator: Estimator) -> list[str]:
    if isinstance(estimator, InvariantClassifier):
        return ["label", *(f"p({c})" for c in estimator.classes_)]
    if estimator.single_:
        return ["mean", "standard error"]
    return [f"{what} {k + 1}" for k in range(len(estimator.y_mean_)) for what in ("mean", "standard error")]


def _predicted(estimator: Estimator, x: np.ndarray | DiskArray) -> tuple[np.ndarray, Iterable[list[str]]]:
    """The best answers, numbers of classes or means, and the rows to write."""
    if isinstance(estimator, InvariantClassifier):
        p = estimator.predict_proba(x)
        best = p.argmax(1)
        labels = estimator.classes_[best]
        return best, ([label, *(f"{v:.6f}" for v in row)] for label, row in zip(labels, p.tolist(), strict=True))
    mean, error = estimator.predict(x, return_std=True)
    pairs = np.stack([mean, error], -1).reshape(len(mean), -1)
    return mean, ([f"{value:.8g}" for value in row] for row in pairs.tolist())


def _assessed(estimator: Estimator, said: np.ndarray, labels: np.ndarray) -> str:
    """Compare answers with labels, in words; nothing where the labels are not those of the model."""
    if isinstance(estimator, InvariantClassifier):
        return _right_and_wrong(estimator, said, labels)
    try:
        truth = labels.astype(float).reshape(said.shape)
    except ValueError:
        return ""
    spread = ((truth - truth.mean(0)) ** 2).mean()
    explained = 1 - ((truth - said) ** 2).mean() / spread if spread > 0 else float("nan")
    wrong = abs(truth - said).mean()
    return (
        f"{100 * explained:.1f} % of the variance explained, mean absolute error {wrong:.4g}, {len(said):,} inputs"
    )


def _right_and_wrong(estimator: InvariantClassifier, said: np.ndarray, labels: np.ndarray) -> str:
    names = [str(c) for c in estimator.classes_]
    numbers = {name: k for k, name in enumerate(names)}
    truth = np.array([numbers.get(str(label), -1) for label in labels])
    known = truth >= 0
    if not known.any():
        return ""
    counts = confusion_matrix(truth[known], said[known], labels=range(len(names)))
    total = int(counts.sum())
    lines = [f"{100 * counts.trace() / total:.1f} % right of {total:,} labelled input{'s' if total != 1 else ''}"]
    if not known.all():
        lines[0] += f"; {(~known).sum():,} have a label that the model does not know"
    return "\n".join([*lines, *(_matrix(names, counts) if len(names) <= MOST_CLASSES else _worst(names, counts))])


def _matrix(names: list[str], counts: np.ndarray) -> list[str]:
    short = [name if len(name) <= MOST_CLASSES else f"{name[: MOST_CLASSES - 1]}…" for name in names]
    corner = "true, said:"
    first = max(len(corner), *map(len, short))
    widths = [max(len(name), 4) for name in short]
    rows = [[f"{corner:{first}}", *(f"{name:>{w}}" for name, w in zip(short, widths, strict=True))]]
    for name, row in zip(short, counts.tolist(), strict=True):
        rows.append([f"{name:{first}}", *(f"{n or '·':>{w}}" for n, w in zip(row, widths, strict=True))])
    return ["  ".join(row) for row in rows]


def _worst(names: list[str], counts: np.ndarray) -> list[str]:
    off = counts - np.diag(np.diag(counts))
    order = np.argsort(-off, axis=None, kind="stable")[:MOST_CLASSES]
    pairs = [divmod(int(k), len(names)) for k in order if off.flat[k]]
    return [f"{names[i]} taken for {names[j]}: {off[i, j]}" for i, j in pairs]
