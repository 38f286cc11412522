"""Values come back as they were sent: equal, and of the same types."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Union
from uuid import UUID
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from tests.tasks.values.kinds import (
    Account,
    Box,
    Circle,
    Circles,
    Color,
    Corner,
    Dated,
    Labelled,
    Level,
    Node,
    Options,
    Order,
    Page,
    Person,
    Point,
    Reading,
    Rights,
    Square,
    Total,
    UserId,
)
from windlass.tasks.values.compile import codec_for
from windlass.tasks.values.unions import same

BERLIN = ZoneInfo("Europe/Berlin")
TWICE = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)  # this time of day comes twice


def travelled(annotation: Any, value: Any) -> Any:
    """Returns what arrives: encoded, written, stored in order, read and decoded."""
    codec = codec_for(annotation)
    written = msgspec.json.encode(codec.encode(value), order="deterministic")
    return codec.decode(msgspec.json.decode(written))


EXAMPLES: list[tuple[Any, Any]] = [
    (Order, Order(1, datetime(2026, 1, 31, 8, tzinfo=UTC), ("a",))),
    (Node, Node(1, [Node(2), Node(3, [Node(4)])])),
    (Circle | Square, Square(3)),
    (Circle | Square, Circle(3)),
    (Box[date], Box(date(2026, 1, 31))),
    (list[Box[UUID]] | None, [Box(UUID(int=7))]),
    (Page[Circle], Page([Circle(1)], Page([Circle(2)]))),
    (Page[Box[date]], Page([Box(date(2026, 1, 31))])),
    (Circles, Circles([Circle(1)], title="a")),
    (Labelled[Circle, date], Labelled([[Circle(1)]], None, Circle(2), date(2026, 1, 31))),
    (Dated, {"key": date(2026, 1, 31), "note": "a"}),
    (Total, Total([1, 2])),
    (Account, Account("a", date(2026, 1, 31), {1, 2})),
    (Reading, Reading("a", (1.0, 2.5))),
    (Reading | Circle, Reading("a")),
    (Person, Person(name="a", born=date(2000, 1, 1), tags=frozenset({"x"}))),
    (dict[str, Person], {"a": Person(name="a", born=date(2000, 1, 1))}),
    (Point, Point(1, 2.0)),
    (Options, {"name": "a", "since": date(2026, 1, 31)}),
    (Options, {"name": "a"}),
    (Color, Color.RED),
    (Level, Level.HIGH),
    (Corner, Corner.END),
    (Rights, Rights.READ | Rights.WRITE),
    (dict[Color, int], {Color.BLUE: 1}),
    (dict[int, str], {1: "a", -2: "b"}),
    (dict[Order, int], {Order(1, datetime(2026, 1, 31, 8, tzinfo=UTC)): 1}),
    (dict[tuple[int, str], bytes], {(1, "a"): b"\x00"}),
    (dict[date, int], {date(2026, 1, 31): 1}),
    (datetime, TWICE),
    (datetime, TWICE.replace(fold=1)),
    (datetime, TWICE.replace(tzinfo=None)),
    (time, time(8, 30, tzinfo=UTC)),
    (str | date, "2026-01-31"),
    (str | date, date(2026, 1, 31)),
    (bytes | str, "YWI="),
    (int | float, 3),
    (float | int, 3),
    (int | str | None, None),
    (bool | int, True),
    (int, True),
    (Sequence[int], (1, 2)),
    (Sequence[int], [1, 2]),
    (Mapping[str, int], {"a": 1}),
    (Literal["a", 1, True], True),
    (Annotated[int, "of no effect"], 3),
    (UserId, UserId(3)),
    (Decimal, Decimal("1.10")),
    (Any, {"$result": {"$literal": [1]}}),
    (Any, {"$file": 1}),
    (dict[str, int], {"$result": 5}),
    (tuple[()], ()),
    (tuple, (1, "a")),
    (bytearray, bytearray(b"a")),
]


@pytest.mark.parametrize(("annotation", "value"), EXAMPLES, ids=lambda item: str(item)[:40])
def test_a_value_arrives_as_annotated(annotation: Any, value: Any) -> None:
    assert same(travelled(annotation, value), value)


def test_a_generic_class_without_its_types_does_not_spoil_the_one_with_them() -> None:
    plain: Page[Any] = Page([1])
    assert travelled(Page, plain) == plain
    assert travelled(Page[Circle], Page([Circle(1)])) == Page([Circle(1)])


_numbers = st.floats(allow_nan=False, allow_infinity=False)
_moments = st.datetimes(timezones=st.sampled_from([None, UTC, BERLIN]), allow_imaginary=False)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    None: st.none(),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**64 - 1),
    float: _numbers,
    str: st.text(),
    bytes: st.binary(),
    datetime: _moments,
    date: st.dates(),
    time: st.times(),
    timedelta: st.timedeltas(),
    UUID: st.uuids(),
    Decimal: st.decimals(allow_nan=False),
    Color: st.sampled_from(Color),
    Corner: st.sampled_from(Corner),
    Point: st.builds(Point, st.integers(0, 9), _numbers),
    Circle: st.builds(Circle, st.integers(0, 9)),
    Square: st.builds(Square, st.integers(0, 9)),
}
_plain = st.recursive(
    st.none() | st.booleans() | SCALARS[int] | _numbers | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "$result", "$literal", "$type", "$value"]), inner)
    ),
    max_leaves=6,
)
Made = tuple[Any, st.SearchStrategy[Any]]  # an annotation, and how its values are made
_scalars = st.sampled_from(list(SCALARS.items()))
_keys = st.sampled_from([(kind, SCALARS[kind]) for kind in (str, int, UUID, date, Color, bytes)])


def _of(origin: Any, *arguments: Any) -> Any:
    return origin[arguments if len(arguments) > 1 else arguments[0]]


def _few(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, max_size=3)


def _containers(inner: st.SearchStrategy[Made]) -> st.SearchStrategy[Made]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        inner.map(lambda a: (_of(list, a[0]), _few(a[1]))),
        inner.map(lambda a: (_of(tuple, a[0], ...), _few(a[1]).map(tuple))),
        inner.map(lambda a: (_of(Sequence, a[0]), _few(a[1]) | _few(a[1]).map(tuple))),
        inner.map(lambda a: (_of(Box, a[0]), a[1].map(Box))),
        pairs.map(lambda p: (_of(tuple, p[0][0], p[1][0]), st.tuples(p[0][1], p[1][1]))),
        pairs.map(lambda p: (_of(Union, p[0][0], p[1][0]), p[0][1] | p[1][1])),
        _keys.map(lambda a: (_of(set, a[0]), _few(a[1]).map(set))),
        _keys.map(lambda a: (_of(frozenset, a[0]), _few(a[1]).map(frozenset))),
        st.tuples(_keys, inner).map(
            lambda p: (
                _of(dict, p[0][0], p[1][0]),
                st.dictionaries(p[0][1], p[1][1], max_size=3),
            )
        ),
    )


_annotated = st.recursive(_scalars | st.just((Any, _plain)), _containers, max_leaves=4)


@given(st.data())
def test_generated_values_of_generated_annotations_arrive_as_they_were(data: st.DataObject) -> None:
    annotation, values = data.draw(_annotated)
    value = data.draw(values)
    assert same(travelled(annotation, value), value)
