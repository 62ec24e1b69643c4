"""A table of what each symmetry gains or loses in each class."""

from dataclasses import dataclass

from invariantnet.inference.by_class import CLEAR, Gain
from invariantnet.inference.posterior import SymmetryPosterior

MOST_SYMMETRIES, MOST_CLASSES = 6, 20
"""Columns and rows of the table: more do not fit on a screen."""


@dataclass(frozen=True)
class Cell:
    """One gain: its text, and whether it is clearly a gain or a loss."""

    text: str
    kind: str
    """Class of the table cell: `gain`, `loss` or nothing."""


@dataclass(frozen=True)
class Row:
    """One class, with a cell per symmetry."""

    part: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ClassTable:
    """The most probable symmetries, and the classes that differ most."""

    symmetries: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: str
    """What the table does not show, in words; empty if nothing."""


def class_table(posterior: SymmetryPosterior) -> ClassTable | None:
    """Choose what a page shows of the gains.

    Args:
        posterior: The posterior with its gains by class.

    Returns:
        The table; None if there are no gains.
    """
    gains = {(g.symmetry, g.part): g for g in posterior.by_class}
    if not gains or not posterior.learned:
        return None
    there = {symmetry for symmetry, _ in gains}
    by_evidence = sorted(zip(posterior.log_evidence, posterior.names, strict=True), reverse=True)
    symmetries = [name for _, name in by_evidence if name in there]
    parts = list(dict.fromkeys(part for _, part in gains))
    by_size = sorted(parts, key=lambda part: -max(abs(_nats(gains.get((s, part)))) for s in symmetries))
    shown = [part for part in parts if part in by_size[:MOST_CLASSES]]
    rows = [Row(part, tuple(_cell(gains.get((s, part))) for s in symmetries[:MOST_SYMMETRIES])) for part in shown]
    left_out = [
        f"1 {one}" if count == most + 1 else f"{count - most} {several}"
        for count, most, one, several in (
            (len(symmetries), MOST_SYMMETRIES, "symmetry that predicts worse", "symmetries that predict worse"),
            (len(parts), MOST_CLASSES, "class that differs less", "classes that differ less"),
        )
        if count > most
    ]
    said = f"Not shown: {' and '.join(left_out)}." if left_out else ""
    return ClassTable(tuple(symmetries[:MOST_SYMMETRIES]), tuple(rows), said)


def _nats(gain: Gain | None) -> float:
    return 0.0 if gain is None else gain.nats_per_example


def _cell(gain: Gain | None) -> Cell:
    if gain is None:
        return Cell("–", "")
    clear = abs(gain.nats_per_example) > CLEAR * gain.error
    kind = "" if not clear else "gain" if gain.nats_per_example > 0 else "loss"
    sign = "+" if gain.nats_per_example >= 0 else "−"
    return Cell(f"{sign}{abs(gain.nats_per_example):.2f} ± {gain.error:.2f}", kind)
