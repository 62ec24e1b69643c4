"""Two real processes train one network, and give what one process gives."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from invariantnet import InvariantClassifier
from invariantnet.app import runs as module
from invariantnet.app.record import Settings
from invariantnet.app.runs import fit
from invariantnet.data import load
from invariantnet.training import distributed
from invariantnet.training.distributed import ProcessGroup, launch_processes

BIN = Path(sys.executable).parent
FIT = (
    "fit",
    "digits:rotated",
    "--symmetries",
    "rot90",
    "--examples",
    "301",
    "--hidden",
    "16",
    "--n-networks",
    "1",
    "--epochs",
    "2",
)


def fitted(out, *launcher, more=()):
    command = [*launcher, *FIT, "--out", out, *more]
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads((out / "run.json").read_text()), InvariantClassifier.load(out)


def test_two_processes_give_what_one_gives(tmp_path):
    """Sums in another order round differently, and training amplifies it: equal to a hundredth."""
    alone, one = fitted(tmp_path / "one", BIN / "invariantnet")
    started, two = fitted(tmp_path / "two", BIN / "invariantnet", more=("--devices", "2"))
    torchrun = (BIN / "torchrun", "--nproc-per-node", "2", "-m", "invariantnet")
    handed, run = fitted(tmp_path / "run", *torchrun, more=("--devices", "2"))
    x = load("digits:rotated").x_test
    for record, clf in ((started, two), (handed, run)):
        np.testing.assert_allclose(
            record["posterior"]["probabilities"], alone["posterior"]["probabilities"], atol=0.01
        )
        np.testing.assert_allclose(clf.predict_proba(x), one.predict_proba(x), atol=0.01)
        assert record["chosen"] == alone["chosen"]
    assert (tmp_path / "two/report.html").exists()


def test_faults():
    with pytest.raises(ValueError, match="at least one"), launch_processes(0):
        pass


def test_running_statistics_are_the_mean_of_all_processes():
    """Else the processes would judge with different networks, and one of them might stop before the other."""

    class Fabric:
        global_rank, world_size = 0, 2

        def all_reduce(self, tensor, reduce_op):
            assert reduce_op == "mean"
            return (tensor + 3) / 2  # the other process has 3 everywhere

    layer = nn.BatchNorm1d(4)
    ProcessGroup(Fabric()).average_buffers(layer)
    assert layer.running_mean.tolist() == [1.5] * 4
    assert layer.running_var.tolist() == [2.0] * 4
    assert layer.num_batches_tracked == 0
    ProcessGroup().average_buffers(layer)
    assert layer.running_mean.tolist() == [1.5] * 4


def test_others_wait_until_what_an_earlier_run_left_is_gone(tmp_path, monkeypatch):
    settings = Settings("digits:rotated", ("rot90",), examples=60, hidden=4, n_networks=1, epochs=1)
    record = fit(settings, tmp_path)
    InvariantClassifier.load(tmp_path).save(tmp_path / "unfinished" / record.digest / "fitted")
    other = ProcessGroup()
    other.rank, other.wait = 1, lambda: shutil.rmtree(tmp_path / "unfinished", ignore_errors=True)
    monkeypatch.setattr(distributed, "_current", other)
    trained = []
    monkeypatch.setattr(module, "fit_baseline", lambda clf, *_: trained.append(hasattr(clf, "cpu_seconds_")))
    fit(settings, tmp_path)
    assert trained == [True], "the first process trains, and its gradients are summed with ours"
