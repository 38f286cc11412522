"""What would not come back as it was is refused, with the parameter and what to write."""

import math
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.tasks.values.kinds import (
    BigCircle,
    Binary,
    Circle,
    Color,
    Doubling,
    Lossy,
    Opaque,
    Options,
    Point,
    Text,
)
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.values.calls import CallCodec


class Odd(tzinfo):
    """A timezone of somebody else."""

    def utcoffset(self, _: datetime | None, /) -> timedelta:
        return timedelta(0)

    def dst(self, _: datetime | None, /) -> None:
        return None

    def tzname(self, _: datetime | None, /) -> str:
        return "odd"


NAN = float("nan")
ODD = datetime(2026, 1, 31, tzinfo=Odd())
REFUSED: list[tuple[Any, Any, str]] = [
    # Without an annotation, only plain JSON passes.
    (Any, (1, 2), "a JSON value, got the tuple (1, 2); annotate it as tuple[…]"),
    (Any, {1, 2}, "annotate it as set[…]"),
    (Any, {1: "a"}, "a dict whose keys are text, got the key 1; annotate it"),
    (Any, {"a": [b"x"]}, "['a'][0] to be a JSON value, got the bytes b'x'; annotate it as bytes"),
    (Any, Color.RED, "annotate it as Color"),
    (Any, Circle(1), "annotate it as Circle"),
    (Any, datetime(2026, 1, 31, tzinfo=UTC), "annotate it as datetime"),
    (Any, Path("x"), "annotate it as Path"),
    (Any, Text("a"), "a JSON value, got the Text a"),
    (Any, OrderedDict(a=1), "a JSON value, got the OrderedDict"),
    (Any, ["a\ud800"], "[0] to be text without lone surrogates, got a\\ud800; decode it"),
    (str, "\udc80", "text without lone surrogates"),
    (dict[str, int], {"\udc80": 1}, "text without lone surrogates"),
    (Path, Path("/no/such"), "a file on this machine, got /no/such, which does not exist"),
    (Path, Path("/"), "a file on this machine, got /, a directory"),
    (Any, Opaque(), "use JSON values, or a dataclass"),
    # Numbers that JSON does not have, or that readers cannot be trusted with.
    (Any, NAN, "a finite number, got nan"),
    (float, math.inf, "a finite number, got inf"),
    (list[float], [1.0, NAN], "[1] to be a finite number"),
    (int, 2**64, "at most 64 bits"),
    (Any, [-(2**63) - 1], "[0] to be an int of at most 64 bits"),
    (float, 2**53 + 1, "a number that a float can hold"),
    (Decimal, Decimal("NaN"), "a number"),
    # Values that are not of the annotated type.
    (int, "1", "int, got the str 1"),
    (int, 1.0, "int, got 1.0"),
    (str, Text("a"), "str, got the Text a; make a str of it"),
    (Mapping[str, int], OrderedDict(a=1), "; make a dict of it, since its own class would be lost"),
    (Any, array("d", [1.0]), "; use its tolist()"),
    (Binary, Binary(data=b"\xff"), "; give it ConfigDict(ser_json_bytes='base64'"),
    (bool, 1, "bool, got 1"),
    (date, datetime(2026, 1, 31, tzinfo=UTC), "date, got the datetime"),
    (datetime, date(2026, 1, 31), "datetime, got the date"),
    (Circle, BigCircle(1), "Circle, got the BigCircle"),
    (list[int], (1,), "list[int], got the tuple (1,)"),
    (list[int], [1, "2"], "[1] to be int, got the str 2"),
    (tuple[int, int], (1, 2, 3), "tuple[int, int], got one of length 3"),
    (set[int], frozenset({1}), "set[int], got the frozenset"),
    (dict[int, str], {True: "a"}, "a dict whose keys are ints, got the key True"),
    (Point, (1, 2.0), "Point, got the tuple"),
    (Options, {"name": "a", "size": 1}, "Options, got a dict with the key 'size'"),
    (Options, {}, "Options, got a dict without the key name"),
    (int | str, 1.5, "int | str, got 1.5"),
    (list[int] | None, ["a"], "[0] to be int"),
    # Values that their own types do not bring back.
    (datetime, ODD, "use timezones of datetime.timezone or zoneinfo"),
    (time, time(8, tzinfo=ZoneInfo("Europe/Berlin")), "a fixed offset"),
    (Doubling, Doubling(1), "restored from its JSON, it becomes Doubling(size=4)"),
    (Lossy, Lossy(name="a", secret="b"), "restored from its JSON, it becomes"),
    # Types that cannot travel.
    (Opaque, Opaque(), "of a supported type, got Opaque; use a dataclass"),
    (Callable[[], int], len, "of a supported type"),
    (complex, 1j, "of a supported type, got complex"),
]


def taking(annotation: Any) -> CallCodec:
    """Returns the codec of a function with one parameter of this annotation."""

    def function(it: Any) -> None:
        """Takes a value."""

    function.__annotations__ = {"it": annotation, "return": annotation}
    return CallCodec(function)


@pytest.mark.parametrize(("annotation", "value", "message"), REFUSED, ids=lambda v: str(v)[:40])
def test_a_value_that_would_change_is_refused(annotation: Any, value: Any, message: str) -> None:
    codec = taking(annotation)
    with pytest.raises(InvalidInput) as refused:
        codec.encode([value], {})
    assert refused.value.message.startswith("expected args.it")
    assert message in refused.value.message
    with pytest.raises(InvalidInput, match="the result of"):
        codec.encode_result(value)


def test_advice_is_given_only_where_the_annotation_may_be_what_is_wrong() -> None:
    with pytest.raises(InvalidInput) as wrong:
        taking(int).encode(["1"], {})
    assert wrong.value.message == "expected args.it to be int, got the str 1"
    with pytest.raises(InvalidInput, match=r"; annotate it as date$"):
        taking(Any).encode([date(2026, 1, 31)], {})


def test_a_value_that_holds_itself_is_refused() -> None:
    round_: list[Any] = []
    round_.append(round_)
    with pytest.raises(InvalidInput, match="nested less deeply"):
        taking(Any).encode([round_], {})


MISFITS: list[tuple[Any, Any, str]] = [
    (int, "5", "args.it to be int, got the text '5'"),
    (int, None, "int, got None"),
    (date, "tomorrow", "date, got the text 'tomorrow'"),
    (Color, "green", "Color (red, blue), got green"),
    (Circle, {}, "Circle, got an object without the field size"),
    (Circle, {"size": 1, "name": "a"}, "Circle, got an object with the field name"),
    (Circle, {"size": "a"}, "args.it.size to be int"),
    (list[date], ["2026-01-31", 3], "args.it[1] to be date, got 3"),
    (set[int], [1, 1], "without duplicate items"),
    (dict[int, str], {"a": "b"}, "a dict whose keys are ints, got the key 'a'"),
    (bytes, "???", "bytes, got the text '???'"),
    (tuple[int, str], [1], "tuple[int, str], got [1]"),
    (int | date, "x", "int | datetime.date"),
]


@pytest.mark.parametrize(("annotation", "json", "message"), MISFITS, ids=lambda v: str(v)[:40])
def test_json_that_does_not_fit_is_refused(annotation: Any, json: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        taking(annotation).decode([json], {})
    assert message in refused.value.message
