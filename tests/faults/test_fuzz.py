"""Mutated bytes of good files: readers raise nothing but ValueError. `studies/fuzz.py` goes on for longer."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studies import fuzz

IMAGES = ("png", "jpeg", "gif", "bmp", "tiff", "webp", "ppm")
NAMES = (
    "npz",
    "compressed npz",
    "npy",
    "csv",
    *IMAGES,
    "run.json",
    "model.safetensors",
    "values of run.json",
    "score",
)


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    found = fuzz.targets(tmp_path_factory.mktemp("fuzz"))
    assert set(found) == set(NAMES)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_good_files_are_read(targets, name):
    targets[name].read(targets[name].good)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**64))
def test_mutated_files_are_read_or_refused(targets, name, seed):
    content = fuzz.mutate(targets[name].good, random.Random(seed))
    assert fuzz.crash(targets[name], content) is None


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(targets, name, content):
    assert fuzz.crash(targets[name], content) is None


def test_a_crash_is_noticed(targets):
    broken = fuzz.Target(b"", lambda content: {}["missing"])
    assert "KeyError" in fuzz.crash(broken, b"")
