"""Two real processes train one network, and give what one process gives."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from invariantnet import InvariantClassifier
from invariantnet.datasets import load
from invariantnet.team import together

BIN = Path(sys.executable).parent
FIT = (
    "fit",
    "digits:rotated",
    "--groups",
    "rot90",
    "--examples",
    "301",
    "--hidden",
    "16",
    "--networks",
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
    with pytest.raises(ValueError, match="at least one"), together(0):
        pass
