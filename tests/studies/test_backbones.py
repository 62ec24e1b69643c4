"""The studies of pretrained bodies: their images, their bodies, and what they claim."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_sample_images

import invariantnet as inv
from invariantnet import check_invariance
from studies.backbones import frozen_body, image_sizes, killed_body, own_resnet
from studies.backbones.bodies import lite0
from studies.backbones.images import crops, new_digits
from studies.truth.real_sets import missing_pictures


def photographs():
    """Crops of two photographs that come with scikit-learn, and which photograph each is from."""
    pictures = [picture.transpose(2, 0, 1) / np.float32(255) for picture in load_sample_images().images]
    y = np.arange(30) % 2
    return np.stack([pictures[k][:, 9 * i :, 11 * i :][:, :32, :32] for i, k in enumerate(y)]), y


def test_efficientnet_lite0_as_a_body(brief_comparison):
    x, y = photographs()
    clf = inv.InvariantClassifier(["hflip"], backbone=lite0(), n_networks=1, epochs=1, hidden=4, random_state=0)
    clf.fit(x, y)
    assert clf.network_.module[1][0].mean.shape == (1280,)
    assert check_invariance(clf.network_, clf.symmetry_, torch.from_numpy(x[:4]).flatten(1)) < 1e-3


@pytest.mark.skipif(bool(missing_pictures()), reason=missing_pictures())
def test_crops_to_test_on_are_none_to_learn_from():
    x, y = crops("mirrored", 20, 24, seed=1000)
    x_test, _ = crops("mirrored", 20, 24, seed=1000, right=True)
    assert x.shape == x_test.shape == (20, 3, 24, 24)
    assert set(y // 2) == set(range(5))
    assert not any(np.array_equal(a, b) for a in x for b in x_test)


def test_digits_are_those_that_the_body_does_not_know():
    (x, y), (_, y_test) = new_digits("rot90", 40, seed=1000)
    assert x.shape == (40, 1, 28, 28)
    assert set(y) | set(y_test) <= {5, 6, 7, 8}
    assert set(new_digits("flips", 60, seed=1000)[0][1]) == {5, 6, 7, 8, 9}


def test_a_network_of_ones_own_has_a_head():
    network = own_resnet.resnet8((3, 32, 32), 4)
    turns = inv.symmetry("hflip", shape=(3, 32, 32))
    whole = inv.nn.Symmetrized(network, [turns], input_shape=(3, 32, 32))
    assert whole.placement.head == "fc"


def verdict(favourite, probability, seconds):
    asked = ("photographs", "mirrored", 1000, frozen_body.LADDER, "hflip")
    return frozen_body.Record(*asked, favourite, probability, 48, 100.0, seconds, 150.0, 0.9, 0.97)


def test_claims_say_what_records_hold():
    records = [verdict("hflip", 0.99, 115.0), verdict("vflip", 0.95, 130.0)]
    found = frozen_body.claims(records)
    assert "1 are right" in found["right"].sentence
    assert "1 is wrong" in found["right"].sentence
    assert "1.30 times" in found["cost"].sentence
    assert "above the target" in found["cost"].sentence
    assert "48 copies" in found["cost"].sentence
    assert "hflip (0.990) | 0.970" in frozen_body.table(records)
    assert not killed_body.claims([killed_body.Record("digits", 200, 1, 4, True, False)])["equal"].holds
    sizes = [image_sizes.Record(128, 2000, 4000, 40.0, 80.0, 5000)]
    assert not image_sizes.claims(sizes)["memory"].holds
    assert "10 ms" in image_sizes.table(sizes)


def test_the_cost_of_an_own_network_is_counted_in_plain_trainings():
    cheap, dear = (own_resnet.Record(300, "hflip", 0.9, "features", 0.5, 30.0, s, 200.0, 2) for s in (60.0, 61.0))
    found = own_resnet.claims([cheap, dear])["cost"]
    assert "1 of 2" in found.sentence
    assert "2.0 of 2" in own_resnet.table([cheap])
