"""Small pictures of inputs, and the names of the buttons that move them."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from invariantnet import InvariantClassifier
from invariantnet.report.pictures import SIDE, thumbnail
from invariantnet.report.tryit import try_it

pytestmark = pytest.mark.usefixtures("brief_comparison")


@pytest.mark.parametrize("length", [1, 5, 48, 64, 500])
def test_a_picture_of_a_sequence_is_as_wide_as_there_is_room(length):
    uri = thumbnail(np.linspace(0, 1, length), (length,), 0.0, 1.0)
    picture = Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
    assert SIDE / 2 < picture.width <= SIDE


def test_a_button_has_a_number_only_beside_another_of_its_words():
    x = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    tiny = {"backbone": "mlp", "hidden": 4, "n_networks": 1, "epochs": 1, "random_state": 0}
    clf = InvariantClassifier(["cyclic", "permutations"], joins=False, **tiny).fit(x, x[:, 0] > 0)
    found = try_it(clf, None, clf.network_.standardize.mean[None].cpu(), ["one"])
    assert found.moves == ("shifts of entries that wrap around", "any order of entries")
