"""A catalogue of wrong data files: each ends with status 2 and one line that names it, and nothing is written."""

import os
import struct

import numpy as np
import pytest
from bad_inputs import (
    OPTIONS_OF_TINY,
    RNG,
    N,
    X,
    Y,
    altered,
    array_bytes,
    encrypted,
    folder_named,
    good,
    header,
    link_to,
    linked,
    members,
    npy,
    npz,
    photos,
    pipe,
    png,
    raw,
    refused,
    table,
    truncated_jpeg,
    truncated_png,
)  # fmt: skip

ROWS = "".join(f"{a:.3f},{b:.3f},{c}\n" for (a, b), c in zip(X.reshape(N, -1)[:, :2], Y, strict=True))

DATA = {
    "npz, empty file": raw("data.npz", b""),
    "npz, text": raw("data.npz", b"these are not the bytes you are looking for"),
    "npz, truncated": altered(lambda b: b[: len(b) // 2]),
    "npz, without its directory": altered(lambda b: b[:-30]),
    "npz, flipped bytes": altered(lambda b: b[:200] + bytes(255 - v for v in b[200:260]) + b[260:]),
    "npz, empty archive": members(),
    "npz, a bare array by that name": raw("data.npz", array_bytes(X)),
    "npz, no arrays inside": members(x=b"", y=b""),
    "npz, header cut off": members(x=b"\x93NUMPY\x01\x00\xff", y=array_bytes(Y)),
    "npz, header of another version": members(x=b"\x93NUMPY\x09\x00" + b"\x00" * 64, y=array_bytes(Y)),
    "npz, header that is code": members(x=header("().__class__.__base__.__subclasses__()"), y=array_bytes(Y)),
    "npz, header nested without end": members(x=header("(" * 9000 + ")" * 9000), y=array_bytes(Y)),
    "npz, header too long": members(x=header("(4, 4)", more=", 'z': '" + "z" * 60000 + "'"), y=array_bytes(Y)),
    "npz, unknown type": members(x=header("(24, 16)", "'<q9'"), y=array_bytes(Y)),
    "npz, object array": npz(x=X.astype(object), y=Y),
    "npz, object labels": npz(x=X, y=Y.astype(object)),
    "npz, header of a petabyte": members(x=header(f"({10**12}, 256)"), y=array_bytes(Y)),
    "npz, header beyond 64 bits": members(x=header(f"({10**30}, 16)"), y=array_bytes(Y)),
    "npz, overflowing product": members(x=header(f"({2**33}, {2**33})"), y=array_bytes(Y)),
    "npz, negative shape": members(x=header("(-24, 16)") + bytes(4 * 24 * 16), y=array_bytes(Y)),
    "npz, less data than the header says": members(x=header("(24, 16)") + bytes(100), y=array_bytes(Y)),
    "npz, strings of a gigabyte each": members(x=array_bytes(X), y=header("(24,)", f"'<U{2**28}'")),
    "npz, zip bomb": lambda folder: bomb(folder, 1 << 20),
    "npz, with a password": altered(encrypted),
    "npz, unknown compression": altered(
        lambda b: b.replace(b"PK\x03\x04\x2d\x00\x00\x00\x00\x00", b"PK\x03\x04\x2d\x00\x00\x00\x63\x00").replace(
            b"\x2d\x03\x2d\x00\x00\x00\x00\x00", b"\x2d\x03\x2d\x00\x00\x00\x63\x00"
        )
    ),
    "npz, only x": npz(x=X),
    "npz, only y": npz(y=Y),
    "npz, other names": npz(images=X, labels=Y),
    "npz, one label short": npz(x=X, y=Y[:-1]),
    "npz, labels in two columns": npz(x=X, y=np.stack([Y, Y], 1)),
    "npz, one class": npz(x=X, y=np.zeros(N, int)),
    "npz, all numbers equal": npz(x=X, y=np.full(N, 0.5)),
    "npz, labels that are NaN": npz(x=X, y=np.full(N, np.nan)),
    "npz, labels that are infinite": npz(x=X, y=np.where(np.arange(N) % 2, np.inf, 0.0)),
    "npz, complex labels": npz(x=X, y=np.arange(N) * 1j),
    "npz, dates as labels": npz(x=X, y=np.arange(N).astype("M8[D]")),
    "npz, NaN": npz(x=np.where(X > 0.9, np.nan, X), y=Y),
    "npz, infinity": npz(x=np.where(X > 0.9, np.inf, X), y=Y),
    "npz, too large for single precision": npz(x=X.astype(np.float64) * 1e300, y=Y),
    "npz, complex numbers": npz(x=X * 1j, y=Y),
    "npz, text as numbers": npz(x=X.astype(str), y=Y),
    "npz, dates as numbers": npz(x=np.arange(N * 16).reshape(N, 16).astype("M8[s]"), y=Y),
    "npz, records": npz(x=np.zeros((N, 4), [("a", "f4"), ("b", "f4")]), y=Y),
    "npz, no examples": npz(x=X[:0], y=Y[:0]),
    "npz, no numbers": npz(x=X[:, :0], y=Y),
    "npz, a scalar": npz(x=np.float32(3), y=Y),
    "npz, one number per example": npz(x=X[:, 0, 0], y=Y),
    "npz, five axes": npz(x=X.reshape(N, 2, 2, 2, 2), y=Y),
    "npz, channels last": npz(x=RNG.random((N, 8, 8, 3)), y=Y),
    "npz, all inputs equal": npz(x=np.ones((N, 4, 4)), y=Y),
    "npz, one example": npz(x=X[:1], y=Y[:1]),
    "npz, test inputs without labels": npz(x=X, y=Y, x_test=X),
    "npz, test inputs of another shape": npz(x=X, y=Y, x_test=X[:, :2], y_test=Y),
    "npz, unknown test labels": npz(x=X, y=Y, x_test=X, y_test=np.full(N, "cow")),
    "npz, test labels of another type": npz(x=X, y=Y, x_test=X, y_test=np.zeros(N)),
    "npz, test labels in columns": npz(x=X, y=Y, x_test=X, y_test=np.stack([Y, Y], 1)),
    "npz, test labels that are objects": npz(x=X, y=Y, x_test=X, y_test=Y.astype(object)),
    "npz, NaN in the test inputs": npz(x=X, y=Y, x_test=X * np.nan, y_test=Y),
    "npz, a folder by that name": folder_named("data.npz"),
    "npz, a pipe": pipe,
    "no such file": lambda folder: folder / "nowhere.npz",
    "name too long": lambda folder: folder / ("a" * 5000 + ".npz"),
    "name with a NUL": lambda folder: f"{folder}/a\0b.npz",
    "no name": lambda folder: "",
    "dangling link": link_to("nowhere.npz"),
    "link to itself": link_to("data.npz"),
    "other kind of file": good(".xlsx"),
    "no suffix": good(""),
    "variant of MNIST that is none": lambda folder: "digits:sideways",
    "variant by a group that is too large": lambda folder: "digits:permutations",
    "variant that changes signs": lambda folder: "digits:sign",
    "csv, empty": table(""),
    "csv, only a header": table("a,b,label\n"),
    "csv, no label column": table("a,b\n1,2\n"),
    "csv, only labels": table("label\nx\ny\n"),
    "csv, ragged": table(f"a,b,label\n{ROWS}1,2\n"),
    "csv, words": table(f"a,b,label\n{ROWS}one,2,cat\n"),
    "csv, empty cell": table(f"a,b,label\n{ROWS},2,cat\n"),
    "csv, NaN": table(f"a,b,label\n{ROWS}nan,2,cat\n"),
    "csv, infinity": table(f"a,b,label\n{ROWS}inf,2,cat\n"),
    "csv, 1e999": table(f"a,b,label\n{ROWS}1e999,2,cat\n"),
    "csv, endless digits": table(f"a,b,label\n{ROWS}{'9' * 5000},2,cat\n"),
    "csv, NUL bytes": table(b"a,b,label\n1,\0,cat\n2,3,dog\n"),
    "csv, not UTF-8": table(f"a,b,label\n{ROWS}1,2,\xe9\n".encode("latin-1")),
    "csv, UTF-16": table(f"a,b,label\n{ROWS}".encode("utf-16")),
    "csv, random bytes": table(RNG.bytes(2000)),
    "csv, one endless field": table('a,b,label\n1,2,"' + "x" * 200_000),
    "csv, semicolons": table(f"a,b,label\n{ROWS}".replace(",", ";")),
    "csv, tabs": table(f"a,b,label\n{ROWS}".replace(",", "\t")),
    "csv, no header": table(ROWS),
    "csv, NA": table(f"a,b,label\n{ROWS}NA,2,cat\n"),
    "csv, one class": table("a,b,label\n1,2,x\n3,4,x\n"),
    "csv, a folder by that name": folder_named("data.csv"),
    "npy, no labels": npy(x=X),
    "npy, empty files": npy(x=b"", y=b""),
    "npy, text": npy(x=b"not an array", y=Y),
    "npy, truncated": npy(x=array_bytes(X)[:-100], y=Y),
    "npy, header of a petabyte": npy(x=header(f"({10**12}, 256)"), y=Y),
    "npy, header beyond 64 bits": npy(x=header(f"({10**30}, 16)"), y=Y),
    "npy, header that is code": npy(x=header("print()"), y=Y),
    "npy, negative shape": npy(x=header("(-24, 16)") + bytes(4 * 24 * 16), y=Y),
    "npy, column by column": npy(x=np.asfortranarray(X), y=Y),
    "npy, text as numbers": npy(x=X.astype(str), y=Y),
    "npy, NaN": npy(x=X * np.nan, y=Y),
    "npy, too large for single precision": npy(x=X.astype(np.float64) * 1e300, y=Y),
    "npy, one label short": npy(x=X, y=Y[:-1]),
    "npy, test inputs of another shape": npy(x=X, y=Y, x_test=X[:, :2], y_test=Y),
    "npy, pickles": npy(x=b"\x80\x04cos\nsystem\n(S'true'\ntR.", y=Y),
    "folder, empty": folder_named("photos"),
    "folder, images without classes": raw("photo.png", png(4, 4)),
    "folder, one class": linked(lambda p: [f.unlink() for f in (p / "dog").iterdir()] and (p / "dog").rmdir()),
    "folder, an empty class": linked(lambda p: (p / "cow").mkdir()),
    "folder, an empty image": photos(bad_png=b""),
    "folder, text as image": photos(bad_png=b"not an image"),
    "folder, truncated png": photos(bad_png=truncated_png()),
    "folder, truncated jpeg": photos(bad_jpg=truncated_jpeg()),
    "folder, png with a lying header": photos(bad_png=png(4, 4)),
    "folder, png of a terapixel": photos(bad_png=png(10**6, 10**6)),
    "folder, png just within the pixel limit": photos(bad_png=png(13000, 13000)),
    "folder, png beyond 32 bits": photos(bad_png=png(2**31, 1)),
    "folder, png of no pixels": photos(bad_png=png(0, 0)),
    "folder, png with a broken chunk": photos(bad_png=png(4, 4)[:40] + b"\xff" * 40),
    "folder, gif with a lying header": photos(bad_gif=b"GIF89a\xff\xff\xff\xff\x00\x00\x00"),
    "folder, bmp with a lying header": photos(
        bad_bmp=b"BM" + struct.pack("<IHHIIiiHHIIiiII", 10**9, 0, 0, 54, 40, 10**6, 10**6, 1, 24, 0, 0, 0, 0, 0, 0)
    ),
    "folder, tiff in a loop": photos(bad_tif=b"II*\x00\x08\x00\x00\x00\x00\x00\x08\x00\x00\x00"),
    "folder, pgm with endless numbers": photos(bad_pgm=b"P5 " + b"9" * 5000 + b" 4 255\n"),
    "folder, pgm of a terapixel": photos(bad_pgm=b"P5 1000000 1000000 255\n"),
    "folder, webp cut off": photos(bad_webp=b"RIFF\xff\xff\xff\xffWEBPVP8 "),
    "folder, other sizes": photos(bad_png=png(5, 4, b"\0" * 24)),
    "folder, a dangling link": linked(lambda p: (p / "cat/link.png").symlink_to("nowhere.png")),
    "folder, a link to itself": linked(lambda p: (p / "cat/link.png").symlink_to("link.png")),
    "folder, a folder called like an image": linked(lambda p: (p / "cat/not.png").mkdir()),
    "folder, a pipe called like an image": linked(lambda p: os.mkfifo(p / "cat/pipe.png")),
}


def bomb(folder, blocks):
    """A few megabytes that say they are terabytes, and would unpack to more than any memory holds."""
    path = members(x=header(f"({blocks << 20}, 1)") + bytes(1 << 20), y=array_bytes(Y))(folder)
    content, size = path.read_bytes(), len(header(f"({blocks << 20}, 1)")) + (1 << 20)
    claimed = struct.pack("<I", min(2**32 - 2, size * 4000))
    path.write_bytes(content.replace(struct.pack("<I", size), claimed))
    return path


SIZES = {
    "size of zeros": ["--size", "0,0"],
    "negative size": ["--size=-4,-4"],
    "size of a terapixel": ["--size", "1000000,1000000"],
    "size beyond 64 bits": ["--size", f"{10**30},4"],
    "images for a table's group": ["--symmetries", "nonsense"],
}


PREDICTED = {
    "predict, other shape": npz(x=X[:, :3]),
    "predict, no x": npz(y=Y),
    "predict, NaN": npz(x=X * np.nan),
    "predict, objects": npz(x=X.astype(object)),
    "predict, none": npz(x=X[:0]),
    "predict, other columns": table("a,b\n1,2\n"),
    "predict, only a header": table("a,b,c\n"),
    "predict, empty": table(""),
    "predict, other data": lambda folder: "digits",
    "predict, arrays of another shape": npy(x=X[:, :3]),
    "predict, arrays that are damaged": npy(x=array_bytes(X)[:-100]),
    "predict, no images": folder_named("photos"),
    "predict, a bad image": photos(bad_png=b"no"),
    "predict, a lying image": photos(bad_png=png(13000, 13000)),
    "predict, dangling link": link_to("nowhere"),
}


@pytest.mark.parametrize("case", DATA)
def test_data(case, here, capfd):
    refused(capfd, ["fit", DATA[case](here), *OPTIONS_OF_TINY, "--out", here / "out"], here)


@pytest.mark.parametrize("case", SIZES)
def test_sizes_of_images(case, here, capfd):
    refused(capfd, ["fit", photos()(here), *OPTIONS_OF_TINY, "--out", here / "out", *SIZES[case]], here)


@pytest.mark.parametrize("case", PREDICTED)
def test_inputs_to_predict(case, fitted, here, capfd):
    refused(capfd, ["predict", fitted, PREDICTED[case](here), "--out", here / "p.csv"], here)


def test_a_folder_cannot_become_a_file(fitted, here, capfd):
    np.savez(here / "new.npz", x=X)
    refused(capfd, ["predict", fitted, here / "new.npz", "--out", here], here)
