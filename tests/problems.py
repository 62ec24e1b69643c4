"""A small problem whose symmetry is known, and networks for it."""

import contextlib
from dataclasses import replace

import pytest
import torch

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet.inference import Evidence
from invariantnet.inference.hypotheses import hypotheses
from invariantnet.nn import Symmetrized, mlp
from invariantnet.training.config import Training

SHAPE = (3, 3)

BRIEFLY = Training(epochs=1, batch_size=32, learning_rate=1e-2, validation=0.0, min_steps=10)
"""A few steps: for tests in which it does not matter what a network has learned."""

ONE = Evidence(n_networks=1, first_block=40)
"""One network per hypothesis, trained as by default."""

BRIEF = replace(ONE, training=BRIEFLY)
"""One network per hypothesis, hardly trained."""


def candidates(*names, shape=SHAPE):
    return hypotheses([inv.symmetry(name, shape=shape) for name in names])


def make_network(group):
    return Symmetrized(mlp(group.shape, 2, 16), [group])


def corner_problem(n, seed, *, symmetric):
    """Is the brightest of four corners bright? Any corner, or only the first: invariant to rotations, or not."""
    x = torch.rand(n, 9, generator=torch.Generator().manual_seed(seed))
    corners = x[:, [0, 2, 6, 8]] ** 3
    y = (corners.mean(1) > 0.25) if symmetric else (corners[:, 0] > 0.25)
    return x, y.long()


@contextlib.contextmanager
def quickly_compared():
    """Let estimators compare networks after a few steps: for tests of anything but the verdict."""
    with pytest.MonkeyPatch.context() as patch:
        for estimator in (InvariantClassifier, InvariantRegressor):
            patch.setattr(estimator, "comparison", replace(estimator.comparison, training=BRIEFLY))
        yield
