"""Fitted models as files: tensors in `model.safetensors` and a typed record in `run.json`, nothing that runs."""

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from invariantnet._system.files import writable_folder, write_bytes, write_json
from invariantnet._system.sizes import must_fit
from invariantnet._system.typed_json import from_json, to_json
from invariantnet._system.words import package_version
from invariantnet.choices import Method, Placement, Pool, Precision, Uncertainty
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.symmetries.deviation import Deviation
from invariantnet.training.config import History, Training

FORMAT = 3
"""Version of the files' layout; files of another version are refused."""

MODEL, RUN, UNFINISHED = "model.safetensors", "run.json", "unfinished"
"""Names inside the folder of a model: its tensors, its record, and the work of a fit that has not ended."""

PACKAGES = ("torch", "numpy", "scikit-learn")
"""Packages whose versions are recorded, because results depend on them."""

ROUNDING = 1e-3
"""By how much the probabilities of a stored posterior may fail to add up to 1."""


@dataclass(frozen=True)
class OwnSymmetry:
    """A symmetry that was passed as an object rather than by its name."""

    name: str
    candidate: int
    """Index of the candidate that holds its generators."""


@dataclass(frozen=True)
class Parameters:
    """The arguments of an estimator, as JSON can hold them."""

    symmetries: str | tuple[str | OwnSymmetry, ...]
    input_shape: tuple[int, ...] | None
    method: Method
    backbone: str | None
    """None for a backbone of the user's own: no code is stored."""
    hidden: int
    placement: Placement
    pool: Pool
    uncertainty: Uncertainty
    second_opinion: bool
    tolerance: float
    joins: bool
    prior: float | tuple[float, ...]
    n_networks: int
    epochs: int | None
    n_jobs: int
    device: str
    random_state: int | None
    verbose: int
    head: str | None = None
    precision: Precision = "32-true"


@dataclass(frozen=True)
class Learned:
    """What an estimator learned from its data, besides posterior and networks."""

    input_shape: tuple[int, ...]
    n_features_in: int
    outputs: int
    fingerprint: str
    threads: int
    classes: tuple[bool | int | float | str, ...] | None = None
    feature_names_in: tuple[str, ...] | None = None
    y_mean: tuple[float, ...] | None = None
    y_scale: tuple[float, ...] | None = None
    single: bool | None = None
    """Whether a target is one number rather than a row of them."""
    restricted_to: str | None = None
    """Name of the smaller symmetry that the network was restricted to after its training."""


@dataclass(frozen=True)
class CandidateRecord:
    """A symmetry that was compared; the generators of a group are among the tensors."""

    name: str
    order: int
    """Elements of the group; 1 for a range without one."""
    shape: tuple[int, ...] | None
    extents: tuple[str, ...] = ()
    """Of a range: how far each family reaches, such as `rotation:30`. Functions are not stored, only names."""
    nodes: int | None = None
    """Of a range: points of its quadrature, if they were asked for."""


@dataclass(frozen=True)
class Trainings:
    """How the networks of a fit were trained."""

    compared: dict[str, Training]
    """Of the networks that stand for the hypotheses, by the name of their model."""
    final: Training


@dataclass(frozen=True)
class ModelRecord:
    """Everything about a fitted estimator except its tensors."""

    kind: str
    """Name of the estimator's class."""
    versions: dict[str, str]
    parameters: Parameters
    learned: Learned
    candidates: tuple[CandidateRecord, ...]
    chosen: str
    """Name of the symmetry of the final network."""
    exact: bool
    """Whether the final network is invariant up to rounding."""
    deviation: Deviation | None
    """How far a network for a range is from being invariant; None for groups."""
    verdict: str
    posterior: SymmetryPosterior
    training: Trainings
    history: History
    model_sha256: str = ""
    """Digest of the file with the tensors, so that files of two fits are never taken for one model."""


def write_model(folder: Path, record: ModelRecord, tensors: Mapping[str, Tensor]) -> None:
    """Write both files of a model, each of them in one step.

    Args:
        folder: Where to write; it is made if need be.
        record: The record, without the digest of the tensors.
        tensors: Tensors by name.

    Raises:
        ValueError: If the folder cannot be written, or the record does not fit into JSON.
    """
    writable_folder(folder)
    content = safetensors.torch.save(dict(tensors))
    try:
        stored = model_json(replace(record, model_sha256=hashlib.sha256(content).hexdigest()))
    except TypeError as error:
        raise ValueError(
            f"this model cannot be stored ({error}): fit with labels that are y.astype(str)."
        ) from None
    write_bytes(folder / MODEL, content)
    write_json(folder / RUN, stored)


