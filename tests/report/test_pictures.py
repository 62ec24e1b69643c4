"""Small pictures of inputs, and the names of the buttons that move them."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from invariantnet import InvariantClassifier
from invariantnet.report.pictures import SIDE, Frame
from invariantnet.report.tryit import try_it

pytestmark = pytest.mark.usefixtures("brief_comparison")


def drawn(shape, x, **options):
    kind, _, content = Frame.around(shape, x, **options).picture(x).partition(";base64,")
    return kind.removeprefix("data:image/"), base64.b64decode(content)


@pytest.mark.parametrize("length", [16, 48, 5000])
def test_a_sequence_is_a_curve_as_wide_as_the_picture_however_long(length):
    kind, svg = drawn((length,), np.sin(np.arange(length)))
    (line,) = re.findall('points="(.*?)"', svg.decode())
    points = np.array([point.split(",") for point in line.split()], float)
    assert kind == "svg+xml"
    assert points[0, 0] == 0
    assert points[-1, 0] == SIDE
    assert points[:, 1].min() == pytest.approx(0, abs=0.1), "peaks are kept"
    assert points[:, 1].max() == pytest.approx(SIDE, abs=0.1)
    assert len(svg) < 5000


def test_every_feature_of_a_sequence_has_a_curve_in_its_own_range():
    x = np.stack([np.arange(40), 1000 * np.arange(40)[::-1]], axis=1).ravel()
    _, svg = drawn((40, 2), x)
    rising, falling = re.findall('points="(.*?)"', svg.decode())
    assert rising.split()[0] == f"0,{SIDE}"
    assert falling.split()[0] == "0,0"


def test_columns_of_a_table_and_entries_without_an_order_are_bars():
    for shape, ordered in (((6,), True), ((30,), False)):
        _, svg = drawn(shape, np.arange(float(np.prod(shape))), ordered=ordered)
        bars = re.search('d="(M0.*?)"', svg.decode())[1].split("z")[:-1]
        assert len(bars) == shape[0]


def test_points_of_a_set_are_dots_at_their_places():
    x = np.array([0, 0, 1, 0, 1, 1, 0, 0.5, 0.25, 1])
    _, svg = drawn((5, 2), x, ordered=False)
    dots = re.findall(r"M([\d.]+) ([\d.]+)h0", svg.decode())
    assert [(float(u) / SIDE, 1 - float(v) / SIDE) for u, v in dots] == [tuple(p) for p in x.reshape(5, 2)]


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 4), (1, 4, 4), (2, 4, 4), (3, 100, 200)])
def test_an_image_is_a_small_picture_of_its_pixels(shape):
    kind, png = drawn(shape, np.linspace(-1, 1, int(np.prod(shape))))
    assert kind == "png"
    with Image.open(io.BytesIO(png)) as picture:
        assert picture.size[0] == min(SIDE, shape[-1])
        assert np.asarray(picture).flat[0] <= 3, "black is the least number"


def test_a_button_has_a_number_only_beside_another_of_its_words():
    x = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    tiny = {"backbone": "mlp", "hidden": 4, "n_networks": 1, "epochs": 1, "random_state": 0}
    clf = InvariantClassifier(["cyclic", "permutations"], joins=False, **tiny).fit(x, x[:, 0] > 0)
    found = try_it(clf, None, clf.network_.standardize.mean[None].cpu(), ["one"])
    assert found.moves == ("shifts of entries that wrap around", "any order of entries")
