"""`--backbone package.module:function`: the user's own code, only where the command names it."""

import sys

import numpy as np
import pytest
from bad_inputs import refused

from invariantnet.app.cli import main

CODE = """
import torch
from torch import nn
from invariantnet.nn import Pretrained

def make_body():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU())

def make_pretrained():
    return Pretrained(make_body(), preprocess=lambda x: 2 * x)

def make_network(input_shape, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, outputs))

def three(a, b, c): pass
def fails(): raise RuntimeError("no weights")
def number(): return 3
def other_weights(): make_body().load_state_dict(nn.Linear(2, 2).state_dict())
def gives_nan(): return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Threshold(9, torch.nan))
def other_shape(): return nn.Conv2d(3, 4, 3)
def mixes_inputs(): return nn.Flatten(0)
def no_such_head(): return Pretrained(make_body(), head="fc")
def resizes_wrongly(): return Pretrained(make_body(), preprocess=lambda x: nn.functional.interpolate(x, (8, 8)))
def complex_features(): return nn.Sequential(nn.Flatten(), Fourier())

class Fourier(nn.Module):
    def forward(self, x):
        return torch.fft.fft(x)

broken = "text"
"""
OPTIONS = ["--symmetries", "hflip", "--n-networks", "1", "--epochs", "1", "--hidden", "4"]


@pytest.fixture
def project(here, monkeypatch):
    """A folder with data and code."""
    rng = np.random.default_rng(0)
    np.savez("data.npz", x=rng.random((40, 4, 4)), y=np.arange(40) % 2)
    (here / "my_networks.py").write_text(CODE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield here
    sys.modules.pop("my_networks", None)


@pytest.mark.parametrize("function", ["make_pretrained", "make_network"])
def test_a_run_with_code_of_ones_own(function, project, capfd, brief_comparison):
    name = f"my_networks:{function}"
    main(["fit", "data.npz", *OPTIONS, "--backbone", name, "--out", "run"])
    assert (project / "run" / "report.html").exists()
    main(["fit", "data.npz", *OPTIONS, "--backbone", name, "--out", "run", "--resume"])
    assert "nothing to train" in capfd.readouterr().err
    main(["predict", "run", "data.npz", "--out", "predictions.csv", "--backbone", name])
    assert len((project / "predictions.csv").read_text().splitlines()) == 41
    main(["report", "run", "--backbone", name])
    said = refused(capfd, ["predict", "run", "data.npz"], project)
    assert "a backbone of your own: pass it to load, as no code is stored" in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "no_such:make",
            "no_such cannot be imported (No module named 'no_such'): install it",
        ),
        ("my_networks:makes", "my_networks has no 'makes': name one of its functions"),
        ("my_networks:three", "takes other arguments: let it take none, or input shape and outputs"),
        ("my_networks:fails", "my_networks:fails() failed (RuntimeError: no weights): mend it"),
        (
            "my_networks:other_weights",
            "failed (RuntimeError: Error(s) in loading state_dict for Sequential: Missing",
        ),
        ("my_networks:gives_nan", "the body gives NaN or infinite features: check its weights and preprocess"),
        ("my_networks:other_shape", "the body failed on inputs of shape (4, 4)"),
        ("my_networks:mixes_inputs", "the body made shape (32,) of 2 inputs: let it keep the batch as the first"),
        ("my_networks:no_such_head", "failed (ValueError: the body has no layer 'fc': name one of its layers"),
        ("my_networks:resizes_wrongly", "preprocess failed on inputs of shape (4, 4)"),
        ("my_networks:complex_features", "the body returned complex numbers: let it return real ones"),
        ("my_networks:number", "my_networks:number() gives a int: let it give a torch module or Pretrained"),
        ("my_networks:broken", "my_networks:broken is no function: name one that makes a network"),
        ("resnet", "backbone 'resnet' is unknown: choose among auto, mlp, cnn"),
    ],
)
def test_a_backbone_that_is_none_is_refused(name, said, project, capfd, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert said in refused(capfd, ["fit", "data.npz", *OPTIONS, "--backbone", name], project)
