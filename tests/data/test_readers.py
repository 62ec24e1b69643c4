"""A user's own data: what is read, and what is refused with the file's name and a remedy."""

import numpy as np
import pytest
from PIL import Image

from invariantnet import data as datasets

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
        ({"x": X, "y": np.full(6, np.nan)}, "not classes"),
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
        ("a,label\n1,x\n2\n", "line 3 has 1 fields, the header 2: column 'label' is missing"),
        ("\na,label\n1,x\n\n2\n", "line 5 has 1 fields"),
        ("a,label\n1,x\n2,y,3\n", "line 3 has 3 fields, the header 2: field 3 belongs to no column"),
        ("a,label\n1,x\ntwo,y\n", "line 3, column 'a': 'two' is not a number"),
        (
            "b,label,a\n1,x,2\n3,y,\n",
            "line 3, column 'a': '' is a missing value: fill it in, or leave the line out",
        ),
        ("b,label,a\n1,x,2\n3,y,nan\n", "line 3, column 'a': 'nan' is a missing value"),
        ("b,label,a\n1,x,2\n3,y,1e39\n", "line 3, column 'a': '1e39' is not a finite 32-bit number"),
        ("a,label\n1,x\n2,x\n", "only one class"),
        ("a,label\n", "only a header: write a line per example"),
        (",a,label\n0,1,x\n1,2,y\n", "line 1, column 1 has no name: .*index=False"),
        ("a,b,a,label\n0,1,2,x\n1,2,3,y\n", "line 1: columns 1 and 3 are both called 'a'"),
        ("a,label\n1,x\n2, \n", "line 3, column 'label': the label is missing"),
    ],
)
def test_csv_faults(tmp_path, text, fault):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ValueError, match=fault) as error:
        datasets.load(tmp_path / "data.csv")
    assert "data.csv" in str(error.value)
    assert "\n" not in str(error.value)


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


def one_image(root, image, name="0.png", **options):
    for kind in ("a", "b"):
        (root / kind).mkdir(parents=True)
        image.save(root / kind / name, **options)
    data = datasets.load(root)
    return data.x_train[0].reshape(data.shape)


@pytest.mark.parametrize("order", ["<", ">"])
def test_images_of_sixteen_bits_keep_their_range(tmp_path, order):
    values = (np.arange(64).reshape(8, 8) * 1000).astype(f"{order}u2")
    name = "0.png" if order == "<" else "0.tif"
    found = one_image(tmp_path, Image.fromarray(values), name)
    np.testing.assert_allclose(found, values / 65535, atol=1 / 255)


def test_what_is_transparent_is_white(tmp_path):
    icon = np.zeros((4, 4, 4), np.uint8)
    icon[0, :, 3] = 255  # a black line, drawn on nothing
    found = one_image(tmp_path, Image.fromarray(icon))
    np.testing.assert_array_equal(found, np.broadcast_to(np.array([0, 1, 1, 1.0])[:, None], (3, 4, 4)))


def test_photos_are_upright_as_their_owner_sees_them(tmp_path):
    image = Image.fromarray(np.repeat(np.arange(0, 240, 40, dtype=np.uint8)[:, None], 4, axis=1))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    turned = one_image(tmp_path, image, "0.png", exif=exif)
    np.testing.assert_allclose(turned, np.rot90(np.asarray(image) / 255, -1), atol=1e-6)


def test_images_without_a_known_range_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"0\.tif: not a readable image \(numbers of 32 bits"):
        one_image(tmp_path, Image.fromarray(np.ones((4, 4), np.float32)), "0.tif")


def test_parts_of_the_data_are_not_its_classes(tmp_path):
    for part in ("train", "test"):
        images(tmp_path / "photos" / part)
    with pytest.raises(ValueError, match="test and train are parts of the data, not classes: name one"):
        datasets.load(tmp_path / "photos")
    assert datasets.load(tmp_path / "photos/train").class_names == ("circle", "square")


