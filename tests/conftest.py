"""Every shape annotation of the package is checked while the tests run."""

import contextlib
import os
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# An estimator takes any parameter and checks it when it fits, as scikit-learn wants it; the report has no shapes.
PACKAGE = Path(__file__).parent.parent / "src/invariantnet"
UNCHECKED = ("estimator", "report", "__init__")
CHECKED = [f"invariantnet.{path.stem}" for path in PACKAGE.iterdir() if path.stem not in UNCHECKED]
install_import_hook(CHECKED, "beartype.beartype")

# One thread per worker: two under contention cost several times the CPU time of one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("laws", deadline=None, max_examples=30, print_blob=True)
settings.load_profile("laws")


@contextlib.contextmanager
def without_checks():
    """Call the package as users do: no annotation is checked.

    For tests of wrong words, which the checks would refuse first, and of long trainings, which take twice as long
    with the checks.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        yield


@pytest.fixture
def annotations_unchecked():
    """No annotation is checked in the test."""
    with without_checks():
        yield


@pytest.fixture(scope="module")
def module_unchecked():
    """No annotation is checked in the module, its fixtures included."""
    with without_checks():
        yield


@pytest.fixture
def brief_comparison(annotations_unchecked):
    """Compare one model after a few steps, for tests about anything but the verdict."""
    from problems import quickly_compared

    with quickly_compared():
        yield


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory):
    """A run on digits with a clear verdict; beside it is what the command printed."""
    from invariantnet.app.cli import main

    folder = tmp_path_factory.mktemp("digits")
    command = "fit digits:rotated --symmetries rot90,flips --examples 600 --hidden 16 --n-networks 1 --epochs 10"
    command = [*command.split(), "--backbone", "plain mlp"]
    with (folder / "said.txt").open("w") as said, contextlib.redirect_stdout(said), without_checks():
        main([*command, "--out", str(folder / "run")])
    return folder / "run"


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A small run, to predict from, and to damage copies of."""
    from bad_inputs import TINY, X, Y
    from problems import quickly_compared

    from invariantnet.app.record import Settings
    from invariantnet.app.runs import fit

    folder = tmp_path_factory.mktemp("fitted")
    np.savez(folder / "data.npz", x=X, y=Y)
    with quickly_compared():
        fit(Settings(str(folder / "data.npz"), ("hflip",), **TINY), folder / "run")
    return folder / "run"
