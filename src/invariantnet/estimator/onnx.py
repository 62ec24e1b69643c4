"""A fitted network for other programs: an ONNX file that says what its inputs and outputs mean."""

import copy
import importlib.util
import json
import logging
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet._system.files import writable_file, write_bytes
from invariantnet._system.words import package_version
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.folding import folded, is_exact
from invariantnet.nn.mixture import make_buffers_dense
from invariantnet.nn.standardize import Standardize
from invariantnet.symmetries.shapes import has_features

CLOSE = 1e-4
"""Largest difference to torch, in probability or in standard deviations of the target."""

NEEDED = ("onnx", "onnxscript", "onnxruntime")
"""Packages of the extra `onnx`."""

AXES = {1: "features", 2: "height, width", 3: "channels, height, width"}
"""What the axes of an input are, by their number."""

FEATURES = "points or steps, features"
"""What two axes are where the second is much shorter."""


@dataclass(frozen=True)
class Deployed:
    """A network, and what its inputs and outputs mean.

    Args:
        network: The trained network, from flat inputs to outputs.
        likelihood: Says what the outputs mean.
        input_shape: Shape of one input.
        symmetry: Name of the symmetry of the network.
        class_names: Names of the classes; empty for a regressor.
        target_scale: Unit of each of the network's predictions, for a regressor.
        target_mean: Target that the network's zero stands for, for a regressor.
        single: Whether a regressor predicts one number rather than a row of them.
    """

    network: nn.Module
    likelihood: Likelihood
    input_shape: tuple[int, ...]
    symmetry: str
    class_names: tuple[str, ...] = ()
    target_scale: tuple[float, ...] = ()
    target_mean: tuple[float, ...] = ()
    single: bool = True

    @property
    def unit(self) -> float:
        """Size of the predictions, which rounding errors are relative to."""
        return max(1.0, *map(abs, (*self.target_scale, *self.target_mean, 0.0)))

    def metadata(self) -> dict[str, str]:
        """What a program needs to know to use the file, by keys that begin with `invariantnet.`."""
        facts = {
            "version": package_version(),
            "symmetry": self.symmetry,
            "exact": json.dumps(is_exact(self.network)),
            "input_shape": json.dumps(self.input_shape),
            "input_layout": f"batch, {axes_in_words(self.input_shape)}",
            "input_scaling": "units of the data that was fitted, from 0 to 1 for images of a folder; the network "
            "standardises them itself",
            "output": "probability of each class"
            if self.class_names
            else "predicted numbers, in units of the data that was fitted",
            "classes": json.dumps(self.class_names, ensure_ascii=False),
        }
        return {f"invariantnet.{name}": value for name, value in facts.items()}


def axes_in_words(shape: tuple[int, ...]) -> str:
    """Say what the axes of an input are.

    Example:
        >>> axes_in_words((28, 28)), axes_in_words((7, 2))
        ('height, width', 'points or steps, features')
    """
    return FEATURES if has_features(shape) else AXES.get(len(shape), "any axes")


def export_onnx(deployed: Deployed, path: Path) -> None:
    """Write an ONNX file and check that it predicts what torch predicts.

    Args:
        deployed: The network and what it means.
        path: File to write.

    Raises:
        ValueError: If a package is missing, the file cannot be written, or the exported network differs.
    """
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            raise ValueError(f"{name} is missing: pip install 'invariantnet[onnx]'.")
    writable_file(path)
    ours = make_buffers_dense(copy.deepcopy(deployed.network)).cpu()
    network, reference = (_Predicting(deployed, inner).eval() for inner in (folded(ours), ours))
    example = torch.rand(3, *deployed.input_shape, generator=torch.Generator().manual_seed(0))
    example = _like_the_data(example, deployed.network)
    content = _with_metadata(_exported(network, example), deployed.metadata())
    _check(content, reference, example, deployed.unit)
    write_bytes(path, content)


def _like_the_data(example: Tensor, network: nn.Module) -> Tensor:
    """Inputs in the units of the data, where the network knows them."""
    inner = getattr(network, "network", network)
    inputs = getattr(inner, "standardize", None)
    if not isinstance(inputs, Standardize):
        return example
    return (example.flatten(1) * inputs.scale.cpu() + inputs.mean.cpu()).reshape(example.shape)


class _Predicting(nn.Module):
    """From inputs in their shape to what the estimator predicts."""

    def __init__(self, deployed: Deployed, network: nn.Module) -> None:
        super().__init__()
        self.network, self.classifies = network, deployed.likelihood.averages_probabilities
        self.single = deployed.single
        if not self.classifies:
            self.register_buffer("scale", torch.tensor(deployed.target_scale))
            self.register_buffer("mean", torch.tensor(deployed.target_mean))

    def forward(self, x: Tensor) -> Tensor:
        output = self.network(x.flatten(1))
        if self.classifies:
            return output.softmax(-1)
        means = output.tensor_split(2, dim=-1)[0] * self.get_buffer("scale") + self.get_buffer("mean")
        return means[:, 0] if self.single else means


def _exported(network: nn.Module, example: Tensor) -> bytes:
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
        return file.read_bytes()


def _with_metadata(content: bytes, metadata: dict[str, str]) -> bytes:
    import onnx

    model: Any = onnx.load_model_from_string(content)
    onnx.helper.set_model_props(model, metadata)
    return model.SerializeToString()


def _check(content: bytes, reference: nn.Module, example: Tensor, unit: float) -> None:
    """Raise a ValueError if the file predicts other than the reference, for several examples or for one."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for batch in (example, example[:1]):
        with torch.no_grad():
            expected = reference(batch).numpy()
        difference = np.abs(session.run(None, {"x": batch.numpy()})[0] - expected).max()
        if not difference <= CLOSE * unit:
            raise ValueError(f"the exported network differs by {difference:.1g}: please report this.")