def test_endings_may_be_capitals_and_small_planes_are_no_channels(tmp_path):
    (tmp_path / "T.CSV").write_text("a,label\n1,x\n2,y\n")
    assert datasets.load(tmp_path / "T.CSV").columns == ("a",)
    boards = npz(tmp_path, x=np.zeros((2, 2, 3, 3)), y=np.arange(2))
    assert datasets.load(boards).shape == (2, 3, 3)
    x = datasets.load_inputs(images(tmp_path / "new") / "circle", shape=(1, 5, 6)).x
    assert x.shape == (2, 30)


def test_inputs_of_a_table_go_by_the_names_of_its_columns(tmp_path):
    (tmp_path / "new.csv").write_text("id,b,y,a\n9,1,2,3\n9,4,5,6\n")
    x = datasets.load_inputs(tmp_path / "new.csv", shape=(3,), columns=("a", "b", "y")).x
    np.testing.assert_array_equal(x, [[3, 1, 2], [6, 4, 5]])
    with pytest.raises(ValueError, match="no column 'c', which the model was fitted with"):
        datasets.load_inputs(tmp_path / "new.csv", shape=(2,), columns=("a", "c"))


def test_labels_in_bytes_are_texts_and_images_take_no_shape(tmp_path):
    assert datasets.load(npz(tmp_path, x=X, y=Y.astype("S"))).class_names == ("cat", "dog")
    with pytest.raises(ValueError, match=r"such as y\.astype\(str\)"):
        datasets.load(npz(tmp_path, x=X, y=Y.astype(object)))
    with pytest.raises(ValueError, match="images have a shape of their own"):
        datasets.load(images(tmp_path / "shapes"), shape=(5, 6))


def test_labels_of_bytes_are_texts_in_both_parts(tmp_path):
    data = datasets.load(npz(tmp_path, x=X, y=Y.astype("S"), x_test=X[:2], y_test=Y[:2].astype("S")))
    assert data.class_names == ("cat", "dog")
    np.testing.assert_array_equal(data.y_test, [0, 1])


def test_grey_images_stay_grey_with_a_palette_and_with_16_bits(tmp_path):
    grey = (np.arange(36).reshape(6, 6) * 7).astype(np.uint8)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(grey).save(tmp_path / name / "0.gif")
        deep = (grey.astype(np.uint16) * 257).astype(">u2").tobytes()
        (tmp_path / name / "1.pgm").write_bytes(b"P5\n6 6\n65535\n" + deep)
    data = datasets.load(tmp_path)
    assert data.shape == (6, 6)
    np.testing.assert_allclose(data.x_train * 255, np.tile(grey.flatten(), (4, 1)), atol=1e-4)
    red = Image.new("P", (6, 6))
    red.putpalette([255, 0, 0])
    red.save(tmp_path / "a" / "2.gif")
    assert datasets.load(tmp_path).shape == (3, 6, 6)


@pytest.mark.parametrize(
    ("source", "options", "named"),
    [
        ("digits", {"shape": (4, 16)}, "shape"),
        ("npz", {"label": "species"}, "label"),
        ("npz", {"size": (2, 2)}, "size"),
        ("csv", {"color": "rgb"}, "color"),
        ("folder", {"label": "kind"}, "label"),
    ],
)
def test_an_option_that_does_not_apply_is_refused(source, options, named, tmp_path):
    (tmp_path / "t.csv").write_text("a,label\n1,x\n3,y\n")
    for name in ("a", "b"):
        (tmp_path / "images" / name).mkdir(parents=True)
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "images" / name / "0.png")
    sources = {"npz": npz(tmp_path, x=X, y=Y), "csv": tmp_path / "t.csv", "folder": tmp_path / "images"}
    with pytest.raises(ValueError, match=f"^{named} does not apply to .*: leave it out"):
        datasets.load(sources.get(source, source), **options)


