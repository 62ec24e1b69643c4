"""Which share of some work is done, and how much time is left."""

import math
import time

ENOUGH_TO_TELL = 0.03
"""Share of the work from which on the time left is told: before, it would be a guess."""

EXPECTATION = 0.2
"""Share of the work that an expected time counts for, beside the time that the share done so far has taken."""

UNREPORTED = 0.05
"""Share of the work that may be done before any is reported, such as most of the first network."""

CREEP = 0.1
"""Share of what is left by which the share that is shown may creep on until the next report."""

QUIET = 0.5
"""Seconds after a report before the share creeps on: frequent reports need no help."""


class Share:
    """The share of some work that is shown: it creeps on between two reports, and never falls.

    Args:
        expected: How long the work will take, if that was estimated.
    """

    def __init__(self, expected: float | None) -> None:
        self.expected = expected
        self.start = self.since = time.monotonic()
        self.reported = self.base = self.pace = 0.0
        self._set_pace()

    def report(self, done: float) -> None:
        """Note the share that is done."""
        self.base = max(self.shown(), done)
        self.reported, self.since = max(self.reported, done), time.monotonic()
        self._set_pace()

    def shown(self) -> float:
        """The share to show now: at most a part of what is left beyond what was reported."""
        quiet = time.monotonic() - self.since - QUIET
        room = self.reported + CREEP * (1 - self.reported) - self.base
        if min(quiet, room) <= 0:
            return self.base
        return self.base + room * -math.expm1(-self.pace * quiet / room)

    def left(self) -> float | None:
        """Seconds that are left, if that can be told."""
        return None if self.reported >= 1 else time_left(self.seconds, self.shown(), self.expected)

    def words(self) -> str:
        """The share with the time left; or with the time so far, if nothing can be told of the time left."""
        share, left = f"{self.shown():.0%}", self.left()
        if left is not None:
            return f"{share}, {clock(left)} left"
        if self.reported >= 1 or self.seconds < 1:
            return share
        return f"{share}, {clock(self.seconds)} so far"

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self.start

    def _set_pace(self) -> None:
        left = time_left(self.since - self.start, self.base, self.expected)
        self.pace = (1 - self.base) / left if left else 0.0


def clock(seconds: float) -> str:
    """Minutes and seconds, or hours too.

    >>> clock(4.9), clock(3675.0)
    ('0:05', '1:01:15')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def time_left(seconds: float, share: float, expected: float | None) -> float | None:
    """Estimate the time left from the share that is done and, the less that is, from what was expected.

    On a busy machine work takes many times what was expected: the estimate then grows steadily, and does not jump.

    >>> time_left(10.0, 0.5, None), time_left(0.0, 0.0, 40.0), time_left(10.0, 0.25, 40.0)
    (10.0, 40.0, 30.0)
    """
    if not expected:
        return seconds * (1 - share) / share if share >= ENOUGH_TO_TELL else None
    done = max(share, min(seconds / expected, UNREPORTED))
    return (1 - share) * (EXPECTATION * expected + seconds) / (EXPECTATION + done)
