import shutil

import numpy as np
import pytest

import invariantnet as inv
from invariantnet.data import embedded
from invariantnet.data.variants import vary


@pytest.fixture(scope="module")
def mnist():
    return inv.datasets.load("mnist")


def test_mnist_is_the_canonical_one(mnist):
    assert mnist.x_train.shape == (60_000, 784)
    assert mnist.x_test.shape == (10_000, 784)
    assert mnist.shape == (28, 28)
    assert mnist.x_train.dtype == np.float32
    assert 0 == mnist.x_train.min() < mnist.x_train.max() == 1
    np.testing.assert_array_equal(mnist.y_train[:10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])
    np.testing.assert_array_equal(mnist.y_test[:5], [7, 2, 1, 0, 4])
    np.testing.assert_array_equal(
        np.bincount(mnist.y_test), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
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


def test_plain_and_permuted_images():
    data, plain, permuted = (
        inv.datasets.load(name, seed=3) for name in ("digits", "digits:plain", "digits:permuted")
    )
    np.testing.assert_array_equal(plain.x_train, data.x_train)
    assert not np.array_equal(permuted.x_train, data.x_train)
    # One permutation for all: every column of either part is a column of the data.
    for part in ("x_train", "x_test"):
        columns = [{column.tobytes() for column in getattr(d, part).T} for d in (data, permuted)]
        assert columns[0] == columns[1]
    np.testing.assert_array_equal(np.sort(permuted.x_train, axis=1), np.sort(data.x_train, axis=1))


@pytest.mark.parametrize(
    ("name", "variant", "symmetry", "tolerance"),
    [
        ("digits", "rotated", "rot90", 0.08),
        ("digits", "flipped", "flips", 0.08),
        ("mnist", "rotated", "rot90", 0.02),
    ],
)
def test_every_image_is_in_one_pose_drawn_uniformly(name, variant, symmetry, tolerance, mnist):
    plain = mnist if name == "mnist" else inv.datasets.load(name)
    posed = vary(plain, variant, seed=3)
    kept = ~np.isin(plain.y_test, [6, 9]) if variant == "rotated" else np.ones(len(plain.y_test), bool)
    assert set(posed.y_train) == set(range(10)) - ({6, 9} if variant == "rotated" else set())
    np.testing.assert_array_equal(posed.y_test, plain.y_test[kept])
    copies = plain.x_test[kept][:, inv.symmetry(symmetry, shape=plain.shape).elements.numpy()]
    matches = (copies == posed.x_test[:, None]).all(-1)
    assert matches.any(1).all(), "every image is one of its poses"
    share = matches[matches.sum(1) == 1].mean(0)
    np.testing.assert_allclose(share, 0.25, atol=tolerance)


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


def test_any_range_gives_a_variant():
    plain, data, again = (
        inv.datasets.load(name, seed=5) for name in ("digits", *["digits:hflip+rotation:90"] * 2)
    )
    assert "rotations up to 90°" in data.provenance
    assert set(data.y_test) == set(range(10)), "ranges keep all classes"
    assert data.x_train.tobytes() == again.x_train.tobytes()
    # Turning keeps the ink within the frame, up to what the corners lose, and every image has a pose of its own.
    np.testing.assert_allclose(data.x_test.mean(), plain.x_test.mean(), rtol=0.1)
    assert (np.abs(data.x_test - plain.x_test).max(1) > 0.05).mean() > 0.9


def test_range_moves_images_as_far_as_it_says():
    dot = np.zeros((2000, 81), np.float32)
    dot[:, 40] = 1
    image = inv.datasets.Dataset(dot, np.zeros(2000, int), dot[:2], np.zeros(2, int), (9, 9), ("dot",), "a dot")
    shifted = vary(image, "translation:2", seed=0).x_train.reshape(-1, 9, 9)
    columns = (shifted.sum(1) @ np.arange(9)) - 4
    assert -2 <= columns.min() < -1.9
    assert 1.9 < columns.max() <= 2
    assert abs(columns.mean()) < 0.1
    assert columns.std() == pytest.approx(2 / 3**0.5, rel=0.05)


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
