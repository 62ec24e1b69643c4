import numpy as np
import torch
from threadpoolctl import threadpool_info

import invariantnet as inv
from invariantnet._system.torch_state import threads
from invariantnet.discovery import predictors


def in_numpy():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_torch_and_numpy_compute_with_as_many_threads_as_asked_for_and_with_those_of_before_afterwards():
    before = torch.get_num_threads(), in_numpy()
    with threads(1):
        assert torch.get_num_threads() == 1
        assert set(in_numpy()) == {1}
    assert (torch.get_num_threads(), in_numpy()) == before


def test_discovery_computes_with_one_thread(monkeypatch):
    seen = []
    fit = predictors.KernelPredictor.fit

    def watched(*arguments):
        seen.append(in_numpy())
        return fit(*arguments)

    monkeypatch.setattr(predictors.KernelPredictor, "fit", watched)
    rng = np.random.default_rng(0)
    inv.discover(rng.normal(size=(60, 20)), rng.normal(size=60), random_state=0)
    assert seen
    assert {number for each in seen for number in each} == {1}
