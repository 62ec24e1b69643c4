"""A user's own data: what is read, and what is refused with the file's name and a remedy."""

import numpy as np
import pytest
from PIL import Image

from invariantnet import datasets

RNG = np.random.default_rng(0)
X = RNG.random((6, 4, 4))
Y = np.array(["cat", "dog", "cat", "dog", "cat", "cat"])


def npz(path, **arrays):
    np.savez(path / "data.npz", **arrays)
    return path / "data.npz"


def test_npz(tmp_path):
    data = datasets.load(npz(tmp_path, x=X, y=Y, x_test=X[:2], y_test=Y[:2]))
    assert data.shape == (4, 4)
    assert data.class_names == ("cat", "dog")
    np.testing.assert_array_equal(data.y_train, [0, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(data.y_test, [0, 1])
    np.testing.assert_allclose(data.x_train, X.reshape(6, 16), rtol=1e-6)


def test_npz_of_bytes_is_scaled_and_flat_inputs_take_a_shape(tmp_path):
    path = npz(tmp_path, x=np.full((3, 12), 255, np.uint8), y=[3, 1, 3])
    data = datasets.load(path, shape=(3, 2, 2))
    assert data.shape == (3, 2, 2)
    assert data.x_train.max() == 1
    assert data.class_names == ("1", "3")
    assert len(data.x_test) == 0


@pytest.mark.parametrize(
    ("arrays", "fault"),
    [
        ({"x": X}, "needs 'x' and 'y'"),
        ({"x": X, "y": Y[:-1]}, "one label per input"),
        ({"x": X, "y": np.zeros(6, int)}, "only one class"),
        ({"x": X, "y": RNG.random(6)}, "not classes"),
        ({"x": np.where(X > 0.99, X, np.nan), "y": Y}, "not finite"),
        ({"x": X + np.inf, "y": Y}, "not finite"),
        ({"x": X.astype(str), "y": Y}, "not real numbers"),
        ({"x": X[:0], "y": Y[:0]}, "at least one number"),
        ({"x": X[:, 0, 0], "y": Y}, "at least one number"),
        ({"x": RNG.random((6, 2, 2, 2, 2)), "y": Y}, "does not hold inputs of shape"),
        ({"x": RNG.random((6, 8, 8, 3)), "y": Y}, "channels last"),
        ({"x": X, "y": Y, "x_test": X}, "come together"),
        ({"x": X, "y": Y, "x_test": X, "y_test": np.array(["cow"] * 6)}, "'cow'.*not in 'y'"),
        ({"x": X, "y": Y, "x_test": X[:3], "y_test": Y}, "3 inputs in 'x_test'"),
        ({"x": X.astype(object), "y": Y}, "not a readable .npz of plain arrays"),
    ],
)
def test_npz_faults(tmp_path, arrays, fault):
    with pytest.raises(ValueError, match=fault) as error:
        datasets.load(npz(tmp_path, **arrays))
    assert "data.npz" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"not an archive", b"\x93NUMPY\x01\x00"])
def test_npz_that_is_no_archive(tmp_path, content):
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"data\.npz: not a readable \.npz"):
        datasets.load(tmp_path / "data.npz")


def test_csv(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,label,b\n1,yes,2.5\n-3,no,4e1\n\n5,yes,6\n")
    data = datasets.load(path)
    np.testing.assert_array_equal(data.x_train, np.array([[1, 2.5], [-3, 40], [5, 6]], np.float32))
    np.testing.assert_array_equal(data.y_train, [1, 0, 1])
    assert data.class_names == ("no", "yes")
    assert datasets.load(path, shape=(2, 1)).shape == (2, 1)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("a,b\n1,2\n", "no label column 'label' or 'class'"),
        ("a,label\n1,x\n2\n", "line 3 has 1 fields"),
        ("\na,label\n1,x\n\n2\n", "line 5 has 1 fields"),
        ("a,label\n1,x\ntwo,y\n", "line 3: could not convert"),
        ("a,label\n1,x\nnan,y\n", "not finite"),
        ("a,label\n1,x\n2,x\n", "only one class"),
        ("a,label\n", "at least one number"),
    ],
)
def test_csv_faults(tmp_path, text, fault):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ValueError, match=fault) as error:
        datasets.load(tmp_path / "data.csv")
    assert "data.csv" in str(error.value)


def test_csv_with_a_named_label_column(tmp_path):
    (tmp_path / "data.csv").write_text("kind,a\nx,1\ny,2\n")
    assert datasets.load(tmp_path / "data.csv", label="kind").class_names == ("x", "y")
    with pytest.raises(ValueError, match="no label column 'species'"):
        datasets.load(tmp_path / "data.csv", label="species")


def images(root, mode="L", sizes=((6, 5), (6, 5))):
    for name, (width, height) in zip(("circle", "square"), sizes, strict=True):
        (root / name).mkdir(parents=True)
        for i in range(2):
            Image.new(mode, (width, height), color=i * 255 if mode == "L" else (255, 0, 0)).save(
                root / name / f"{i}.png"
            )
    return root


def test_folder_of_grey_images(tmp_path):
    data = datasets.load(images(tmp_path / "shapes"))
    assert data.shape == (5, 6)
    assert data.class_names == ("circle", "square")
    np.testing.assert_array_equal(data.y_train, [0, 0, 1, 1])
    np.testing.assert_array_equal(data.x_train.max(1), [0, 1, 0, 1])


def test_folder_of_coloured_images(tmp_path):
    data = datasets.load(images(tmp_path / "shapes", mode="RGB"))
    assert data.shape == (3, 5, 6)
    np.testing.assert_array_equal(data.x_train[0].reshape(3, -1).mean(1), [1, 0, 0])
    assert datasets.load(tmp_path / "shapes", color="grey").shape == (5, 6)


def test_folder_of_mixed_sizes_is_refused_or_resized(tmp_path):
    folder = images(tmp_path / "shapes", sizes=((6, 5), (8, 8)))
    with pytest.raises(ValueError, match=r"square.0\.png: 8×8 pixels, but 0\.png has 5×6: resize"):
        datasets.load(folder)
    assert datasets.load(folder, size=(4, 4)).shape == (4, 4)


def test_folder_faults(tmp_path):
    with pytest.raises(ValueError, match="no images in its subfolders"):
        datasets.load(tmp_path)
    folder = images(tmp_path / "shapes")
    (folder / "triangle").mkdir()
    with pytest.raises(ValueError, match="triangle: no images of a known kind"):
        datasets.load(folder)
    (folder / "triangle" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n torn")
    with pytest.raises(ValueError, match=r"bad\.png: not a readable image"):
        datasets.load(folder)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "data.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"data\.xlsx is neither \.npz nor \.csv"):
        datasets.load(tmp_path / "data.xlsx")
