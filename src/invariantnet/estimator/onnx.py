"""A fitted network for other programs: ONNX, checked against torch."""

import copy
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet._system.files import writable_file, write_bytes
from invariantnet.estimator.persistence import folded
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.mixture import make_buffers_dense

CLOSE = 1e-4


def export_onnx(estimator: Any, path: Path) -> None:
    """Write an ONNX file and check it against torch."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ValueError(f"{error.name} is missing: pip install 'invariantnet[onnx]'.") from None
    writable_file(path)
    ours = make_buffers_dense(copy.deepcopy(estimator.network_))
    network, reference = (_Deployed(estimator, inner.cpu()).eval() for inner in (folded(ours), ours))
    scale = max(1.0, *(abs(v) for v in network.affine))  # numbers have the units of the targets
    example = torch.rand(3, *estimator.input_shape_, generator=torch.Generator().manual_seed(0)) / estimator.scale_
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
                difference = np.abs(session.run(None, {"x": batch.numpy()})[0] - reference(batch).numpy()).max()
            if not difference <= CLOSE * scale:
                raise ValueError(f"the exported network differs by {difference:.1g}: please report this.")
        write_bytes(path, file.read_bytes())


class _Deployed(nn.Module):
    """From inputs in their shape to what the estimator predicts."""

    def __init__(self, estimator: Any, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.likelihood: Likelihood = estimator.likelihood
        self.affine = (getattr(estimator, "y_scale_", 1.0), getattr(estimator, "y_mean_", 0.0))

    def forward(self, x: Tensor) -> Tensor:
        output = self.network(x.flatten(1))
        if self.likelihood.averages_probabilities:
            return output.softmax(-1)
        scale, mean = self.affine
        return output[:, 0] * scale + mean
