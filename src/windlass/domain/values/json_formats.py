"""Checks texts by the `format` of a JSON Schema, for formats that stand for a type of Python."""

import base64
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.domain.values.quantities import parse_duration_ms


class _Format(NamedTuple):
    read: Callable[[str], Any]
    expected: str


def _duration(text: str) -> Any:
    if text.startswith(("P", "-P")):
        return msgspec.convert(text, timedelta)
    return parse_duration_ms(text)


def _number(text: str) -> None:
    if Decimal(text).is_nan():
        raise ValueError(text)


_FORMATS: Final[Mapping[str, _Format]] = {
    "date": _Format(date.fromisoformat, "a date such as 2026-01-31"),
    "date-time": _Format(datetime.fromisoformat, "a time such as 2026-01-31T08:00:00Z"),
    "time": _Format(time.fromisoformat, "a time of day such as 08:30"),
    "duration": _Format(_duration, "a duration such as 15m or PT900S"),
    "uuid": _Format(UUID, "a UUID"),
    "decimal": _Format(_number, "a number as text, such as 9.50"),
}
_BASE64: Final = _Format(lambda text: base64.b64decode(text, validate=True), "bytes as base64")


def misfit(schema: Mapping[str, Any], text: str) -> str | None:
    """Returns what a text should be by `format` or `contentEncoding`; None if it is that.

    Formats that are not known here, such as `email`, are for people.
    """
    name = schema.get("format")
    wanted = _FORMATS.get(name) if isinstance(name, str) else None
    if schema.get("contentEncoding") == "base64":
        wanted = _BASE64
    if wanted is None:
        return None
    try:
        wanted.read(text)
    except (ValueError, ArithmeticError, WindlassError, msgspec.ValidationError):
        return wanted.expected
    return None
