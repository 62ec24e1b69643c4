"""Inputs that are odd but fine: they work."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from bad_inputs import OPTIONS_OF_TINY, TINY, X, Y, photos

from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet._system.words import count_words
from invariantnet.app.cli import main
from invariantnet.app.record import read_run

pytestmark = pytest.mark.usefixtures("brief_comparison")
RNG = np.random.default_rng(0)
NAMES = ("grün <b>", "кот", "line\nbreak", 'comma, "quote"', "\ud800 lone", "🐈")


def fit_and_predict(folder, data, *options):
    main(["fit", str(data), *OPTIONS_OF_TINY, "--out", str(folder / "out"), *options])
    main(["predict", str(folder / "out"), str(data), "--out", str(folder / "p.csv")])
    with (folder / "p.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_class_names_and_file_names_of_any_kind(here):
    labels = np.array([NAMES[i % len(NAMES)] for i in range(len(X))])
    x = X.copy()
    x[:, 0, 0] = 7.0
    name = here / os.fsdecode(b"odd \xff \xe2\x82\xac.npz")
    np.savez(name, x=x, y=labels)
    rows = fit_and_predict(here, name, "--test-share", "0")
    assert {row["label"] for row in rows} <= {n.encode(errors="backslashreplace").decode() for n in NAMES}
    assert sorted(InvariantClassifier.load(here / "out").classes_) == sorted(NAMES)
    assert read_run(here / "out").data.test_accuracy is None


def test_links_to_folders_and_images(here):
    folder = photos()(here)
    (folder / "cat").rename(here / "elsewhere")
    (folder / "cat").symlink_to(here / "elsewhere")
    (here / "elsewhere/loop").symlink_to(here / "elsewhere")
    (here / "elsewhere/more.png").symlink_to(here / "elsewhere/0.png")
    (here / "link").symlink_to(folder)
    rows = fit_and_predict(here, here / "link")
    assert {row["input"] for row in rows} >= {"dog/0.png"}


def test_one_example_of_each_class():
    clf = InvariantClassifier(["hflip"], (4, 4), **TINY, random_state=0).fit(X[:2], Y[:2])
    assert clf.predict_proba(X[:2]).shape == (2, 2)


def test_four_thousand_classes(tmp_path):
    x = RNG.normal(size=(8000, 4)).astype(np.float32)
    clf = InvariantClassifier(["sign"], **TINY, random_state=0).fit(x, np.arange(8000) // 2)
    p = clf.predict_proba(x[:50])
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-4)
    clf.save(tmp_path)
    np.testing.assert_array_equal(InvariantClassifier.load(tmp_path).predict_proba(x[:50]), p)


def test_a_group_whose_order_fills_a_page(tmp_path):
    x = RNG.normal(size=(40, 2000)).astype(np.float32)
    clf = InvariantClassifier(["permutations"], placement="weights", **TINY, random_state=0).fit(x, x.sum(1) > 0)
    clf.save(tmp_path)
    again = InvariantClassifier.load(tmp_path)
    assert again.posterior_.orders == clf.posterior_.orders
    assert count_words(again.posterior_.orders[-1]) == "3.3e+5735"
    assert "3.3e+5735" in str(again.posterior_)


@pytest.mark.parametrize(
    "number", [10**9 - 1, 10**9, 10**12 - 1, 10**15, 2**53 + 1, 9.99e20, 10**300, 7 * 10**299]
)
def test_numbers_in_words_agree_with_their_digits(number):
    digits = str(int(number))
    expected = f"{int(number):,}" if len(digits) < 10 else f"{digits[0]}.{digits[1]}e+{len(digits) - 1}"
    assert count_words(int(number)) == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.uint8, torch.bool])
def test_tensors_of_other_types(fitted, dtype):
    clf = InvariantClassifier.load(fitted)
    x = torch.from_numpy(X * 3).to(dtype)
    np.testing.assert_array_equal(clf.predict_proba(x), clf.predict_proba(x.float().numpy()))


def test_learning_from_short_types():
    x = torch.from_numpy(X).bfloat16().reshape(len(X), -1)
    reg = InvariantRegressor(["sign"], **TINY, random_state=0).fit(x, torch.arange(len(x)).bfloat16())
    same = InvariantRegressor(["sign"], **TINY, random_state=0).fit(x.float(), np.arange(len(x)))
    np.testing.assert_array_equal(reg.predict(x), same.predict(x))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_everything(encoding):
    result = subprocess.run(
        [sys.executable, "-m", "invariantnet", "symmetries"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert b"rot90" in result.stdout


def test_channels_in_the_last_axis_are_refused_unless_the_shape_is_named():
    x, y = RNG.random((20, 6, 6, 3)).astype(np.float32), np.arange(20) % 2
    make = lambda **more: InvariantClassifier(["hflip"], hidden=4, n_networks=1, epochs=1, random_state=0, **more)  # noqa: E731
    with pytest.raises(ValueError, match=r"\(6, 6, 3\) seem to have the channels last: np.moveaxis"):
        make().fit(x, y)
    assert make(input_shape=(6, 6, 3)).fit(x, y).input_shape_ == (6, 6, 3)
    assert make().fit(np.moveaxis(x, -1, 1), y).input_shape_ == (3, 6, 6)
