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
        ("my_networks:number", "my_networks:number() gives a int: let it give a torch module or Pretrained"),
        ("my_networks:broken", "my_networks:broken is no function: name one that makes a network"),
        ("resnet", "backbone 'resnet' is unknown: choose among auto, mlp, cnn"),
    ],
)
def test_a_backbone_that_is_none_is_refused(name, said, project, capfd, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert said in refused(capfd, ["fit", "data.npz", *OPTIONS, "--backbone", name], project)