def test_a_column_of_measurements_is_no_column_of_classes(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,0.5\n3,1.25\n5,2\n")
    fault = r"line 2, column 'y': '0\.5' is not a class: .* --task numbers"
    with pytest.raises(ValueError, match=fault):
        datasets.load(tmp_path / "t.csv", task="classes")
    data = datasets.load(tmp_path / "t.csv")
    assert data.has_numbers
    np.testing.assert_array_equal(data.targets(data.y_train), [0.5, 1.25, 2])
    (tmp_path / "t.csv").write_text("a,y\n1,0\n3,1.0\n5,2\n")
    assert datasets.load(tmp_path / "t.csv").class_names == ("0", "1.0", "2")
    np.testing.assert_array_equal(datasets.load(tmp_path / "t.csv", task="numbers").y_train, [0, 1, 2])


def test_a_column_of_words_is_told_from_a_slip(tmp_path):
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n2,y\n")
    with pytest.raises(
        ValueError,
        match=r"line 2, column 'kind': 'x' is not a number: leave the column out .*without.*get_dummies.*--label",
    ):
        datasets.load_inputs(tmp_path / "t.csv", shape=(2,))
    with pytest.raises(ValueError, match="'x' is not a number: use --task classes"):
        datasets.load(tmp_path / "t.csv", label="kind", task="numbers")
    (tmp_path / "t.csv").write_text("a,b\n1,3\n2,y\n")
    with pytest.raises(
        ValueError, match="line 3, column 'b': 'y' is not a number: encode it, or leave the line out"
    ):
        datasets.load_inputs(tmp_path / "t.csv", shape=(2,))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a;b;label\n1,5;2;x\n", "semicolons between the columns: save it with commas, with points in decimals"),
        ("a\tb\tlabel\n1\t2\tx\n", "tabs between the columns: save it with commas"),
        ("1.5,2,x\n3,4,y\n", "line 1 holds numbers, so the header is missing: write the names of the columns"),
        ("a,label\n1,x\nNA,y\n", "line 3, column 'a': 'NA' is a missing value: fill it in, or leave"),
        ("a,label\n1,x\nnan,y\n", "line 3, column 'a': 'nan' is a missing value: fill it in, or leave"),
        ("a,label\n1,x\ninf,y\n", "line 3, column 'a': 'inf' is not a finite 32-bit number"),
    ],
)
def test_a_table_of_another_program_is_told_what_to_change(tmp_path, text, fault):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=fault):
        datasets.load(tmp_path / "t.csv")


def test_one_image_for_a_model_of_a_table_is_called_an_image(tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "one.png")
    with pytest.raises(ValueError, match=r"one\.png: an image, but the model needs inputs of shape \(60,\)"):
        datasets.load_inputs(tmp_path / "one.png", shape=(60,))


def test_inputs_to_predict_come_with_their_labels(tmp_path):
    folder = images(tmp_path / "new")
    new = datasets.load_inputs(folder, shape=(5, 6), color="grey")
    assert [str(name).split("/")[0] for name in new.names] == new.labels.tolist()
    assert datasets.load_inputs(folder / "circle", shape=(5, 6)).labels is None
    one = next((folder / "circle").iterdir())
    alone = datasets.load_inputs(one, shape=(5, 6))
    assert (list(alone.names), alone.x.shape, alone.labels) == ([one.name], (1, 30), None)
    assert datasets.load_inputs(npz(tmp_path, x=X, y=Y), shape=X.shape[1:]).labels.tolist() == Y.tolist()
    (tmp_path / "t.csv").write_text("a,label\n1,x\n2,y\n")
    assert datasets.load_inputs(tmp_path / "t.csv", shape=(1,)).labels.tolist() == ["x", "y"]
    (tmp_path / "t.csv").write_text("a,label\n1,\n2,y\n")
    assert datasets.load_inputs(tmp_path / "t.csv", shape=(1,)).labels is None, "some are missing"
