"""`invariantnet predict`: what a fitted model says of new inputs, as CSV."""

import codecs
import contextlib
import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from invariantnet import data as datasets
from invariantnet._system.files import replacing, writable_file
from invariantnet.app.preparation import AS_IT_IS, Reading
from invariantnet.app.record import read_run
from invariantnet.data.arrays import DiskArray
from invariantnet.estimator import InvariantClassifier, InvariantRegressor, load_estimator
from invariantnet.estimator.stored import Backbone

Estimator = InvariantClassifier | InvariantRegressor

CHUNK = 2**22
"""Numbers of inputs that are predicted at once, so that memory stays bounded."""


def predict(
    run: Path, source: str, out: Path | None, reading: Reading = AS_IT_IS, backbone: Backbone | None = None
) -> None:
    """Write predictions of new inputs as CSV: labels and probabilities, or means and standard errors.

    Embedded data is moved and permuted as it was for the fit, and of a table the columns are those of the fit.

    Args:
        run: Folder of the model.
        source: Inputs, by name or by path.
        out: File to write; standard output if None.
        reading: How files are read; the shape is that of the model.
        backbone: The backbone of the user's own that the model was fitted with.

    Raises:
        ValueError: If the model or the inputs cannot be used, or the file cannot be written.
    """
    estimator, record = load_estimator(run, backbone=backbone), read_run(run)
    if out is not None:
        writable_file(out)
    seed, columns = (record.settings.seed, record.data.columns) if record else (0, None)
    names, x = datasets.load_inputs(
        source,
        seed=seed,
        shape=estimator.input_shape_,
        columns=columns,
        size=reading.size,
        color=reading.color,
        label=reading.label,
    )
    with contextlib.nullcontext(sys.stdout.buffer) if out is None else replacing(out) as file:
        lines = codecs.getwriter("utf-8")(file, "backslashreplace")
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["input", *_columns(estimator)])
        size = max(1, CHUNK // estimator.n_features_in_)
        for start in range(0, len(x), size):
            rows = _rows(estimator, x[start : start + size])
            writer.writerows([names[start + i], *row] for i, row in enumerate(rows))


def _columns(estimator: Estimator) -> list[str]:
    if isinstance(estimator, InvariantRegressor):
        return ["mean", "standard error"]
    return ["label", *(f"p({c})" for c in estimator.classes_)]


def _rows(estimator: Estimator, x: np.ndarray | DiskArray) -> Iterable[list[str]]:
    if isinstance(estimator, InvariantRegressor):
        mean, error = estimator.predict(x, return_std=True)
        return ([f"{m:.8g}", f"{e:.8g}"] for m, e in zip(mean, error, strict=True))
    p = estimator.predict_proba(x)
    labels = estimator.classes_[p.argmax(1)]
    return ([label, *(f"{v:.6f}" for v in row)] for label, row in zip(labels, p.tolist(), strict=True))
