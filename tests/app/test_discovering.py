"""`invariantnet discover` as a user sees it."""

import json

import numpy as np
import pytest

from invariantnet.app.cli import main
from invariantnet.discovery.evidence import Evidence
from invariantnet.discovery.judging import Judge


@pytest.fixture
def data(tmp_path):
    """Labels that depend on the product of two of three inputs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 3)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + x[:, 0] + x[:, 1] - 2 * x[:, 2] + 0.05 * rng.normal(size=150)
    file = tmp_path / "data.npz"
    np.savez(file, x=x, y=y)
    return file


def interrupt_after(monkeypatch, owner, name, count):
    """Let a method raise KeyboardInterrupt after so many calls; return the list of calls."""
    work, calls = getattr(owner, name), []

    def counted(*arguments):
        calls.append(name)
        if len(calls) > count:
            raise KeyboardInterrupt
        return work(*arguments)

    monkeypatch.setattr(owner, name, counted)
    return calls


def test_verdict_table_and_picture(data, tmp_path, capsys):
    picture = tmp_path / "orbits.svg"
    main(["discover", str(data), "--out", str(tmp_path / "out"), "--picture", str(picture)])
    said = capsys.readouterr().out
    assert "There is a symmetry" in said
    assert "log e-value" in said
    assert picture.read_text().count("<rect") == 3
    record = json.loads((tmp_path / "out" / "discovery.json").read_text())
    assert record["verdict"] in said
    assert record["generators"] == [[1, 0, 2]]
    assert not (tmp_path / "out" / "unfinished").exists()


def test_a_finished_search_is_kept(data, tmp_path, capsys):
    command = ["discover", str(data), "--examples", "60", "--out", str(tmp_path / "out")]
    main(command)
    first = capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 2
    assert "--overwrite" in capsys.readouterr().err
    main([*command, "--resume"])
    assert capsys.readouterr().out == first


@pytest.mark.usefixtures("annotations_unchecked")
@pytest.mark.parametrize("inputs", ["few", "many"])
def test_an_interrupted_search_goes_on_where_it_stopped(inputs, data, tmp_path, capsys, monkeypatch):
    owner, name = Evidence, "_by_penalty"
    if inputs == "many":
        owner, name = Judge, "_score"
        x = np.random.default_rng(0).normal(size=(60, 17))
        np.savez(data, x=x, y=x.sum(axis=1) > 0)
    command = ["discover", str(data), "--examples", "60", "--out"]
    with monkeypatch.context() as patch:
        calls = interrupt_after(patch, owner, name, 10**9)
        main([*command, str(tmp_path / "whole")])
        total = len(calls)
    whole = (tmp_path / "whole" / "discovery.json").read_bytes()
    with monkeypatch.context() as patch:
        interrupt_after(patch, owner, name, total - 5)
        with pytest.raises(SystemExit) as stop:
            main([*command, str(tmp_path / "out")])
    assert stop.value.code == 130
    assert "--resume" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        left = interrupt_after(patch, owner, name, 10**9)
        main([*command, str(tmp_path / "out"), "--resume"])
    assert 0 < len(left) < total / 2
    assert (tmp_path / "out" / "discovery.json").read_bytes() == whole


def test_scores_of_other_data_are_not_resumed(data, tmp_path, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, Evidence, "_by_penalty", 20)
        with pytest.raises(SystemExit):
            main(["discover", str(data), "--out", str(tmp_path / "out")])
    main(["discover", str(data), "--seed", "1", "--out", str(tmp_path / "out"), "--resume"])
    assert "starting anew" in capsys.readouterr().err


def test_the_task_decides_about_whole_numbers(tmp_path, capsys):
    x = np.random.default_rng(0).integers(0, 4, size=(100, 2)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=x.sum(axis=1))
    for task in ("numbers", "classes"):
        main(["discover", str(tmp_path / "data.npz"), "--task", task, "--out", str(tmp_path / task)])
    said = [json.loads((tmp_path / task / "discovery.json").read_text()) for task in ("numbers", "classes")]
    assert said[0]["log_e_value"] > said[1]["log_e_value"]
    assert said[0]["generators"] == [[1, 0]]


def test_a_picture_that_cannot_be_written_is_told_at_once(data, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(
            ["discover", str(data), "--picture", str(tmp_path / "no" / "such" / "\0.svg"), "--out", str(tmp_path)]
        )
    assert stop.value.code == 2
