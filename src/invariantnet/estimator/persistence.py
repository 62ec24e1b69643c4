"""Fitted estimators as files: tensors and JSON, nothing that runs."""

import contextlib
import hashlib
import json
import math
import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from invariantnet._system.files import writable_folder, write_bytes, write_json
from invariantnet._system.sizes import must_fit
from invariantnet._system.words import count_words, package_version
from invariantnet.inference.posterior import Price, Stage, SymmetryPosterior
from invariantnet.nn import Draws, InvariantLinear
from invariantnet.nn.ensemble import PREFIX
from invariantnet.nn.symmetrized import SAMPLED, Symmetrized
from invariantnet.symmetries._closure import (
    TooManyElementsError,
    check_finite_order,
    check_indices,
    check_invertible,
)
from invariantnet.symmetries.group import MAX_ORDER, Group
from invariantnet.training.config import History

FORMAT = 1
MODEL, RUN, UNFINISHED = "model.safetensors", "run.json", "unfinished"
OWN_BACKBONE = "your own"
LEARNED = (
    "classes_",
    "feature_names_in_",
    "y_mean_",
    "y_scale_",
    "input_shape_",
    "n_features_in_",
    "outputs_",
    "scale_",
    "fingerprint_",
    "threads_",
)
IN_MEMORY = ("pointwise", "counts")
PACKAGES = ("torch", "numpy", "scikit-learn")
HUGE = 2**1023
Estimator = TypeVar("Estimator")


def save(estimator: Any, folder: Path, **more: Any) -> None:
    """Write both files, each at once; `more` goes into the record."""
    writable_folder(folder)
    weights = safetensors.torch.save(_tensors(estimator))
    run = _without_nan({**record(estimator), **more, "model_sha256": hashlib.sha256(weights).hexdigest()})
    try:
        json.dumps(run)
    except TypeError as error:
        raise ValueError(
            f"this model cannot be stored ({error}): fit with labels that are y.astype(str)."
        ) from None
    write_bytes(folder / MODEL, weights)
    write_json(folder / RUN, run)


def record(estimator: Any) -> dict[str, Any]:
    """Everything about a fitted estimator but its tensors."""
    return _without_nan(
        {
            "format": FORMAT,
            "kind": type(estimator).__name__,
            "versions": versions(),
            "parameters": _parameters(estimator),
            "learned": {name: _plain(getattr(estimator, name)) for name in LEARNED if hasattr(estimator, name)},
            "hypotheses": [{"name": g.name, "order": g.order, "shape": g.shape} for g in estimator.hypotheses_],
            "verdict": estimator.posterior_.verdict,
            "chosen": estimator.symmetry_.name,
            "exact": _is_exact(estimator.network_),
            "posterior": {k: v for k, v in asdict(estimator.posterior_).items() if k not in IN_MEMORY},
            "history": asdict(estimator.history_),
        }
    )


