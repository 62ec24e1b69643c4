"""Fitted estimators as files: tensors and JSON, nothing that runs."""

import hashlib
import json
import logging
import math
import platform
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from invariantnet.catalogue import names as catalogue_names
from invariantnet.groups import Group
from invariantnet.inference.posterior import Price, SymmetryPosterior
from invariantnet.likelihoods import Likelihood
from invariantnet.nn import InvariantLinear
from invariantnet.nn.symmetrized import Symmetrized
from invariantnet.rows import Rows, as_inputs, blocks
from invariantnet.storage import writable_folder, write_bytes, write_json
from invariantnet.training import History

FORMAT = 1
MODEL, RUN, UNFINISHED = "model.safetensors", "run.json", "unfinished"
OWN_BACKBONE = "your own"
LEARNED = (
    "classes_",
    "y_mean_",
    "y_scale_",
    "input_shape_",
    "n_features_in_",
    "outputs_",
    "scale_",
    "fingerprint_",
)
PACKAGES = ("torch", "numpy", "scikit-learn")
CLOSE = 1e-4
Estimator = TypeVar("Estimator")


def save(estimator: Any, folder: Path, **more: Any) -> None:
    """Write both files, each at once; `more` goes into the record."""
    writable_folder(folder)
    write_bytes(folder / MODEL, safetensors.torch.save(_tensors(estimator)))
    write_json(folder / RUN, {**record(estimator), **more})


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
            "chosen": estimator.group_.name,
            "exact": bool(getattr(estimator.network_, "exact", True)),
            "posterior": asdict(estimator.posterior_),
            "history": asdict(estimator.history_),
        }
    )


def load(cls: type[Estimator], folder: Path, backbone: Callable[..., nn.Module] | None = None) -> Estimator:
    """Read an estimator; a missing, damaged, foreign or newer file is a ValueError that says so."""
    stored = read_record(folder)
    if stored["kind"] != cls.__name__:
        raise ValueError(f"{folder / RUN} holds an {stored['kind']}: load it with that class.")
    try:
        tensors = safetensors.torch.load((folder / MODEL).read_bytes())
    except OSError as error:
        raise ValueError(f"{folder / MODEL} cannot be read ({error.strerror}): fit again.") from None
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / MODEL} is damaged ({error}): fit again.") from None
    try:
        return _rebuilt(cls, stored, tensors, backbone)
    except (KeyError, TypeError, IndexError, AttributeError, RuntimeError) as error:
        fault = str(error).splitlines()[0]
        raise ValueError(f"{folder}: {RUN} and {MODEL} do not fit together ({fault}): fit again.") from None


def read_record(folder: Path) -> dict[str, Any]:
    """The checked content of `run.json`."""
    path = folder / RUN
    try:
        stored = json.loads(path.read_text())
    except OSError as error:
        if (folder / UNFINISHED).exists():
            raise ValueError(f"the fit in {folder} was interrupted: finish it with --resume.") from None
        raise ValueError(f"{path} cannot be read ({error.strerror}): name a folder that `fit` wrote.") from None
    except ValueError:
        raise ValueError(f"{path} is damaged: fit again.") from None
    if not isinstance(stored, dict) or not {"format", "kind", "posterior"} <= stored.keys():
        raise ValueError(f"{path} was not written by InvariantNet: name a folder that `fit` wrote.")
    if stored["format"] != FORMAT:
        raise ValueError(
            f"{path} has format {stored['format']}, this version reads {FORMAT}: use the version that wrote it."
        )
    return stored


def posterior_from(stored: dict[str, Any]) -> SymmetryPosterior:
    """The posterior of a record."""
    values: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in stored["posterior"].items()
    }
    for name in ("log_evidence", "log_evidence_spread"):
        values[name] = tuple(math.nan if v is None else v for v in values[name])
    values["prices"] = tuple(Price(**price) for price in values["prices"])
    return SymmetryPosterior(**values)


