"""Types of users, for values that travel."""

import enum
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Generic, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import attrs
import msgspec
import pydantic

T = TypeVar("T")
U = TypeVar("U")
UserId = NewType("UserId", int)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mood(enum.Enum):
    """One of its values is None."""

    GOOD = "good"
    NONE = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Corner(enum.Enum):
    """Its values are no JSON, so that it travels by name."""

    TOP = (0, 0)
    END = (1, 1)


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: float


class Options(TypedDict):
    name: str
    since: NotRequired[date]


@dataclass(frozen=True)
class Order:
    number: int
    placed: datetime
    items: tuple[str, ...] = ()


@dataclass
class Node:
    """Holds itself."""

    value: int
    below: "list[Node]" = field(default_factory=list)


@dataclass
class Circle:
    size: int


@dataclass
class Square:
    size: int


@dataclass
class BigCircle(Circle):
    color: str = "red"


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class Page(Generic[T]):
    items: list[T]
    next: "Page[T] | None" = None


@dataclass
class Circles(Page[Circle]):
    """Says what its base holds."""

    title: str = ""


@dataclass
class Labelled(Page[list[T]], Generic[T, U]):
    """Gives the variable of its base another meaning than its own."""

    first: T | None = None
    label: U | None = None


class Keyed(TypedDict, Generic[T]):
    key: T


class Dated(Keyed[date]):
    note: str


@dataclass
class Total:
    """Computes a field."""

    parts: list[int]
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.parts)


@dataclass
class Doubling:
    """Changes what it is given, so that it cannot be made again from its fields."""

    size: int

    def __post_init__(self) -> None:
        self.size *= 2


@attrs.define
class Account:
    _owner: str
    opened: date
    limits: set[int] = attrs.field(factory=set)


class Reading(msgspec.Struct, tag=True):
    sensor: str
    values: tuple[float, ...] = ()


class Person(pydantic.BaseModel):
    name: str
    born: date
    tags: frozenset[str] = frozenset()


class Lossy(pydantic.BaseModel):
    """Leaves a field out when it is written."""

    name: str
    secret: str = pydantic.Field(default="", exclude=True)


class Binary(pydantic.BaseModel):
    """Writes bytes as text."""

    data: bytes


class Text(str):
    """Text of a class of its own."""

    __slots__ = ()


class Opaque:
    """Cannot travel."""
