"""Which kinds of values msgspec brings back by itself, beside our codecs (decision 051).

Run it with `python -m benchmarks.values`. A value comes back if its type and what it prints are the
same; others must be refused, as a changed value is worse than an error.
"""

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Final, Generic, Literal, NamedTuple, Optional, TypedDict, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pydantic

from windlass.tasks.values.compile import codec_for

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "r"


class Pair(enum.Enum):
    A = (1, 2)


class Bits(enum.Flag):
    A = 1
    B = 2


class Point(NamedTuple):
    x: int
    y: int


class Order(TypedDict):
    number: int


@dataclass
class Visit:
    at: datetime


@dataclass
class Page(Generic[T]):
    items: list[T]


@dataclass
class Dates(Page[date]):
    name: str


@dataclass
class Tree:
    left: Optional["Tree"]


@dataclass
class Counting:
    number: int

    def __post_init__(self) -> None:
        self.number += 1


class Model(pydantic.BaseModel):
    when: date


DAY: Final = date(2026, 1, 31)
SECOND_HOUR: Final = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))

COMES_BACK: Final[Sequence[tuple[Any, Any]]] = (
    (int, 1), (bool, True), (float, 1.5), (str, "a"), (None, None), (bytes, b"a"),
    (datetime, datetime(2026, 1, 1)), (datetime, datetime(2026, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
    (datetime, SECOND_HOUR), (date, DAY), (time, time(1, 2)), (timedelta, timedelta(days=-1)),
    (UUID, UUID(int=5)), (Decimal, Decimal("1.50")), (PurePosixPath, PurePosixPath("/a")),
    (Colour, Colour.RED), (Pair, Pair.A), (Bits, Bits.A | Bits.B), (Literal["a", 1], 1),
    (list[int], [1]), (tuple[int, str], (1, "a")), (tuple[int, ...], (1, 2)), (set[date], {DAY}),
    (frozenset[str], frozenset("a")), (dict[int, str], {1: "a"}), (dict[date, int], {DAY: 2}),
    (dict[tuple[int, int], int], {(1, 2): 3}), (dict[bool, int], {True: 1}),
    (Order, {"number": 1}), (Point, Point(1, 2)), (Visit, Visit(SECOND_HOUR)),
    (Dates, Dates([DAY], "a")), (Page[date], Page([DAY])), (Tree, Tree(Tree(None))),
    (Model, Model(when=DAY)), (date | None, DAY), (str | date, DAY), (date | str, "2026-01-31"),
    (Visit | Point, Point(1, 2)), (list[int] | set[int], {1}), (bytes | str, b"a"),
    (Sequence[int], (1, 2)), (Mapping[str, int], {"a": 1}), (Any, {"a": [1, None]}),
)  # fmt: skip
CANNOT: Final[Sequence[tuple[Any, Any]]] = (
    (float, math.nan), (float, 2**60 + 1), (int, 2**70), (int, "1"), (list[int], (1,)),
    (Any, (1, 2)), (Any, {1: 2}), (Any, DAY), (Any, object()), (Counting, Counting(1)),
)  # fmt: skip


def by_msgspec(annotation: Any, value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=annotation)


def by_codecs(annotation: Any, value: Any) -> Any:
    codec = codec_for(annotation)
    return codec.decode(msgspec.json.decode(msgspec.json.encode(codec.encode(value))))


def outcome(way: Callable[[Any, Any], Any], annotation: Any, value: Any) -> str:
    try:
        found = way(annotation, value)
    except Exception:  # msgspec, pydantic and codecs raise errors of their own
        return "refused"
    same = type(found) is type(value) and repr(found) == repr(value)
    return "same" if same else "changed"


def main() -> None:
    for name, way in (("msgspec", by_msgspec), ("codecs", by_codecs)):
        came = [outcome(way, *pair) for pair in COMES_BACK]
        others = [outcome(way, *pair) for pair in CANNOT]
        print(
            f"{name}: of {len(came)} values {came.count('same')} came back, "
            f"{came.count('refused')} were refused, {came.count('changed')} changed; "
            f"of {len(others)} that cannot come back {others.count('changed')} were changed"
        )


if __name__ == "__main__":
    main()
