"""Charts as small SVG texts: they take their colours from the page, so that they follow light, dark and print."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from markupsafe import Markup, escape

COLOURS = 8
"""Colours of lines, by their order; the style sheet has the classes c0 … c7."""
WIDTH = 460
"""Width of a chart in its own units, which the page scales: about a pixel each."""
LABEL, RIGHT = 105, 140
"""Room for the names right of lines, and for the numbers right of bars."""
ROW = 44
"""Height of a bar with its label above it and the gap below it."""
LONGEST, LINE = 54, 16
"""Characters of a label above a bar that fit into the width of a chart, in the larger letters of a phone too; and
height of a line of them."""
GAP = 16.0
"""Distance of names right of lines, in the larger letters of a phone too."""
LEFT = 60
"""Room for the numbers left of lines."""


@dataclass(frozen=True)
class Bar:
    """One horizontal bar."""

    label: str
    value: float
    text: str
    spread: float = 0.0
    strong: bool = False


@dataclass(frozen=True)
class Line:
    """One line through points."""

    label: str
    points: tuple[tuple[float, float], ...]
    strong: bool = False


def minus(number: str) -> str:
    """Write a number with a minus sign, which a hyphen is too short for."""
    return number.replace("-", "−")


def percent(share: float) -> str:
    """Write a share in percent; that of explained variance may be negative."""
    return f"{minus(f'{100 * share:.1f}')} %"


def bars(rows: Sequence[Bar], alt: str, low: float = 0.0, high: float = 1.0) -> Markup:
    """Draw horizontal bars from 0, with whiskers where there is a spread.

    Args:
        rows: The bars, from top to bottom.
        alt: The chart in words, for readers that cannot see it.
        low: Value at the left end of the axis.
        high: Value at its right end.

    Returns:
        The chart.
    """
    scale = _Axis(low, high, 4, WIDTH - RIGHT)
    body, y = [], 8
    for row in rows:
        for line in wrap(row.label, LONGEST):
            body.append(Markup('<text x="4" y="{}">{}</text>').format(y + 8, line))
            y += LINE
        y += ROW - LINE
        body.append(_bar(row, scale, y - 30))
    return _svg(body, y + 8, alt)


def _bar(row: Bar, scale: "_Axis", y: int) -> Markup:
    """One bar below its label, with its number at the right."""
    start, end = sorted((scale(0), scale(row.value)))
    drawn = Markup(
        '<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" class="bar{}"/>'
        '<text x="{}" y="{}" class="value">{}</text>'
    ).format(
        start,
        y,
        max(end - start, 1.0),
        ROW - 28,
        " strong" if row.strong else "",
        WIDTH - RIGHT + 8,
        y + 13,
        minus(row.text),
    )
    if row.spread > 0:
        left, right = scale(row.value - row.spread), scale(row.value + row.spread)
        drawn += Markup('<path d="M{:.1f} {}H{:.1f}M{:.1f} {}v10M{:.1f} {}v10" class="whisker"/>').format(
            left, y + 8, right, left, y + 3, right, y + 3
        )
    return drawn


def lines(rows: Sequence[Line], ticks: Sequence[str], alt: str) -> Markup:
    """Draw lines over the positions 0, 1, …, each named at its end.

    Args:
        rows: The lines.
        ticks: Text below each position.
        alt: The chart in words, for readers that cannot see it.

    Returns:
        The chart.
    """
    height, room = max(240, round(GAP * len(rows)) + 48), _room([row.label for row in rows])
    values = [y for row in rows for _, y in row.points] or [0.0]
    x_axis = _Axis(0, max(1, len(ticks) - 1), LEFT, WIDTH - LABEL)
    y_axis = _Axis(min(values), max(max(values), min(values) + 1e-9), height - 34, 14)
    body = [
        Markup('<text x="{:.1f}" y="{}" class="tick">{}</text>').format(x_axis(i), height - 12, tick)
        for i, tick in enumerate(ticks)
    ]
    body += [
        Markup('<path d="M{} {:.1f}H{}" class="grid"/><text x="{}" y="{:.1f}" class="label">{}</text>').format(
            LEFT, y_axis(value), WIDTH - LABEL, LEFT - 6, y_axis(value) + 4, minus(f"{value:,.0f}")
        )
        for value in (min(values), max(values))
    ]
    names = _apart([y_axis(row.points[-1][1]) for row in rows], height - 34)
    drawn = sorted(enumerate(zip(rows, names, strict=True)), key=lambda each: each[1][0].strong)
    for k, (row, at) in drawn:  # a strong line lies above the others
        path = "L".join(f"{x_axis(x):.1f} {y_axis(y):.1f}" for x, y in row.points)
        x, y = x_axis(row.points[-1][0]), y_axis(row.points[-1][1])
        colour = "strong" if row.strong else f"c{k % COLOURS}"
        body.append(
            Markup(
                '<path d="M{:.1f} {:.1f}L{} {:.1f}" class="grid"/><path d="M{}" class="line {}"/>'
                '<circle cx="{:.1f}" cy="{:.1f}" r="3" class="dot {}"/>'
            ).format(x, y, WIDTH - LABEL + 14, at, path, colour, x, y, colour)
            + Markup('<text x="{}" y="{:.1f}" class="name{}">{}</text>').format(
                WIDTH - LABEL + 18, at + 4, " strong" if row.strong else "", row.label
            )
        )
    return _svg(body, height, alt, WIDTH + 10 + room - LABEL)


def _apart(wanted: Sequence[float], bottom: float, gap: float = GAP) -> list[float]:
    """Place names near the heights they want, so that none touches another and none is below the bottom."""
    order = sorted(range(len(wanted)), key=lambda k: wanted[k])
    found = list(wanted)
    for above, below in itertools.pairwise(order):
        found[below] = max(found[below], found[above] + gap)
    limit = bottom
    for k in reversed(order):
        found[k] = min(found[k], limit)
        limit = found[k] - gap
    return found


def reliability(points: Sequence[tuple[float, float, int]], alt: str) -> Markup:
    """Draw stated against observed probabilities; the diagonal is perfect.

    Args:
        points: Stated probability, observed frequency, and number of examples.
        alt: The chart in words, for readers that cannot see it.

    Returns:
        The chart.
    """
    height, left, right = 260, LABEL, LABEL + 220
    low = min([0.5, *(min(stated, observed) for stated, observed, _ in points)])
    x, y = _Axis(low, 1, left, right), _Axis(low, 1, height - 34, 14)
    body = [
        Markup('<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" class="grid"/>').format(x(low), y(low), x(1), y(1)),
        Markup('<text x="{}" y="{}" class="tick">stated probability</text>').format(
            (left + right) / 2, height - 6
        ),
        Markup('<text x="{}" y="{}" class="label">observed</text>').format(left - 18, height / 2),
    ]
    for value in (low, 1.0):
        body.append(
            Markup('<text x="{:.1f}" y="{}" class="tick">{}</text>').format(x(value), height - 20, f"{value:.2f}")
        )
        body.append(
            Markup('<text x="{}" y="{:.1f}" class="label">{}</text>').format(
                left - 18, y(value) + 4, f"{value:.2f}"
            )
        )
    body += [
        Markup('<circle cx="{:.1f}" cy="{:.1f}" r="5" class="dot c0"><title>{}</title></circle>').format(
            x(stated), y(observed), f"stated {stated:.3f}, observed {observed:.3f}, {count} examples"
        )
        for stated, observed, count in points
    ]
    return _svg(body, height, alt)


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


def _room(labels: Sequence[str]) -> int:
    """Estimate the width that the longest label takes, at 8.3 units a character, as on a phone."""
    return max([LABEL, *(round(8.3 * len(label)) + 16 for label in labels)])


def _svg(body: Sequence[Markup], height: int, alt: str, width: int = WIDTH) -> Markup:
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}" class="chart">').format(
        width, height, escape(alt)
    )
    return head + Markup("").join(body) + Markup("</svg>")
