import shutil

import numpy as np
import pytest

import invariantnet as inv
from invariantnet.data import VARIANTS, embedded


def test_mnist_is_the_canonical_one():
    data = inv.datasets.load("mnist")
    assert data.x_train.shape == (60_000, 784)
    assert data.x_test.shape == (10_000, 784)
    assert data.shape == (28, 28)
    assert data.x_train.dtype == np.float32
    assert 0 == data.x_train.min() < data.x_train.max() == 1
    np.testing.assert_array_equal(data.y_train[:10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])
    np.testing.assert_array_equal(data.y_test[:5], [7, 2, 1, 0, 4])
    np.testing.assert_array_equal(
        np.bincount(data.y_test), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    )


@pytest.mark.parametrize("damage", ["truncated", "altered", "missing"])
def test_damaged_mnist_is_a_clear_error(tmp_path, damage):
    copy = tmp_path / "mnist.npz"
    if damage != "missing":
        shutil.copy(embedded.MNIST, copy)
        content = bytearray(copy.read_bytes())
        content[5_000_000] ^= 1
        copy.write_bytes(content[:1_000_000] if damage == "truncated" else content)
    with pytest.raises(ValueError, match=r"mnist\.npz.*reinstall"):
        embedded.read_mnist(copy)


@pytest.mark.parametrize("name", ["digits", "mnist"])
def test_variants_are_the_papers(name):
    plain = inv.datasets.load(name)
    sets = {v: inv.datasets.load(f"{name}:{v}", seed=3) for v in VARIANTS}
    np.testing.assert_array_equal(sets["plain"].x_train, plain.x_train)

    permuted = sets["permuted"]
    np.testing.assert_array_equal(np.sort(permuted.x_train[7]), np.sort(plain.x_train[7]))
    columns = np.lexsort(plain.x_train), np.lexsort(permuted.x_train)
    assert not np.array_equal(permuted.x_train, plain.x_train)
    assert len(columns[0]) == len(columns[1])
    means = plain.x_train.mean(0), permuted.x_train.mean(0)
    np.testing.assert_allclose(np.sort(means[0]), np.sort(means[1]), rtol=1e-5)

    for variant, group_name in (("rotated", "rot90"), ("flipped", "flips")):
        data = sets[variant]
        group = inv.symmetry(group_name, shape=data.shape)
        kept = plain.x_test, plain.y_test
        if variant == "rotated":
            keep = ~np.isin(plain.y_test, [6, 9])
            kept = plain.x_test[keep], plain.y_test[keep]
            assert not np.isin(data.y_train, [6, 9]).any()
        else:
            assert set(data.y_train) == set(range(10))
        np.testing.assert_array_equal(data.y_test, kept[1])
        copies = kept[0][:, group.elements.numpy()]
        matches = (copies == data.x_test[:, None]).all(-1)
        assert matches.any(1).all(), "every image is one of its poses"
        share = matches[matches.sum(1) == 1].mean(0)
        np.testing.assert_allclose(share, 0.25, atol=0.08 if name == "digits" else 0.02)


@pytest.mark.parametrize("variant", ["permuted", "rotated", "flipped"])
def test_equal_seeds_give_equal_bits(variant):
    first, again, other = (inv.datasets.load(f"digits:{variant}", seed=s) for s in (1, 1, 2))
    assert first.x_train.tobytes() == again.x_train.tobytes()
    assert first.x_test.tobytes() == again.x_test.tobytes()
    assert first.x_train.tobytes() != other.x_train.tobytes()
    assert "seed 1" in first.provenance


def test_any_catalogue_group_gives_a_variant():
    data = inv.datasets.load("digits:d4", seed=0)
    assert "d4" in data.provenance
    assert not np.isin(data.y_train, [6, 9]).any()


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("mnist:sideways", "unknown variant 'sideways'"),
        ("no-such-thing", "no data named"),
        ("digits:channels", "unknown variant"),
    ],
)
def test_unknown_names(source, fault):
    with pytest.raises(ValueError, match=fault):
        inv.datasets.load(source)
