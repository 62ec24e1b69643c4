"""Two real processes train one network, and give what one process gives."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from invariantnet import InvariantClassifier
from invariantnet.app import runs as module
from invariantnet.app.cli import main
from invariantnet.app.record import Settings
from invariantnet.app.runs import fit
from invariantnet.data import load
from invariantnet.training import distributed
from invariantnet.training.distributed import ProcessGroup, launch_processes

BIN = Path(sys.executable).parent
FIT = [
    "fit",
    "digits:rotated",
    "--symmetries",
    "rot90",
    "--examples",
    "61",
    "--backbone",
    "plain mlp",
    "--hidden",
    "16",
    "--n-networks",
    "1",
    "--epochs",
    "2",
]


def fitted(out, *launcher):
    command = [*launcher, *FIT, "--out", out, "--devices", "2"]
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return InvariantClassifier.load(out)


def test_two_processes_give_what_one_gives(tmp_path, annotations_unchecked):
    """Sums in another order round differently, and training amplifies it: equal to a hundredth."""
    main([*FIT, "--out", str(tmp_path / "one")])
    one = InvariantClassifier.load(tmp_path / "one")
    started = fitted(tmp_path / "two", BIN / "invariantnet")
    handed = fitted(tmp_path / "run", BIN / "torchrun", "--nproc-per-node", "2", "-m", "invariantnet")
    x = load("digits:rotated").x_test
    for two in (started, handed):
        np.testing.assert_allclose(two.posterior_.probabilities, one.posterior_.probabilities, atol=0.01)
        np.testing.assert_allclose(two.predict_proba(x), one.predict_proba(x), atol=0.01)
        assert two.symmetry_.name == one.symmetry_.name
    assert (tmp_path / "two/report.html").exists()


def test_faults():
    with pytest.raises(ValueError, match="at least one"), launch_processes(0):
        pass


def test_running_statistics_are_the_mean_of_all_processes(monkeypatch):
    """Otherwise the processes would validate different networks, and one could stop before the other."""
    sums = []

    def add_those_of_the_other(tensor):
        sums.append(tensor.add_(3))

    monkeypatch.setattr(torch.distributed, "all_reduce", add_those_of_the_other)
    pair, layer = ProcessGroup(), nn.BatchNorm1d(4)
    layer.register_buffer("constant", torch.ones(2), persistent=False)
    pair.size = 2
    pair.average_buffers(layer)
    assert layer.running_mean.tolist() == [1.5] * 4
    assert layer.running_var.tolist() == [2.0] * 4
    assert layer.num_batches_tracked == 0
    assert layer.constant.tolist() == [1, 1]
    ProcessGroup().average_buffers(layer)
    pair.average_buffers(nn.Linear(2, 2))
    assert len(sums) == 1, "one message for all statistics, and none without any"


def test_others_wait_until_what_an_earlier_run_left_is_gone(tmp_path, monkeypatch, brief_comparison):
    settings = Settings("digits:rotated", ("rot90",), examples=60, hidden=4, n_networks=1, epochs=1)
    record = fit(settings, tmp_path)
    InvariantClassifier.load(tmp_path).save(tmp_path / "unfinished" / record.digest / "fitted")
    other = ProcessGroup()
    other.rank, other.wait = 1, lambda: shutil.rmtree(tmp_path / "unfinished", ignore_errors=True)
    monkeypatch.setattr(distributed, "_current", other)
    trained = []
    monkeypatch.setattr(module, "fit_baseline", lambda clf, *_: trained.append(hasattr(clf, "cpu_seconds_")))
    fit(settings, tmp_path, overwrite=True)
    assert trained == [True], "the first process trains, and its gradients are summed with ours"
