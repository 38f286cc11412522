"""A value of a union arrives as what it was, in whichever order a process knows the members."""

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from datetime import date
from decimal import Decimal
from functools import reduce
from itertools import permutations
from operator import or_
from typing import Any

import pytest

from tests.tasks.values.kinds import Circle, Mood, Square
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.values.calls import CallCodec
from windlass.tasks.values.compile import codec_for
from windlass.tasks.values.unions import OptionalCodec, UnionCodec, same


@dataclass
class Ring:
    """Can be made from what a circle is made from."""

    size: int
    hole: int = 0


MIXED: list[tuple[tuple[Any, ...], Any]] = [
    ((str, Decimal), Decimal("1.5")),
    ((str, Decimal), "1.5"),
    ((str, date, bytes), "2026-01-31"),
    ((str, date, bytes), date(2026, 1, 31)),
    ((str, date, bytes), b"ab"),
    ((list[int], tuple[int, ...], set[int]), (1, 2)),
    ((list[int], tuple[int, ...], set[int]), [1, 2]),
    ((Circle, Square, Ring), Square(3)),
    ((Circle, Square, Ring), Ring(3)),
    ((int, float, bool), 3),
    ((Mood, None), Mood.NONE),
    ((Mood, None), None),
    ((date, None), None),
    ((date, str, None), "2026-01-31"),
    ((dict[str, str], str), {"$type": "str", "$value": "a"}),
]


@pytest.mark.parametrize(("members", "value"), MIXED, ids=str)
def test_a_value_arrives_where_the_members_have_another_order(
    members: tuple[Any, ...], value: Any
) -> None:
    orders = [reduce(or_, order) for order in permutations(members)]
    for here in orders:
        encoded = codec_for(here).encode(value)
        for there in orders:
            assert same(codec_for(there).decode(encoded), value), (here, there, encoded)


def test_only_what_another_member_could_take_for_its_own_travels_with_its_type() -> None:
    codec = codec_for(str | date)
    assert codec.encode("today") == "today"
    assert codec.encode("2026-01-31") == {"$type": "str", "$value": "2026-01-31"}
    assert codec_for(int | float).encode(3) == 3
    assert codec_for(Sequence[int]).encode([1]) == [1]


def test_one_type_or_none_takes_the_short_way() -> None:
    codec = codec_for(date | None)
    assert isinstance(codec, OptionalCodec)
    assert codec.name == "date | None"
    assert isinstance(codec_for(Mood | None), UnionCodec)  # None alone would be one of its values


def test_json_by_hand_is_read_in_the_order_that_is_written() -> None:
    assert codec_for(str | date).decode("2026-01-31") == "2026-01-31"
    assert codec_for(date | str).decode("2026-01-31") == date(2026, 1, 31)


def test_two_members_of_one_name_are_refused_where_only_the_name_tells_them_apart() -> None:
    here, there = make_dataclass("Twin", ["size"]), make_dataclass("Twin", ["size"])

    def function(it: Any) -> None:
        """Takes one of two types."""

    function.__annotations__ = {"it": here | there}
    with pytest.raises(InvalidInput, match=r"two types with the name Twin; rename one of them"):
        CallCodec(function).encode([there(1)], {})
