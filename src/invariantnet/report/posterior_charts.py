"""Charts of a posterior."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.range_posterior import RangePosterior
from invariantnet.report import charts
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.plain import both_names, plain_name

SHORTEST_AXIS = 50.0
"""Nats that the axis of an evidence chart covers at least, so that small differences look small."""


def posterior_chart(posterior: SymmetryPosterior) -> Markup:
    """Draw how probable each hypothesis is."""
    rows = [
        charts.Bar(both_names(name), p, f"{p:.3f}", strong=posterior.learned and name == posterior.favourite)
        for name, p in zip(posterior.names, posterior.probabilities, strict=True)
    ]
    return charts.bars(rows, "Posterior: " + _listed(rows))


def evidence_chart(posterior: SymmetryPosterior) -> Markup | None:
    """Draw the log evidence of each hypothesis against the best; None where it was not computed."""
    factors = posterior.log_bayes_factors
    if not np.isfinite(factors).all():
        return None
    several = any(spread > 0 for spread in posterior.log_evidence_spread)
    rows = [
        charts.Bar(
            both_names(name),
            factor,
            f"{'≤ ' if name in posterior.dropped else ''}{factor:z.1f}{f' ± {spread:.1f}' if several else ''}",
            spread,
            posterior.learned and name == posterior.favourite,
        )
        for name, factor, spread in zip(posterior.names, factors, posterior.log_evidence_spread, strict=True)
    ]
    return _behind(rows, "Log evidence against the best: ")


def models_chart(posterior: SymmetryPosterior) -> Markup | None:
    """Draw how far each model is behind the best; None where only one was compared."""
    if len(posterior.models) < 2:
        return None
    best = posterior.models[0].log_evidence
    rows = [
        charts.Bar(
            m.name,
            m.log_evidence - best,
            f"{'≤ ' if m.dropped else ''}{m.log_evidence - best:z.1f}",
            strong=m is posterior.models[0],
        )
        for m in posterior.models
    ]
    return _behind(rows, "Log evidence of each kind of network against the best: ")


def laplace_chart(posterior: SymmetryPosterior) -> Markup | None:
    """Draw the second opinion against its best; None if it was not asked for."""
    if not posterior.laplace:
        return None
    best = max(posterior.laplace)
    rows = [
        charts.Bar(both_names(name), value - best, f"{value - best:z.1f}", strong=name == posterior.second_opinion)
        for name, value in zip(posterior.names, posterior.laplace, strict=True)
    ]
    return _behind(rows, "Laplace's log marginal likelihood against the best: ")


def race_chart(posterior: SymmetryPosterior) -> Markup | None:
    """Draw how far each hypothesis was behind the leader after each block; None where there was no race."""
    if not posterior.race:
        return None
    paths: dict[str, list[tuple[float, float]]] = {name: [(0.0, 0.0)] for name in posterior.names}
    for i, stage in enumerate(posterior.race, 1):
        best = max(stage.log_evidence.values())
        for name, value in stage.log_evidence.items():
            paths[name].append((float(i), value - best))
    # The names in words are too long for the end of a line; the bars of the page have both.
    short = {name: plain_name(name) if name == TRIVIAL else name for name in paths}
    ahead = posterior.favourite if posterior.learned else None
    found = [charts.Line(short[name], tuple(points), name == ahead) for name, points in paths.items()]
    ticks = ["0", *(f"{stage.examples:,}" for stage in posterior.race)]
    alt = "Log evidence behind the leader after each block: " + "; ".join(
        f"{line.label} {line.points[-1][1]:.0f} after {ticks[len(line.points) - 1]} labels" for line in found
    )
    return charts.lines(found, ticks, alt)


def range_charts(posterior: SymmetryPosterior) -> list[tuple[str, Markup]]:
    """Draw the evidence against the value of every range: a sentence and a curve for each."""
    return [(_reach(found), _range_chart(found)) for found in posterior.ranges.values()]


def _reach(found: RangePosterior) -> str:
    about = f"{found.family}: {found.words}" if found.words else found.family
    return f"{about}; larger ones cost accuracy" if found.costs_beyond else about


def _range_chart(found: RangePosterior) -> Markup:
    best = max(found.log_evidence)
    points = tuple((float(k), value - best) for k, value in enumerate(found.log_evidence))
    ticks = ["none", *(found.with_unit(value, 3) for value in found.values[1:])]
    alt = f"Log evidence against the best, by the largest {found.family}: " + ", ".join(
        f"{tick} {value:.1f}" for tick, (_, value) in zip(ticks, points, strict=True)
    )
    return charts.lines([charts.Line(found.family, points)], ticks, alt)


def _behind(rows: Sequence[charts.Bar], what: str) -> Markup:
    """Bars that end at zero: the longer, the further behind."""
    furthest = max(SHORTEST_AXIS, 1.1 * -min(row.value for row in rows))
    return charts.bars(rows, what + _listed(rows), low=-furthest, high=0.05 * furthest)


def _listed(rows: Sequence[charts.Bar]) -> str:
    return ", ".join(f"{row.label} {row.text}" for row in rows)
