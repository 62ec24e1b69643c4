"""`invariantnet fit`: from a data set to a verdict, a network's accuracy and a record of both."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from invariantnet import __version__, datasets
from invariantnet.estimator import InvariantClassifier, Method
from invariantnet.storage import writable_folder, write_json


def fit(
    source: str,
    out: Path,
    *,
    groups: list[str],
    method: Method,
    examples: int | None,
    tolerance: float,
    seed: int,
    **reading: Any,
) -> dict[str, Any]:
    """Fit a classifier, write `run.json` to `out`, and return what is in it."""
    if examples is not None and examples < 2:
        raise ValueError(f"{examples} examples are too few to learn from: ask for more.")
    data = datasets.load(source, seed=seed, **reading)
    writable_folder(out)
    keep = np.random.default_rng(seed).permutation(len(data.x_train))[:examples]
    clf = InvariantClassifier(groups, data.shape, method, tolerance=tolerance, random_state=seed, verbose=1)
    clf.fit(data.x_train[keep], data.y_train[keep])
    record = {
        "version": __version__,
        "data": data.provenance,
        "shape": data.shape,
        "examples": len(keep),
        "method": method,
        "groups": groups,
        "tolerance": tolerance,
        "seed": seed,
        "verdict": clf.posterior_.verdict,
        "chosen": clf.group_.name,
        "test_accuracy": float(clf.score(data.x_test, data.y_test)) if len(data.x_test) else None,
        "posterior": asdict(clf.posterior_),
    }
    write_json(out / "run.json", record)
    return record