def model_json(record: ModelRecord) -> dict[str, Any]:
    """Content of `run.json` for a model; a run of the application adds parts of its own."""
    return {"format": FORMAT, **to_json(record)}


def read_json(folder: Path) -> dict[str, Any]:
    """Read `run.json`; of its content only the format is checked.

    Args:
        folder: Folder of a model.

    Returns:
        The object that the file holds.

    Raises:
        ValueError: If the file is missing, damaged, or of another program or version.
    """
    path = folder / RUN
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        if (folder / UNFINISHED).exists():
            raise interrupted(folder) from None
        raise ValueError(f"{path} cannot be read ({error.strerror}): name a folder that `fit` wrote.") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is damaged: fit again.") from None
    if not isinstance(stored, dict) or not {"format", "kind", "posterior"} <= stored.keys():
        raise ValueError(f"{path} was not written by InvariantNet: name a folder that `fit` wrote.")
    if stored["format"] != FORMAT:
        raise ValueError(
            f"{path} has format {str(stored['format'])[:20]}, this version reads {FORMAT}: "
            "use the version that wrote it."
        )
    return stored


def read_model_record(folder: Path) -> ModelRecord:
    """Read the record of a model, whether `save` wrote it or a run of the application.

    Args:
        folder: Folder of a model.

    Returns:
        The record.

    Raises:
        ValueError: If there is none, or it is not what a fit could have written.
    """
    return parse_model(read_json(folder), folder)


def parse_model(stored: dict[str, Any], folder: Path) -> ModelRecord:
    """Build the record of a model from the content of `run.json`.

    Args:
        stored: What `read_json` returned.
        folder: Where it comes from, for messages.

    Returns:
        The record.

    Raises:
        ValueError: If it is not what a fit could have written.
    """
    try:
        record = from_json(ModelRecord, stored, extra=True)
        _check_posterior(record)
    except ValueError as error:
        raise ValueError(f"{folder / RUN} is damaged ({error}): fit again.") from None
    return record


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read finite tensors by name.

    Args:
        path: A file of tensors.

    Returns:
        The tensors.

    Raises:
        ValueError: If the file is missing or damaged.
    """
    try:
        must_fit(path.stat().st_size, str(path), "load it on a larger machine")
        tensors = safetensors.torch.load(path.read_bytes())
    except OSError as error:
        if (path.parent / UNFINISHED).exists():
            raise interrupted(path.parent) from None
        raise ValueError(f"{path} is missing or cannot be read ({error.strerror}): fit again.") from None
    except Exception as error:  # a damaged header makes the reader raise anything
        raise ValueError(f"{path} is damaged ({error}): fit again.") from None
    for name, value in tensors.items():
        if not bool(value.isfinite().all()):
            raise ValueError(f"{path} is damaged ({name} holds values that are not finite): fit again.")
    return tensors


def check_digest(folder: Path, name: str, expected: str) -> None:
    """Raise a ValueError if a file is not the one that the record was written with.

    Args:
        folder: Folder of a model.
        name: Name of the file.
        expected: Its SHA-256 digest, in hexadecimal digits.
    """
    if hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected:
        return
    if (folder / UNFINISHED).exists():
        raise interrupted(folder)
    raise ValueError(f"{folder}: {RUN} and {name} do not fit together (they are of different fits): fit again.")


def interrupted(folder: Path) -> ValueError:
    """The error about a fit that was interrupted before its files were complete."""
    return ValueError(f"the fit in {folder} was interrupted: finish it with --resume.")


def versions() -> dict[str, str]:
    """Versions of everything that a result depends on."""
    return {
        "invariantnet": package_version(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


def _check_posterior(record: ModelRecord) -> None:
    """Raise a ValueError if the posterior is not one over the candidates."""
    posterior = record.posterior
    if posterior.names != tuple(h.name for h in record.candidates):
        raise ValueError("posterior.names are not those of the candidates")
    if not min(posterior.probabilities, default=-1) >= 0 or abs(sum(posterior.probabilities) - 1) > ROUNDING:
        raise ValueError(f"posterior.probabilities are {posterior.probabilities}, which do not add up to 1")
    for name in ("orders", "probabilities", "log_evidence", "log_evidence_spread"):
        if len(getattr(posterior, name)) != len(posterior.names):
            raise ValueError(f"posterior.{name} has not one value per hypothesis")
    for name in ("laplace", "best_models"):
        if getattr(posterior, name) and len(getattr(posterior, name)) != len(posterior.names):
            raise ValueError(f"posterior.{name} has not one value per hypothesis")
    # Fail now if the posterior cannot be formatted later.
    str(posterior), posterior.log_bayes_factors, posterior.within(record.parameters.tolerance)
