"""Mutated bytes of good files: readers raise nothing but ValueError. `python -m studies run fuzz` takes longer."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studies.reliability.fuzz import crash, mutate
from studies.reliability.readers import NAMES, Target
from studies.reliability.readers import targets as every_reader


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    found = every_reader(tmp_path_factory.mktemp("fuzz"))
    assert set(found) == set(NAMES)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_good_files_are_read(targets, name):
    targets[name].read(targets[name].good)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**64))
def test_mutated_files_are_read_or_refused(targets, name, seed):
    content = mutate(targets[name].good, random.Random(seed))
    assert crash(targets[name], content) is None


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(targets, name, content):
    assert crash(targets[name], content) is None


def test_a_crash_is_noticed(targets):
    broken = Target(b"", lambda content: {}["missing"])
    assert "KeyError" in crash(broken, b"")
