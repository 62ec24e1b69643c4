"""How examples are divided into batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invariantnet.training.config import Training


@given(st.integers(1, 400), st.integers(1, 64), st.integers(1, 8))
def test_batches_cover_the_examples_and_none_is_larger_than_asked_for(examples, size, batches):
    sizes = Training(batch_size=size, min_batches=batches).batch_sizes(examples)
    assert sum(sizes) == examples
    assert max(sizes) <= size + 1, "a single example joins the last batch"
    assert len(sizes) == Training(batch_size=size, min_batches=batches).batches(examples)


@pytest.mark.parametrize(
    ("examples", "sizes"), [(200, [32] * 6 + [8]), (60, [15] * 4), (20, [8, 8, 4]), (6, [6]), (33, [9, 9, 9, 6])]
)
def test_few_examples_are_split_into_smaller_batches(examples, sizes):
    assert Training(batch_size=32, min_batches=4).batch_sizes(examples) == sizes