def export_onnx(estimator: Any, path: Path) -> None:
    """Write an ONNX file and check it against torch."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ValueError(f"{error.name} is missing: pip install 'invariantnet[onnx]'.") from None
    writable_folder(path.parent)
    network = _Deployed(estimator).eval()
    example = torch.rand(3, *estimator.input_shape_) / estimator.scale_
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        # torch warns of its own inner workings.
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        file = Path(scratch) / "model.onnx"
        torch.onnx.export(
            network,
            (example,),
            file,
            dynamo=True,
            verbose=False,
            external_data=False,
            input_names=["x"],
            output_names=["y"],
            dynamic_shapes={"x": {0: torch.export.Dim("batch")}},
        )
        session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
        for batch in (example, example[:1]):
            with torch.no_grad():
                difference = np.abs(session.run(None, {"x": batch.numpy()})[0] - network(batch).numpy()).max()
            if not difference <= CLOSE:
                raise ValueError(f"the exported network differs by {difference:.1g}: please report this.")
        write_bytes(path, file.read_bytes())


def folded(network: nn.Module) -> nn.Module:
    """Plain layers where that is possible, else the network itself."""
    if isinstance(network, nn.Sequential) and isinstance(network[0], InvariantLinear):
        return nn.Sequential(network[0].fold(), *list(network)[1:])
    try:
        return network.fold() if isinstance(network, Symmetrized) else network
    except ValueError:
        return network


def fingerprint(x: np.ndarray | Rows, y: np.ndarray) -> str:
    """A digest of the data, to recognise it."""
    digest = hashlib.sha256()
    for part in blocks(as_inputs(x)):
        digest.update(part.contiguous().numpy().data)
    digest.update(np.ascontiguousarray(y).data)
    return f"{len(x)} × {x.shape[1]}, sha256 {digest.hexdigest()[:16]}"


def versions() -> dict[str, str]:
    """Of everything that a result depends on."""
    from invariantnet import __version__

    return {
        "invariantnet": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


class _Deployed(nn.Module):
    """From inputs in their shape to what the estimator predicts."""

    def __init__(self, estimator: Any) -> None:
        super().__init__()
        self.network = folded(estimator.network_).cpu()
        self.likelihood: Likelihood = estimator.likelihood
        self.affine = (getattr(estimator, "y_scale_", 1.0), getattr(estimator, "y_mean_", 0.0))

    def forward(self, x: Tensor) -> Tensor:
        output = self.network(x.flatten(1))
        if self.likelihood.averages_probabilities:
            return output.softmax(-1)
        scale, mean = self.affine
        return output[:, 0] * scale + mean


def _tensors(estimator: Any) -> dict[str, Tensor]:
    found = {f"network.{name}": value for name, value in estimator.network_.state_dict().items()}
    for k, group in enumerate(estimator.hypotheses_):
        found[f"hypotheses.{k}"] = torch.from_numpy(group.generators)
    return {name: value.detach().cpu().contiguous() for name, value in found.items()}


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
        if backbone is None:
            raise ValueError("this model has a backbone of your own: pass it to load, as no code is stored.")
        parameters["backbone"] = backbone
    if isinstance(parameters["groups"], list):
        known = catalogue_names()
        parameters["groups"] = [n if n in known else by_name.get(n, n) for n in parameters["groups"]]
    if parameters["input_shape"]:
        parameters["input_shape"] = tuple(parameters["input_shape"])
    estimator = cls(**parameters)
    for name, value in stored["learned"].items():
        setattr(estimator, name, tuple(value) if name == "input_shape_" else value)
    if "classes_" in stored["learned"]:
        estimator.classes_ = np.array(stored["learned"]["classes_"])
    estimator.hypotheses_, estimator.group_ = groups, by_name[stored["chosen"]]
    estimator.posterior_ = posterior_from(stored)
    history = stored["history"]
    estimator.history_ = History(**{**history, "scheme_names": tuple(history["scheme_names"])})
    network = estimator.make_final_network()
    weights = {n.removeprefix("network."): t for n, t in tensors.items() if n.startswith("network.")}
    network.load_state_dict(weights)
    estimator.network_ = network.eval()
    return estimator


def _parameters(estimator: Any) -> dict[str, Any]:
    values = estimator.get_params(deep=False)
    if callable(values["backbone"]):
        values["backbone"] = OWN_BACKBONE
    if isinstance(values["groups"], Group):
        values["groups"] = [values["groups"]]
    if not isinstance(values["groups"], str):
        values["groups"] = [g.name if isinstance(g, Group) else g for g in values["groups"]]
    if not isinstance(values["random_state"], int | None):
        values["random_state"] = None
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: null instead."""
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
