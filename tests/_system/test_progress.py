"""Progress is announced, never runs backwards, and fits into a narrow terminal."""

import fcntl
import itertools
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time

import pytest

from invariantnet._system import progress
from invariantnet._system.share import CREEP, Share, time_left

COLUMNS = 80
WORK = """
import time
from invariantnet._system.progress import meter, working
with working("reading " + "a/very/long/path" * 9, visible=True):
    time.sleep(0.3)
with meter("comparing 4 symmetries", visible=True) as update:
    for done in (0.2, 0.1, 0.9, 0.5):
        update(done, "rotations lead the flips by very many nats, as everybody had expected them to do")
        time.sleep(0.3)
"""


def shown_in_a_terminal(code):
    """What a program writes to a terminal of 80 columns, as lines without colours."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(COLUMNS)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    text = b""
    while True:
        try:
            text += os.read(master, 65536)
        except OSError:  # the other end was closed
            break
    os.close(master)
    assert process.wait() == 0, text
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())
    return [line.rstrip() for line in re.split(r"[\r\n]+", plain) if line.strip()]


def test_a_terminal_shows_a_line_that_only_grows():
    lines = shown_in_a_terminal(WORK)
    assert max(map(len, lines)) <= COLUMNS
    assert "reading a/very" in lines[0], "at once"
    shares = [int(found[1]) for line in lines if (found := re.search(r"(\d+)%", line))]
    assert shares == sorted(shares)
    assert {20, 90, 100} <= set(shares)
    assert "comparing 4 symmetries" in lines
    assert any(re.search(r"20% 0:0\d, 0:0\d left", line) for line in lines)
    assert {"  rotations lead the flips by very many nats, as everybody had expected them to", "  do"} <= set(
        lines
    )


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    clock = itertools.count(0.0, 0.3)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with progress.meter("training", visible=True) as update:
        for step in range(20):
            update(step / 20, f"step {step}")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("training: 0%"), "this clock has moved on already"
    assert re.fullmatch(r"training: \d+%, 0:\d\d left, step \d+", lines[1])
    assert lines[-1] == "training: 100%"
    assert 4 <= len(lines) <= 7
    shares = [int(re.search(r"(\d+)%", line)[1]) for line in lines]
    assert shares == sorted(shares)


def test_a_log_fits_into_80_columns_and_says_no_evidence_in_nats(capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "RARER", 0.0)
    names = {"half turns": -9.0, "no symmetry": -150.0}
    work = progress.Work("comparing 63 hypotheses", 5000.0)
    progress.say("18 symmetries, 7 kinds of networks: " + "many words " * 20, visible=True)
    with progress.evidence_bar(work, visible=True) as on_network:
        on_network(progress.Step("quarter turns and mirror images, circular cnn", 0, 1, 0, 1, 0.5, names))
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert lines[1].startswith("  "), "what goes on is indented"
    assert "  ahead: half turns; trained: quarter turns and mirror images, circular cnn" in lines, (
        "nothing is cut off"
    )
    assert not any("nats" in line for line in lines)


def test_a_long_title_leaves_room_for_the_share_and_the_time_left(capsys):
    with progress.meter("training the network with " + "many words and " * 9, visible=True, seconds=90.0):
        pass
    first, last = capsys.readouterr().err.splitlines()
    assert len(first) == COLUMNS
    assert first.endswith("…: 0%, 1:30 left")
    assert last.endswith("…: 100%")


def test_a_log_is_never_silent_for_long_and_tells_the_time_left_from_the_start(capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    with progress.meter("training", visible=True, seconds=90.0):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "training: 0%, 1:30 left"
    assert 3 <= len(lines) <= 8
    assert lines[-1] == "training: 100%"


def test_a_log_tells_the_time_so_far_where_none_can_tell_the_time_left(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress.meter("discovering", visible=True) as update:
        for seconds in (0.0, 7.0, 65.0):
            now = seconds
            update(0.0, "looking")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "discovering: 0%",
        "discovering: 0%, 0:07 so far, looking",
        "discovering: 0%, 1:05 so far, looking",
        "discovering: 100%",
    ]


@pytest.mark.parametrize("slower", [0.5, 1, 2, 30])
def test_the_time_left_neither_jumps_nor_stands_still_if_the_machine_is_slower_than_expected(slower):
    expected, total = 60.0, 60.0 * slower
    moments = [total * k / 200 for k in range(200)]
    told = [time_left(seconds, seconds / total, expected) for seconds in moments]
    assert told[0] == expected
    assert all(after < 1.5 * before + 1 for before, after in itertools.pairwise(told))
    late = [(seconds, left) for seconds, left in zip(moments, told, strict=True) if seconds > total / 2]
    assert all((total - seconds) / 2 <= left <= 2 * (total - seconds) for seconds, left in late)


def test_the_share_creeps_on_while_nothing_is_reported_and_never_falls(monkeypatch):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    share = Share(100.0)
    shown = []
    for reported in (0.0, 0.3, 0.31, 0.6):
        share.report(reported)
        for _ in range(60):
            now += 1.0
            shown.append(share.shown())
            assert shown[-1] <= reported + CREEP * (1 - reported)
    assert shown == sorted(shown)
    assert len(set(shown[:120])) == 120, "it does not stand still"


def test_a_log_never_runs_backwards(capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "RARER", 0.0)
    with progress.meter("training", visible=True) as update:
        for done in (0.2, 0.1, 0.9, 0.5):
            update(done, "")
    shares = [line.split()[1].rstrip(",") for line in capsys.readouterr().err.splitlines()]
    assert shares == ["0%", "20%", "20%", "90%", "90%", "100%"]


@pytest.mark.parametrize(("seconds", "said"), [(60.0, ""), (0.0, "reading photos\n")])
def test_work_of_unknown_length_is_announced_in_a_log_if_it_takes_long(capsys, monkeypatch, seconds, said):
    monkeypatch.setattr(progress, "SILENT_SECONDS", seconds)
    with progress.working("reading photos", visible=True):
        time.sleep(0.1)
    assert capsys.readouterr().err == said


def test_long_work_of_unknown_length_says_now_and_then_that_it_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    with progress.working("evaluating", visible=True):
        time.sleep(0.3)
    first, *others = capsys.readouterr().err.splitlines()
    assert first == "evaluating"
    assert set(others) == {"evaluating: 0:00 so far"}


def test_invisible_work_says_nothing(capsys):
    with (
        progress.working("reading", visible=False),
        progress.training_bar(2, "a network", visible=False) as on_step,
        progress.evidence_bar(progress.Work("comparing"), visible=False) as on_network,
    ):
        on_step(None)
        on_network(progress.Step("trivial", 0, 1, 0, 1, 0.5, {}))
    assert capsys.readouterr().err == ""
