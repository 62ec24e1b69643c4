"""Generators as users pass them."""

import warnings

import pytest

from invariantnet import Group


def test_index_arrays_that_seem_to_count_from_one_are_warned_about():
    with pytest.warns(UserWarning, match="3 stands for the negative of input 0: if you count inputs from 1"):
        Group.from_permutations([[2, 3, 1]])
    for harmless in ([[3, 1, 2]], [[2, 0, 4]], [[1, 2, 0]], [[1, 2]]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Group.from_permutations(harmless)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Group.from_matrices([[[0, 1, 0], [0, 0, 1], [-1, 0, 0]]])
