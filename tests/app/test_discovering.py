"""`invariantnet discover` as a user sees it."""

import numpy as np
import pytest

from invariantnet.app.cli import main


@pytest.fixture
def data(tmp_path):
    """Labels that depend on the product of two of three inputs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 3)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + x[:, 0] + x[:, 1] - 2 * x[:, 2] + 0.05 * rng.normal(size=150)
    file = tmp_path / "data.npz"
    np.savez(file, x=x, y=y)
    return file


def test_verdict_table_and_picture(data, tmp_path, capsys):
    picture = tmp_path / "orbits.svg"
    main(["discover", str(data), "--picture", str(picture)])
    said = capsys.readouterr().out
    assert "There is a symmetry" in said
    assert "log e-value" in said
    assert picture.read_text().count("<rect") == 3


def test_a_picture_that_cannot_be_written_is_told_at_once(data, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["discover", str(data), "--picture", str(tmp_path / "no" / "such" / "\0.svg")])
    assert stop.value.code == 2
