import logging

import numpy as np
import onnxruntime
import pytest
import torch

import invariantnet as inv


class Pooled(torch.nn.Module):
    def __init__(self, symmetry):
        super().__init__()
        self.symmetry, self.layer = symmetry, torch.nn.Linear(symmetry.dim, 3)

    def forward(self, x):
        return self.layer(self.symmetry.act(x)).amax(-2)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("hflip+rotation:45", (2, 6, 6)), ("time-shift:2+offset:1", (9, 2))],
)
@pytest.mark.filterwarnings("ignore")  # torch warns of its own inner workings
def test_copies_are_part_of_an_onnx_file(name, shape, tmp_path, annotations_unchecked):
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    network = Pooled(inv.symmetry(name, shape)).eval()
    file = tmp_path / "model.onnx"
    x = torch.rand(5, network.symmetry.dim)
    torch.onnx.export(
        network,
        (x[:3],),
        file,
        dynamo=True,
        verbose=False,
        external_data=False,
        input_names=["x"],
        dynamic_shapes={"x": {0: torch.export.Dim("batch")}},
    )
    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    with torch.no_grad():
        expected = network(x).numpy()
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], expected, atol=1e-5)
