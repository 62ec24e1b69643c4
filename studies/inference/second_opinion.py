"""Does Laplace's approximation of the marginal likelihood agree with the evidence, and what does each cost?

The answers are in the records of two other studies, which ask for both on some of their data sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.framework import Claim, Study
from studies.framework.markdown import markdown
from studies.inference import calibration, posterior

AnyRecord = posterior.Record | calibration.Record
LARGE = 1000
"""From this number of examples on, both are about equally often right."""


@dataclass(frozen=True)
class Comparison:
    """Both opinions on data sets of one kind and size."""

    data: str
    n: int
    data_sets: int
    right: int
    """Data sets where the evidence favours the truth."""
    laplace_right: int
    agreed: int
    right_if_agreed: int
    seconds: float
    """Mean CPU seconds of the comparison by evidence."""
    laplace_seconds: float


def compare(records: Sequence[AnyRecord]) -> list[Comparison]:
    """Compare both opinions wherever both were asked for."""
    asked = [r for r in records if r.laplace]
    return [
        _compare(*kind, [r for r in asked if _kind(r) == kind])
        for kind in sorted({_kind(r) for r in asked}, key=lambda kind: (kind[0] == "MNIST", kind[1]))
    ]


def _kind(record: AnyRecord) -> tuple[str, int]:
    return ("MNIST" if isinstance(record, posterior.Record) else "calibration"), record.n


def _compare(data: str, n: int, found: Sequence[AnyRecord]) -> Comparison:
    agreed = [r for r in found if r.favourite == r.laplace]
    first, second = np.mean([r.seconds for r in found], axis=0)  # type: ignore[arg-type]
    return Comparison(
        data=data,
        n=n,
        data_sets=len(found),
        right=sum(r.favourite == r.truth for r in found),
        laplace_right=sum(r.laplace == r.truth for r in found),
        agreed=len(agreed),
        right_if_agreed=sum(r.laplace == r.truth for r in agreed),
        seconds=float(first),
        laplace_seconds=float(second),
    )


def table(records: Sequence[AnyRecord]) -> str:
    """How often each is right, and at what cost."""
    rows = [
        [
            c.data,
            str(c.n),
            f"{c.right} of {c.data_sets}",
            f"{c.laplace_right} of {c.data_sets}",
            f"{c.right_if_agreed} of {c.agreed}",
            f"{c.seconds:.1f}",
            f"{c.laplace_seconds:.1f}",
        ]
        for c in compare(records)
    ]
    header = ["data", "n", "prequential right", "Laplace right", "right where they agree"]
    return markdown([*header, "prequential, CPU s", "Laplace, CPU s"], rows)


def claims(records: Sequence[AnyRecord]) -> dict[str, Claim]:
    """What the page says."""
    found = compare(records)
    few, many = ([c for c in found if (c.n >= LARGE) == large] for large in (False, True))
    total = sum(c.data_sets for c in found)
    agreed = sum(c.right_if_agreed for c in found) / max(1, sum(c.agreed for c in found))
    smallest, largest = min(found, key=lambda c: c.n), max(found, key=lambda c: c.n)
    return {
        "right": Claim(
            f"From {LARGE:,} examples on, both are right about equally often; with fewer, the prequential "
            "evidence is right more often.",
            all(c.right > c.laplace_right for c in few)
            and all(abs(c.right - c.laplace_right) <= 0.1 * c.data_sets for c in many),
        ),
        "agreement": Claim(
            "Where the two agree, they are right more often than either alone.",
            agreed > max(sum(c.right for c in found), sum(c.laplace_right for c in found)) / total,
        ),
        "cost": Claim(
            "Laplace is cheaper on small data, and more expensive on large data, where it drops no hypothesis "
            "early.",
            smallest.laplace_seconds < smallest.seconds and largest.laplace_seconds > largest.seconds,
        ),
    }


STUDY = Study[Any, Any, Any](
    file=__file__,
    question=__doc__,
    reads=("posterior", "calibration"),
    table=table,
    claims=claims,
)
