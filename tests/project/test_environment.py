"""The environment that `make` sets up: torch for the CPU, and nothing that breaks it."""

import sys
from importlib import metadata

import pytest
import torch


@pytest.mark.skipif(
    sys.platform != "linux" or torch.cuda.is_available(), reason="only on Linux machines without GPU"
)
def test_torch_is_the_cpu_build_alone():
    assert torch.__version__ == "2.13.0+cpu"
    installed = {distribution.metadata["Name"].lower() for distribution in metadata.distributions()}
    unwanted = {
        name for name in installed if name.startswith(("nvidia", "cuda", "triton", "torchvision", "torchaudio"))
    }
    assert not unwanted
