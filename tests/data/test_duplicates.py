"""Duplicate examples are merged, and the digests that find them also recognise the data."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from invariantnet import InvariantClassifier
from invariantnet.data import duplicates, fingerprint
from invariantnet.data.duplicates import merge_duplicates
from invariantnet.data.fingerprint import hash_rows


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=1), st.booleans())
def test_merged_examples_are_distinct_and_keep_their_weight(rows, several_targets):
    """A dictionary finds the same examples."""
    x = np.array([row[:1] for row in rows], np.float32)
    y = np.array([row[1:] if several_targets else row[1] for row in rows])
    found = merge_duplicates(x, y)
    counts = {}
    for row, target in zip(x.tolist(), y.tolist(), strict=True):
        counts[str((row, target))] = counts.get(str((row, target)), 0) + 1
    weight = np.ones(len(found.x)) if found.weight is None else found.weight
    merged = zip(found.x.tolist(), found.y.tolist(), (weight * len(x) / len(found.x)).tolist(), strict=True)
    assert {str((row, target)): pytest.approx(w) for row, target, w in merged} == counts
    np.testing.assert_array_equal(found.rows, hash_rows(found.x))


def test_labels_in_words_and_in_numbers_are_merged_in_the_same_order():
    x = np.random.default_rng(0).integers(0, 3, (50, 2)).astype(np.float32)
    y = np.random.default_rng(1).integers(0, 2, 50)
    numbers, words = merge_duplicates(x, y), merge_duplicates(x, np.array(["cat", "dog"])[y])
    np.testing.assert_array_equal(numbers.x, words.x)
    np.testing.assert_array_equal(numbers.weight, words.weight)


def test_a_fingerprint_depends_on_every_number_and_their_order():
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([0, 1, 0, 1])
    changed = x.copy()
    changed[2, 1] += 1e-5
    seen = [
        fingerprint.fingerprint(*data)
        for data in ((x, y), (changed, y), (x, 1 - y), (x[::-1].copy(), y), (x[:3], y[:3]), (x.reshape(6, 2), y))
    ]
    assert len(set(seen)) == len(seen)
    assert (
        fingerprint.fingerprint(torch.from_numpy(x), y) == fingerprint.fingerprint(x, y, hash_rows(x)) == seen[0]
    )


def test_zeros_of_either_sign_are_equal():
    assert len(set(hash_rows(np.array([[0.0, 1.0], [-0.0, 1.0]], np.float32)))) == 1


def test_a_fit_hashes_its_data_once(monkeypatch, brief_comparison):
    hashed = []
    for module in (duplicates, fingerprint):
        monkeypatch.setattr(module, "hash_rows", lambda x: hashed.append(len(x)) or hash_rows(x))
    x = np.random.default_rng(0).normal(size=(40, 4))
    InvariantClassifier(["sign"], hidden=2, n_networks=1, epochs=1, random_state=0).fit(x, x[:, 0] > 0)
    assert hashed == [40]
