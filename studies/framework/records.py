"""Records on disk: one file per study, one line per recipe, which says how its numbers were made."""

import dataclasses
import functools
import json
import tomllib
import types
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Union, get_args, get_origin, get_type_hints

from invariantnet._system.files import write_json
from studies.framework.study import Record, Study

ROOT = Path(__file__).parents[2]
"""The repository."""

RESULTS = ROOT / "results"
"""The committed records, from which the documentation is rendered."""


@dataclass(frozen=True)
class Confirmation:
    """Later code was seen to give the same numbers, on a sample of the records that the code before it gave."""

    digest: str
    """Digest of the later code and the settings."""
    sampled: int
    """Recipes that were run again, all with equal numbers."""
    of: int
    """Records they were drawn from."""


@dataclass(frozen=True)
class Piece(Generic[Record]):
    """What one recipe gave, and how."""

    recipe: dict[str, Any]
    """Its seed and unusual settings."""
    version: str
    """Version of the package that made the records."""
    digest: str | None
    """Digest of the code and settings; None for records older than digests."""
    machine: str | None
    cpu_seconds: float | None
    records: tuple[Record, ...]
    confirmed: Confirmation | None = None


AnyStudy = Study[Any, Any, Any]


def read(study: AnyStudy, folder: Path) -> list[Piece[Any]]:
    """Read the pieces of a study.

    Args:
        study: The study.
        folder: Where its records are.

    Returns:
        The pieces in the order of the file; none if there is no file.

    Raises:
        ValueError: If the file holds something else.
    """
    path = folder / f"{study.name}.json"
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text())
        return [_piece(study, piece) for piece in found]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(
            f"{path} does not hold records of the study {study.name}: remove it, or choose another --out."
        ) from None


def write(study: AnyStudy, folder: Path, pieces: Iterable[Piece[Any]]) -> None:
    """Replace the file with the records of a study, whole or not at all.

    Args:
        study: The study.
        folder: Where its records are.
        pieces: What to store, in this order.
    """
    described = [asdict(piece) for piece in pieces]
    for piece in described:
        if piece["confirmed"] is None:
            del piece["confirmed"]
    write_json(folder / f"{study.name}.json", described)


def records(pieces: Iterable[Piece[Record]]) -> list[Record]:
    """List the records of all pieces."""
    return [record for piece in pieces for record in piece.records]


@functools.cache
def current_version() -> str:
    """Version of the package in this repository; what is installed may be older."""
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return version


def select(found: Sequence[Record], **fields: Any) -> list[Record]:
    """Keep the records whose fields have the given values, or one of them where a list is given."""
    return [
        record
        for record in found
        if all(
            (getattr(record, name) in value) if isinstance(value, list) else getattr(record, name) == value
            for name, value in fields.items()
        )
    ]


def _piece(study: AnyStudy, found: dict[str, Any]) -> Piece[Any]:
    made = tuple(_decoded(study.record, record) for record in found["records"])
    confirmed = Confirmation(**found["confirmed"]) if "confirmed" in found else None
    return Piece(**{**found, "records": made, "confirmed": confirmed})


def _decoded(kind: Any, value: Any) -> Any:
    """Give what JSON holds the type that a dataclass declares: tuples, nested records, optional values."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{name: _decoded(hints[name], item) for name, item in value.items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _decoded(next(a for a in arguments if a is not type(None)), value)
    if origin is tuple:
        inner = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_decoded(a, item) for a, item in zip(inner, value, strict=True))
    if origin is dict:
        return {name: _decoded(arguments[1], item) for name, item in value.items()}
    return value
