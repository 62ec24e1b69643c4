"""A terminal is never blank: every part of a fit says what it does before it does it."""

import shutil

import pytest
from problems import quickly_compared

from invariantnet.app.cli import main

pytestmark = pytest.mark.usefixtures("annotations_unchecked")
PARTS = (
    "starting",
    "reading digits:rotated",
    "preparing the examples",
    "2 symmetries, one kind of network: 2 hypotheses. Estimated from",
    "comparing 2 hypotheses",
    "training the network with quarter turns",
    "training the same network without the symmetry",
    "evaluating on 398 test examples",
    "writing the page",
)


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("predict {run} {data}", ("starting", "reading {run} and {data}")),
        ("export {run} model.onnx", ("starting", "exporting {run}")),
        ("report {run}", ("starting",)),
    ],
)
def test_other_commands_say_that_they_start(command, parts, here, capfd, monkeypatch, fitted):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    shutil.copytree(fitted, here / "run")
    names = {"run": "run", "data": fitted.parent / "data.npz"}
    main(command.format(**names).split())
    said = capfd.readouterr().err
    assert all(part.format(**names) in said for part in parts), said


def test_every_part_of_a_fit_is_announced(here, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the output for a terminal
    options = "--symmetries rot90 --examples 60 --hidden 4 --n-networks 1 --epochs 1 --tolerance 9"
    with quickly_compared():
        main(["fit", "digits:rotated", *options.split()])
    said = capfd.readouterr().err
    places = [said.find(part) for part in PARTS]
    assert -1 not in places, [part for part, place in zip(PARTS, places, strict=True) if place == -1]
    assert places == sorted(places)
