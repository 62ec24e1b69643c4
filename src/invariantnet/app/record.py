"""`run.json` as a type: what a run was asked, what it was given, and what came out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from invariantnet._system.files import write_json
from invariantnet._system.typed_json import from_json, to_json
from invariantnet.choices import Method, Placement, Pool, Precision, Task, Uncertainty
from invariantnet.estimator.persistence import RUN, ModelRecord, model_json, parse_model, read_json
from invariantnet.report.evaluation import Evaluation


@dataclass(frozen=True)
class Settings:
    """What a run is asked to do; equal settings on equal data give equal runs."""

    data: str
    symmetries: str | tuple[str, ...] = "auto"
    method: Method = "evidence"
    task: Task = "auto"
    backbone: str = "auto"
    """Name of a backbone, or of a function of the user's own, which is not called because a file names it."""
    hidden: int = 100
    placement: Placement = "features"
    pool: Pool = "max"
    joins: bool = True
    n_networks: int = 2
    epochs: int | None = None
    tolerance: float = 0.0
    uncertainty: Uncertainty = "none"
    second_opinion: bool = False
    examples: int | None = None
    test_share: float = 0.2
    seed: int = 0
    n_jobs: int = 1
    device: str = "auto"
    precision: Precision = "32-true"


@dataclass(frozen=True)
class DataRecord:
    """The data of a run."""

    source: str
    """Where it comes from, in words."""
    examples: int
    """Number of examples that were learned from."""
    columns: tuple[str, ...] | None
    """Names of the inputs, where they come from a table."""
    label: str | None
    """Name of the label column of a table, where it was named."""
    test_accuracy: float | None
    """Share of right answers on the test examples; None if there are none, and for numbers."""
    test_explained: float | None
    """Share of the variance of the test examples' numbers that is explained; None for classes."""


@dataclass(frozen=True)
class _Parts:
    """What a run adds to the record of its model."""

    data: DataRecord
    settings: Settings
    digest: str
    """Identifies settings, data and version: equal digests mean equal runs."""
    evaluation: Evaluation
    evaluation_sha256: str
    """Digest of the file with the evaluation's tensors."""


@dataclass(frozen=True)
class RunRecord(_Parts):
    """Everything that `run.json` holds about a run."""

    model: ModelRecord


def run_json(record: RunRecord) -> dict[str, Any]:
    """Content of `run.json`: the record of the model, and the run's parts beside it."""
    parts = to_json(record)
    return {**model_json(record.model), **{name: parts[name] for name in parts if name != "model"}}


def write_run(folder: Path, record: RunRecord) -> None:
    """Write `run.json` in one step."""
    write_json(folder / RUN, run_json(record))


def read_run(folder: Path) -> RunRecord | None:
    """Read `run.json`.

    Args:
        folder: Folder of a run, or of a model that was saved from Python.

    Returns:
        The record, or None for a model that was saved from Python.

    Raises:
        ValueError: If the file is missing, damaged, or of another program or version.
    """
    stored = read_json(folder)
    model = parse_model(stored, folder)
    if "settings" not in stored:
        return None
    try:
        parts = from_json(_Parts, stored, extra=True)
    except ValueError as error:
        raise ValueError(f"{folder / RUN} is damaged ({error}): fit again.") from None
    return RunRecord(**vars(parts), model=model)