def load(cls: type[Estimator], folder: Path, backbone: Callable[..., nn.Module] | None = None) -> Estimator:
    """Read an estimator; a missing, damaged, foreign or newer file is a ValueError that says so."""
    stored = read_record(folder)
    if stored["kind"] != cls.__name__:
        raise ValueError(f"{folder / RUN} holds an {stored['kind']}: load it with that class.")
    tensors = read_tensors(folder / MODEL)
    if stored["parameters"].get("backbone") == OWN_BACKBONE and backbone is None:
        raise ValueError("this model has a backbone of your own: pass it to load, as no code is stored.")
    try:
        estimator = _rebuilt(cls, stored, tensors, backbone)
        # Who was interrupted between the two files has left one of the old fit and one of the new.
        if stored["model_sha256"] != hashlib.sha256((folder / MODEL).read_bytes()).hexdigest():
            raise ValueError("they are of different fits")
        return estimator
    except Exception as error:  # a record of a stranger's can hold anything anywhere
        fault = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"{folder}: {RUN} and {MODEL} do not fit together ({fault}): fit again.") from None


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Finite tensors by name; a missing or damaged file is a ValueError."""
    try:
        must_fit(path.stat().st_size, str(path), "load it on a larger machine")
        tensors = safetensors.torch.load(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} is missing or cannot be read ({error.strerror}): fit again.") from None
    except Exception as error:
        raise ValueError(f"{path} is damaged ({error}): fit again.") from None
    for name, value in tensors.items():
        if not bool(value.isfinite().all()):
            raise ValueError(f"{path} is damaged ({name} holds values that are not finite): fit again.")
    return tensors


def read_record(folder: Path) -> dict[str, Any]:
    """The checked content of `run.json`."""
    path = folder / RUN
    try:
        stored = json.loads(path.read_text(encoding="utf-8"), object_hook=_with_orders)
    except OSError as error:
        if (folder / UNFINISHED).exists():
            raise ValueError(f"the fit in {folder} was interrupted: finish it with --resume.") from None
        raise ValueError(f"{path} cannot be read ({error.strerror}): name a folder that `fit` wrote.") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is damaged: fit again.") from None
    parts = ("posterior", "parameters", "learned", "history")
    if not isinstance(stored, dict) or not all(isinstance(stored.get(part), dict) for part in parts):
        raise ValueError(f"{path} was not written by InvariantNet: name a folder that `fit` wrote.")
    written = stored.get("format")
    if written != FORMAT or not isinstance(stored.get("kind"), str):
        raise ValueError(
            f"{path} has format {written}, this version reads {FORMAT}: use the version that wrote it."
        )
    return stored


def posterior_from(stored: dict[str, Any]) -> SymmetryPosterior:
    """The posterior of a record."""
    values: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in stored["posterior"].items()
    }
    for name in ("log_evidence", "log_evidence_spread"):
        values[name] = tuple(math.nan if v is None else v for v in values[name])
    values["race"] = tuple(Stage(**stage) for stage in values["race"])
    values["prices"] = tuple(Price(**price) for price in values["prices"])
    found = SymmetryPosterior(**values)
    # What cannot be said of it now could not be said later either.
    if not all(isinstance(name, str) for name in found.names) or not 0 <= min(found.probabilities) <= 1:
        raise ValueError(f"{found.probabilities} are no probabilities of {found.names}")
    str(found), found.log_bayes_factors, found.within(1.0)
    return found


def folded(network: nn.Module) -> nn.Module:
    """Plain layers where that is possible, else the network itself."""
    if isinstance(network, nn.Sequential) and isinstance(network[0], InvariantLinear):
        return nn.Sequential(network[0].fold(), *list(network)[1:])
    try:
        return network.fold() if isinstance(network, Symmetrized) else network
    except ValueError:
        return network


def versions() -> dict[str, str]:
    """Of everything that a result depends on."""
    return {
        "invariantnet": package_version(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


def _is_exact(network: nn.Module) -> bool:
    """Whether it is invariant up to rounding: a mixture of schemes is not, nor an average over samples."""
    layers = [m for m in network.modules() if isinstance(m, InvariantLinear)]
    return all(bool(m.probabilities.max() == 1) for m in layers) and bool(getattr(network, "exact", True))


def _tensors(estimator: Any) -> dict[str, Tensor]:
    found = {f"network.{name}": value for name, value in estimator.network_.state_dict().items()}
    for k, group in enumerate(estimator.hypotheses_):
        found[f"hypotheses.{k}"] = torch.from_numpy(group.generators)
    # Copies: tensors that share memory, as those of a layer used twice, are refused.
    return {name: value.detach().cpu().contiguous().clone() for name, value in found.items()}


def _rebuilt(cls: Any, stored: dict[str, Any], tensors: dict[str, Tensor], backbone: Any) -> Any:
    groups = [
        Group(
            g["name"], tensors[f"hypotheses.{k}"].numpy(), g["shape"] and tuple(g["shape"]), known_order=g["order"]
        )
        for k, g in enumerate(stored["hypotheses"])
    ]
    by_name = {g.name: g for g in groups}
    parameters = dict(stored["parameters"])
    if parameters["backbone"] == OWN_BACKBONE:
        parameters["backbone"] = backbone
    if isinstance(parameters["symmetries"], list):
        parameters["symmetries"] = [
            g if isinstance(g, str) else replace(groups[g["hypothesis"]], name=g["name"])
            for g in parameters["symmetries"]
        ]
    if parameters["input_shape"]:
        parameters["input_shape"] = tuple(parameters["input_shape"])
    estimator = cls(**parameters)
    for name, value in stored["learned"].items():
        if name not in LEARNED:
            raise ValueError(f"nothing learned is called {name!r}")
        setattr(estimator, name, tuple(value) if name == "input_shape_" else value)
    if "classes_" in stored["learned"]:
        estimator.classes_ = np.array(stored["learned"]["classes_"])
    if "feature_names_in_" in stored["learned"]:
        estimator.feature_names_in_ = np.array(stored["learned"]["feature_names_in_"], dtype=object)
    estimator.hypotheses_, estimator.symmetry_ = groups, by_name[stored["chosen"]]
    estimator.posterior_ = posterior_from(stored)
    history = stored["history"]
    estimator.history_ = History(**{**history, "scheme_names": tuple(history["scheme_names"])})
    weights = {n.removeprefix("network."): t for n, t in tensors.items() if n.startswith("network.")}
    _check(estimator, weights)
    network = Draws.like(estimator.make_final_network(), weights, estimator.likelihood)
    network.load_state_dict(weights)
    estimator.network_ = network.eval()
    return estimator


def _check(estimator: Any, weights: dict[str, Tensor]) -> None:
    """Whether a stored estimator is what one could have been, before any memory is taken for it."""
    dim = math.prod(estimator.input_shape_)
    float(estimator.scale_)
    if estimator.n_features_in_ != dim:
        raise ValueError(f"{estimator.n_features_in_} features of shape {estimator.input_shape_}")
    if len(getattr(estimator, "feature_names_in_", range(dim))) != dim:
        raise ValueError(f"{len(estimator.feature_names_in_)} names of {dim} features")
    if hasattr(estimator, "classes_") and estimator.classes_.shape != (estimator.outputs_,):
        raise ValueError(f"classes of shape {estimator.classes_.shape} for {estimator.outputs_} outputs")
    for group in estimator.hypotheses_:
        if group.dim != dim:
            raise ValueError(f"{group.name} acts on {group.dim} numbers, an input has {dim}")
        if group.is_matrix_group:
            check_invertible(group.generators)
            for i, matrix in enumerate(group.generators):
                check_finite_order(matrix, i, MAX_ORDER)
        else:
            check_indices(group.generators)
    group = estimator.symmetry_
    # That of the group the network is averaged over has to be right; what cannot be listed is sampled.
    limit = group.order if group.can_list_elements else SAMPLED
    make = Group.from_matrices if group.is_matrix_group else Group.from_permutations
    with contextlib.suppress(TooManyElementsError):
        if (found := make(group.generators, max_order=limit).order) != group.order:
            raise ValueError(f"{group.name} has {found} elements, not {count_words(group.order)}")
    # A width from the record must not take memory that the file with the weights does not.
    if estimator.method == "paper":
        if weights["0.A"].shape[1:] != (estimator.hidden,):
            raise ValueError(f"weights of shape {tuple(weights['0.A'].shape)} for {estimator.hidden} neurons")
        must_fit(4 * len(estimator.hypotheses_) * dim * estimator.hidden, "the network", "fit a smaller one")
    elif isinstance(estimator.backbone, str):
        with torch.device("meta"):
            promised = sum(v.numel() for v in estimator._module(estimator.hidden).state_dict().values())
        if (there := sum(v.numel() for name, v in weights.items() if not name.startswith(PREFIX))) != promised:
            raise ValueError(f"{there} weights for a network of {promised}")


def _with_orders(stored: dict[str, Any]) -> dict[str, Any]:
    """Orders beyond what JSON's readers take for a number are stored in base 16."""
    for name in ("order", "orders"):
        value = stored.get(name)
        if isinstance(value, list):
            stored[name] = [int(v, 16) if isinstance(v, str) else v for v in value]
        elif isinstance(value, str):
            stored[name] = int(value, 16)
    return stored


def _parameters(estimator: Any) -> dict[str, Any]:
    values = estimator.get_params(deep=False)
    if callable(values["backbone"]):
        values["backbone"] = OWN_BACKBONE
    if isinstance(values["symmetries"], Group):
        values["symmetries"] = [values["symmetries"]]
    if not isinstance(values["symmetries"], str):
        # Equal groups were compared once, under one of their names.
        values["symmetries"] = [
            {"name": g.name, "hypothesis": estimator.hypotheses_.index(g)} if isinstance(g, Group) else g
            for g in values["symmetries"]
        ]
    if not isinstance(values["random_state"], int | np.integer | None):
        values["random_state"] = None
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: null instead; and few of its readers have numbers of any length."""
    if isinstance(value, int) and value >= HUGE:
        return hex(value)
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
