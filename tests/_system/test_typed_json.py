"""Records become JSON and come back, and what does not have the promised types is refused by its place."""

import json
import math
from dataclasses import dataclass, field
from typing import Literal

import pytest

from invariantnet._system.typed_json import from_json, to_json


@dataclass(frozen=True)
class Inner:
    name: str
    order: int


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    values: dict[str, float]
    choice: Literal["a", "b"]
    either: str | tuple[str | Inner, ...] | None
    labels: tuple[bool | int | float | str, ...]
    deep: Inner | None = None
    in_memory: object = field(default=None, compare=False)


GOOD = Outer(
    inner=(Inner("x", 10**400), Inner("y", -1)),
    values={"p": 0.5, "unknown": math.nan, "most": math.inf, "least": -math.inf},
    choice="b",
    either=("z", Inner("own", 1)),
    labels=(True, 1, 1.5, "one"),
    in_memory=object(),
)


def test_what_is_written_comes_back():
    text = json.dumps(to_json(GOOD), allow_nan=False)
    again = from_json(Outer, json.loads(text))
    assert math.isnan(again.values.pop("unknown"))
    assert again.values == {"p": 0.5, "most": math.inf, "least": -math.inf}
    assert again.inner == GOOD.inner
    assert [type(label) for label in again.labels] == [bool, int, float, str]
    assert (again.choice, again.either, again.labels) == (GOOD.choice, GOOD.either, GOOD.labels)
    assert again.in_memory is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"inner": 1}, "inner is 1, not a list"),
        ({"inner": [{"name": "x"}]}, r"inner\[0\].order is missing"),
        ({"inner": [{"name": "x", "order": 1, "malice": 2}]}, r"inner\[0\].malice is unknown"),
        ({"inner": [{"name": "x", "order": True}]}, r"inner\[0\].order is True, not a whole number"),
        ({"inner": [{"name": "x", "order": "0xoops"}]}, r"inner\[0\].order is '0xoops', not a whole number"),
        ({"values": {"p": "much"}}, "values.p is 'much', not a number"),
        ({"values": {"p": float("inf")}}, "values.p is inf, not a number"),
        ({"choice": "c"}, "choice is 'c', not one of a, b"),
        ({"either": 3}, "either is 3, not a text or a list or null"),
        ({"either": [{"name": 1, "order": 1}]}, r"either\[0\].name is 1, not a text"),
        ({"deep": {"name": "x", "order": None}}, "deep.order is None, not a whole number"),
        ({"labels": [[]]}, r"labels\[0\] is \[\], not true or false or a whole number"),
        ({"in_memory": 1}, "in_memory is unknown"),
    ],
)
def test_what_does_not_fit_is_named(change, fault):
    with pytest.raises(ValueError, match=fault):
        from_json(Outer, {**to_json(GOOD), **change})


def test_only_the_outermost_object_may_have_more():
    assert from_json(Inner, {"name": "x", "order": 1, "more": 2}, extra=True) == Inner("x", 1)
    with pytest.raises(ValueError, match="the record is 3, not an object"):
        from_json(Inner, 3)


def test_what_has_no_form_in_json_is_refused():
    with pytest.raises(TypeError, match="complex has no form in JSON"):
        to_json({"a": [1j]})
