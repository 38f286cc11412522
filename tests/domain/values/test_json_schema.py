"""The part of JSON Schema that answers to questions are checked with."""

from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import msgspec
import pytest

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.json_schema import check_schema, find_mismatch


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Parcel:
    size: Size
    weight: float
    note: str | None = None


@dataclass
class Delivery:
    parcels: list[Parcel]
    kind: Literal["fast", "cheap"] = "cheap"


FITS: list[tuple[Any, Any]] = [
    (bool, True),
    (int, 3),
    (int, 3.0),
    (float, 3),
    (str, ""),
    (int | None, None),
    (dict[str, int], {"a": 1}),
    (tuple[int, str], [1, "a"]),
    (Delivery, {"parcels": [{"size": "s", "weight": 1}], "kind": "fast"}),
    (Delivery, {"parcels": []}),
    (date, "2026-01-31"),
    (time, "08:30"),
    (timedelta, "PT15M"),
    (timedelta, "15m"),
    (UUID, "12345678-1234-5678-1234-567812345678"),
    (Decimal, "-9.50"),
    (bytes, "YWI="),
    (set[int], [1, 2]),
]
WRONG: list[tuple[Any, Any, str, str]] = [
    (bool, 1, "answer", "true or false"),
    (bool, "yes", "answer", "true or false"),
    (int, True, "answer", "a whole number"),
    (int, 2.5, "answer", "a whole number"),
    (str, None, "answer", "a text"),
    (int | None, "x", "answer", "a whole number or null"),
    (list[int], [1, "x"], "answer[1]", "a whole number"),
    (dict[str, int], {"a": "x"}, "answer.a", "a whole number"),
    (Size, "m", "answer", "one of 'l', 's'"),
    (Parcel, {"size": "s"}, "answer.weight", "a value"),
    (Delivery, {"parcels": [{"size": "x", "weight": 1}]}, "answer.parcels[0].size", "one of"),
    ({"type": "object", "additionalProperties": False}, {"a": 1}, "answer.a", "fields none"),
    ({"minimum": 3}, 2, "answer", "at least 3"),
    ({"maxLength": 1}, "ab", "answer", "at most 1 characters"),
    ({"const": 1}, True, "answer", "1"),
    (date, "tomorrow", "answer", "a date such as 2026-01-31"),
    (date | None, "2026-13-01", "answer", "a date such as 2026-01-31 or null"),
    ({"format": "date-time"}, "2026-01-31T25:00", "answer", "a time such as"),
    ({"format": "time"}, "late", "answer", "a time of day"),
    (timedelta, "soon", "answer", "a duration such as 15m"),
    (timedelta, "P1X", "answer", "a duration such as 15m"),
    (UUID, "12", "answer", "a UUID"),
    (list[Decimal], ["1", "NaN"], "answer[1]", "a number as text"),
    (Decimal, "1,5", "answer", "a number as text"),
    (bytes, "*", "answer", "bytes as base64"),
    (set[int], [1, 1], "answer", "a list without duplicates"),
]


@pytest.mark.parametrize(("kind", "value"), FITS)
def test_a_value_of_the_type_fits_its_schema(kind: Any, value: Any) -> None:
    schema = msgspec.json.schema(kind)
    check_schema(schema)
    assert find_mismatch(schema, value, "answer") is None


@pytest.mark.parametrize(("kind", "value", "field", "expected"), WRONG)
def test_a_mismatch_names_the_place_and_what_was_expected(
    kind: Any, value: Any, field: str, expected: str
) -> None:
    schema = kind if isinstance(kind, dict) else msgspec.json.schema(kind)
    check_schema(schema)
    found = find_mismatch(schema, value, "answer")
    assert found is not None
    assert (found.field, expected in found.expected) == (field, True)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "a+"},
        {"type": "date"},
        {"type": [["string"]]},
        {"properties": []},
        {"required": [[]]},
        {"minimum": "1"},
        {"$ref": "http://elsewhere/"},
        {"items": {"oneOf": []}},
        {"contentEncoding": "quoted-printable"},
        "string",
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidInput, match="schema"):
        check_schema(schema)


def test_a_schema_that_branches_without_end_takes_a_bounded_time() -> None:
    again = {"$ref": "#/$defs/a"}
    schema = {**again, "$defs": {"a": {"anyOf": [again, again]}}}
    check_schema(schema)
    found = find_mismatch(schema, 1, "answer")
    assert found is not None
    assert "few steps" in found.expected


def test_alternatives_inside_alternatives_are_listed_once() -> None:
    either = {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/inner"}]}
    inner = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    found = find_mismatch({**either, "$defs": {"inner": inner}}, None, "answer")
    assert found is not None
    assert found.expected == "a whole number or a text"
