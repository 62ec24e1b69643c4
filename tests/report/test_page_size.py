"""A page and its record stay small, whatever the inputs."""

import numpy as np
import pytest

from invariantnet.app.record import Settings
from invariantnet.app.runs import fit

pytestmark = pytest.mark.usefixtures("brief_comparison")
MEGABYTE = 10**6
CASES = {
    "colour photos": ((3, 64, 64), "hflip", {"hidden": 4}, "too large"),
    "100,000 inputs": ((100_000,), "sign", {"hidden": 2}, "too large"),
    "a wide network with many copies": ((3, 24, 24), "d4", {"hidden": 300}, "too much to carry"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_page_has_at_most_five_megabytes(tmp_path, case):
    shape, symmetry, options, reason = CASES[case]
    rng = np.random.default_rng(0)
    x = rng.random((32, *shape), np.float32)
    y = np.arange(32) % 4
    np.savez(tmp_path / "data.npz", x=x, y=y, x_test=x, y_test=y)
    settings = Settings(str(tmp_path / "data.npz"), (symmetry,), n_networks=1, epochs=1, tolerance=99.0, **options)
    fit(settings, tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert len(page.encode()) < 5 * MEGABYTE
    assert "data:image/" in page
    assert reason in page
    assert (tmp_path / "run/run.json").stat().st_size < MEGABYTE / 10
