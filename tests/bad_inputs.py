"""Wrong inputs: how to make them, and what it means that one is refused."""

import io
import json
import os
import shutil
import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from invariantnet._system import progress
from invariantnet.app.cli import main
from invariantnet.estimator.persistence import MODEL, RUN

RNG = np.random.default_rng(0)
N = 24
X = RNG.random((N, 4, 4)).astype(np.float32)
Y = np.array(["cat", "dog"] * (N // 2))
TINY = {"backbone": "mlp", "hidden": 4, "n_networks": 1, "epochs": 1}
OPTIONS_OF_TINY = ["--backbone", "mlp", "--hidden", "4", "--n-networks", "1", "--epochs", "1"]
OPTIONS_OF_TINY += ["--symmetries", "hflip"]


def refused(capfd, arguments, folder):
    """Run in the folder; the line that was said."""
    before = {p for p in folder.rglob("*") if not p.is_dir()}
    # On a busy machine even a refusal takes so long that work is announced first.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "SILENT_SECONDS", 600.0)
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
    said = capfd.readouterr().err.strip()
    assert end.value.code == 2, said
    assert len(said.splitlines()) == 1, said
    assert said.startswith("invariantnet: ")
    assert len(said) < 1000
    assert said.isprintable()
    assert ":" in said.removeprefix("invariantnet: "), f"no remedy: {said}"
    assert "Traceback" not in said
    assert {p for p in folder.rglob("*") if not p.is_dir()} == before, "something was written"
    return said


def npz(**arrays):
    def write(folder):
        np.savez(folder / "data.npz", **arrays)
        return folder / "data.npz"

    return write


def npy(**content):
    """A folder of arrays, or of bytes that are none."""

    def write(folder):
        (folder / "arrays").mkdir()
        for name, value in content.items():
            data = value if isinstance(value, bytes) else array_bytes(value)
            (folder / "arrays" / f"{name}.npy").write_bytes(data)
        return folder / "arrays"

    return write


def raw(name, content):
    def write(folder):
        (folder / name).write_bytes(content)
        return folder / name

    return write


def header(shape, descr="'<f4'", more=""):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}{more}}}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def members(compression=zipfile.ZIP_DEFLATED, **content):
    """An archive whose members hold the given bytes, whatever they are."""

    def write(folder):
        with zipfile.ZipFile(folder / "data.npz", "w", compression) as archive:
            for name, data in content.items():
                archive.writestr(f"{name}.npy", data)
        return folder / "data.npz"

    return write


def array_bytes(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def altered(change, **arrays):
    """A good archive with its bytes changed."""

    def write(folder):
        path = npz(**(arrays or {"x": X, "y": Y}))(folder)
        path.write_bytes(change(path.read_bytes()))
        return path

    return write


def encrypted(content):
    """Every member says that it needs a password."""
    content = bytearray(content)
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(mark)
        while at >= 0:
            content[at + flags] |= 1
            at = content.find(mark, at + 1)
    return bytes(content)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, data=b""):
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def photos(**bad):
    """Two classes of good images, and others."""

    def write(folder):
        for name in ("cat", "dog"):
            (folder / "photos" / name).mkdir(parents=True)
            for i in range(3):
                Image.fromarray(RNG.integers(0, 255, (4, 4), dtype=np.uint8)).save(
                    folder / "photos" / name / f"{i}.png"
                )
        for name, content in bad.items():
            stem, _, suffix = name.rpartition("_")
            (folder / "photos/cat" / f"{stem}.{suffix}").write_bytes(content)
        return folder / "photos"

    return write


def linked(make):
    def write(folder):
        made = photos()(folder)
        make(made)
        return made

    return write


def good(suffix, name="data"):
    def write(folder):
        path = folder / f"{name}{suffix}"
        np.savez(path.with_suffix(".npz"), x=X, y=Y)
        path.with_suffix(".npz").rename(path)
        return path

    return write


def link_to(target, name="data.npz"):
    def write(folder):
        (folder / name).symlink_to(target)
        return folder / name

    return write


def table(text, name="data.csv"):
    return raw(name, text if isinstance(text, bytes) else text.encode())


def folder_named(name):
    def write(folder):
        (folder / name).mkdir()
        return folder / name

    return write


def pipe(folder):
    os.mkfifo(folder / "data.npz")
    return folder / "data.npz"


def truncated_jpeg():
    file = io.BytesIO()
    Image.fromarray(RNG.integers(0, 255, (64, 64), dtype=np.uint8)).save(file, "JPEG")
    return file.getvalue()[:200]


def truncated_png():
    file = io.BytesIO()
    Image.fromarray(RNG.integers(0, 255, (64, 64), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()[:500]


def damaged(fitted, folder, change):
    """A copy of a run whose record and tensors are changed."""
    shutil.copytree(fitted, folder)
    changed = change(json.loads((fitted / RUN).read_text()), (fitted / MODEL).read_bytes())
    for name, content in zip((RUN, MODEL), changed, strict=True):
        (folder / name).unlink()
        if content is not None:
            content = content if isinstance(content, str | bytes) else json.dumps(content)
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def with_text_everywhere(value, text):
    """A part of a record in which every text is replaced; anything but text would not be read at all."""
    if isinstance(value, dict):
        return {k: with_text_everywhere(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [with_text_everywhere(v, text) for v in value]
    return text if isinstance(value, str) else value
