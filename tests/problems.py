"""A small problem whose symmetry is known, and networks for it."""

import contextlib
from dataclasses import replace

import pytest
import torch

import invariantnet as inv
from invariantnet.estimator import fitting, networks
from invariantnet.inference import Evidence, HeldOut
from invariantnet.inference import hypotheses as hypotheses_module
from invariantnet.inference.hypotheses import Hypothesis, with_joins
from invariantnet.inference.models import MLPS, Model, models_for
from invariantnet.nn import Symmetrized, mlp
from invariantnet.training.config import Training

SHAPE = (3, 3)

BRIEFLY = Training(epochs=1, batch_size=32, learning_rate=1e-2, validation=0.0, min_steps=10)
"""A few steps: for tests in which it does not matter what a network has learned."""

ONE = Evidence(n_networks=1, first_block=40)
"""One network per hypothesis."""

USUAL = MLPS[0]
"""A model, trained as by default."""

BRIEF = Model("brief", BRIEFLY, BRIEFLY, mlp)
"""A model that is hardly trained."""


def candidates(*names, shape=SHAPE):
    return with_joins([inv.symmetry(name, shape=shape) for name in names])


def hypotheses(*names, shape=SHAPE, model=USUAL):
    """One hypothesis per symmetry, all with the same model."""
    return [Hypothesis(symmetry, model) for symmetry in candidates(*names, shape=shape)]


def make_network(hypothesis):
    return Symmetrized(mlp(hypothesis.symmetry.shape, 2, 16), [hypothesis.symmetry])


def corner_problem(n, seed, *, symmetric):
    """Is the brightest of four corners bright? Any corner, or only the first: invariant to rotations, or not."""
    x = torch.rand(n, 9, generator=torch.Generator().manual_seed(seed))
    corners = x[:, [0, 2, 6, 8]] ** 3
    y = (corners.mean(1) > 0.25) if symmetric else (corners[:, 0] > 0.25)
    return x, y.long()


@contextlib.contextmanager
def quickly_compared():
    """Let estimators compare one model after a few steps: for tests of anything but the verdict."""

    def briefly(backbone, shape):
        first = models_for("mlp" if backbone == "auto" else backbone, shape)[0]
        return (replace(first, training=BRIEFLY, final=replace(first.final, epochs=10, min_steps=0)),)

    with pytest.MonkeyPatch.context() as patch:
        for module in (hypotheses_module, networks):
            patch.setattr(module, "models_for", briefly)
        for module in (fitting, networks):
            patch.setattr(module, "HeldOut", lambda: HeldOut(training=BRIEFLY))
        yield
