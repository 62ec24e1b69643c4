"""Numbers from the command line: fit, page, predictions, ONNX."""

import csv
import json

import numpy as np
import onnxruntime
import pytest

from invariantnet import InvariantRegressor
from invariantnet.app.cli import main

pytestmark = pytest.mark.usefixtures("brief_comparison")
OPTIONS = ("--backbone", "mlp", "--hidden", "16", "--n-networks", "1", "--epochs", "60", "--symmetries", "sign")


@pytest.fixture
def table(here):
    """A table whose label is a number, blind to the sign of all inputs."""
    x = np.random.default_rng(0).normal(size=(160, 3))
    y = 20 + 3 * np.abs(x[:, 0]) + x[:, 1] * x[:, 2]
    lines = [
        "a,b,c,price",
        *(",".join(f"{v:.6f}" for v in (*row, label)) for row, label in zip(x, y, strict=True)),
    ]
    (here / "t.csv").write_text("\n".join(lines))
    return here / "t.csv"


def test_from_a_table_of_numbers_to_predictions_and_a_page(table, capfd):
    main(["fit", str(table), "--label", "price", *OPTIONS])
    said = capfd.readouterr().out
    assert "of the test set's variance" in said
    record = json.loads((table.parent / "runs/fit/run.json").read_text())
    assert record["kind"] == "InvariantRegressor"
    assert record["data"]["test_accuracy"] is None
    assert record["data"]["test_explained"] == record["evaluation"]["accuracy"]["chosen"]["trivial"]
    page = (table.parent / "runs/fit/report.html").read_text()
    assert "of the variance" in page
    assert "class by class" not in page
    main(["predict", "runs/fit", str(table), "--out", "p.csv"])
    said = capfd.readouterr().out
    assert "% of the variance explained, mean absolute error" in said
    with (table.parent / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    reg = InvariantRegressor.load(table.parent / "runs/fit")
    x = np.loadtxt(table, delimiter=",", skiprows=1)[:, :3].astype(np.float32)
    np.testing.assert_allclose([float(row["mean"]) for row in rows], reg.predict(x), rtol=1e-6)
    main(["export", "runs/fit", "m.onnx"])
    outputs = onnxruntime.InferenceSession(table.parent / "m.onnx").run(None, {"x": x})
    np.testing.assert_allclose(outputs[0], reg.predict(x), rtol=1e-4)


def test_whole_numbers_are_numbers_if_asked_for(here, capfd):
    x = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    y = np.stack([np.round(9 * abs(x[:, 0])), np.round(5 * x[:, 1] ** 2)], 1)
    np.savez(here / "d.npz", x=x, y=y)
    main(["fit", "d.npz", "--task", "numbers", *OPTIONS, "--json"])
    assert json.loads(capfd.readouterr().out)["learned"]["y_mean"] is not None
    main(["predict", "runs/fit", "d.npz"])
    printed = capfd.readouterr()
    assert printed.out.splitlines()[0] == "input,mean 1,standard error 1,mean 2,standard error 2"
    assert "of the variance explained" in printed.err


@pytest.mark.parametrize(
    "option",
    [
        ("--placement", "outputs"),
        ("--pool", "mean"),
        ("--no-joins",),
        ("--device", "cpu"),
        ("--precision", "bf16-mixed"),
    ],
)
def test_options_of_the_estimator(table, option, capfd):
    main(
        [
            "fit",
            str(table),
            "--label",
            "price",
            *OPTIONS[:-4],
            "--epochs",
            "1",
            "--symmetries",
            "sign,reversal",
            *option,
            "--json",
        ]
    )
    record = json.loads(capfd.readouterr().out)
    name = option[0].removeprefix("--no-").removeprefix("--")
    expected = option[1] if len(option) > 1 else False
    assert record["settings"][name] == record["parameters"][name] == expected
    assert ("reversal+sign" in record["posterior"]["names"]) == (name != "joins")
