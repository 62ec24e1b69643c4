"""Dataclasses as JSON, and back: what is read has the types that were promised, or a ValueError says where."""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

Record = TypeVar("Record")

LARGEST = 2**1023
"""Integers from here on are stored as hexadecimal text: no float holds them, and many JSON readers use floats."""

INFINITIES = ("inf", "-inf")
"""Texts that stand for infinite numbers."""

WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "null"}
"""What JSON calls the plain types."""


def to_json(value: Any) -> Any:
    """Turn a record into what `json.dumps` takes.

    Fields that do not count for equality are left out. JSON has no NaN, which becomes null, and no infinity,
    which becomes text.

    Args:
        value: A dataclass, or anything made of dataclasses, lists, tuples, dictionaries and plain values.

    Returns:
        Dictionaries, lists and plain values.

    Raises:
        TypeError: If a value inside is of any other type.
    """
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        return {name: to_json(getattr(value, name)) for name in _stored_fields(kind)}
    if isinstance(value, dict):
        return {name: to_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else repr(value)
    if isinstance(value, int) and abs(value) >= LARGEST:
        return hex(value)
    if isinstance(value, bool | int | str | None):
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def from_json(kind: type[Record], value: Any, *, extra: bool = False) -> Record:
    """Build a record from JSON that may come from anywhere.

    Args:
        kind: The dataclass to build; its annotations say what is allowed.
        value: What `json.loads` returned.
        extra: Whether the outermost object may have fields that the record lacks.

    Returns:
        The record, with tuples where it has tuples.

    Raises:
        ValueError: If a field is missing, unknown, or of another type; the message names it.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     tags: tuple[str, ...] = ()
    >>> from_json(Point, {"x": 1, "tags": ["a"]})
    Point(x=1.0, tags=('a',))
    >>> from_json(Point, {"x": "far"})
    Traceback (most recent call last):
    ValueError: x is 'far', not a number
    """
    return _read_record(kind, value, "", extra)


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_record(kind, value, where)
    if origin in (types.UnionType, typing.Union):
        return _read_union(kind, value, where)
    if origin is Literal:
        if value in arguments and type(value) in {type(choice) for choice in arguments}:
            return value
        raise _wrong(value, where, f"one of {', '.join(map(str, arguments))}")
    if origin in (tuple, list):
        if not isinstance(value, list):
            raise _wrong(value, where, "a list")
        return origin(_read(arguments[0], inner, f"{where}[{i}]") for i, inner in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise _wrong(value, where, "an object")
        return {name: _read(arguments[1], inner, f"{where}.{name}") for name, inner in value.items()}
    return _read_plain(kind, value, where)


def _read_record(kind: Any, value: Any, where: str, extra: bool = False) -> Any:
    if not isinstance(value, dict):
        raise _wrong(value, where, "an object")
    fields = _stored_fields(kind)
    unknown = None if extra else next((name for name in value if name not in fields), None)
    if unknown is not None:
        raise ValueError(f"{_join(where, unknown)} is unknown")
    missing = next((name for name, (_, needed) in fields.items() if needed and name not in value), None)
    if missing is not None:
        raise ValueError(f"{_join(where, missing)} is missing")
    return kind(**{n: _read(fields[n][0], v, _join(where, n)) for n, v in value.items() if n in fields})


def _read_union(kind: Any, value: Any, where: str) -> Any:
    members = typing.get_args(kind)
    if value is None and type(None) in members:
        return None
    faults = []
    for member in members:
        try:
            return _read(member, value, where)
        except ValueError as error:
            faults.append((member, error))
    # Of a list or an object, the fault inside says more than its type.
    inside = [error for member, error in faults if _word(member) == _word(type(value))]
    raise inside[0] if inside else _wrong(value, where, " or ".join(map(_word, members)))


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    if kind is float and value is None:
        return math.nan
    if kind is float and value in INFINITIES:
        return float(value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST:
        return float(value)
    if kind is int and isinstance(value, str) and value.startswith("0x"):
        try:
            return int(value, 16)
        except ValueError:
            raise _wrong(value, where, WORDS[int]) from None
    if kind in WORDS and kind is not float and type(value) is kind:
        return value
    raise _wrong(value, where, _word(kind))


@functools.cache
def _stored_fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Map the name of every stored field to its type, and to whether it has to be there."""
    hints = typing.get_type_hints(kind)
    nothing = dataclasses.MISSING
    return {
        field.name: (hints[field.name], field.default is nothing and field.default_factory is nothing)
        for field in _compared_fields(kind)
    }


def _compared_fields(kind: Any) -> Iterator["dataclasses.Field[Any]"]:
    return (field for field in dataclasses.fields(kind) if field.compare)


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _word(kind: Any) -> str:
    origin = typing.get_origin(kind) or kind
    return WORDS.get(origin) or ("a list" if origin in (tuple, list) else "an object")


def _wrong(value: Any, where: str, wanted: str) -> ValueError:
    shown = repr(value)
    return ValueError(f"{where or 'the record'} is {shown[:60]}{'…' if shown[60:] else ''}, not {wanted}")
