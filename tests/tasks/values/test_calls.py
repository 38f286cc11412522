"""Arguments travel by the parameters that they belong to, however these are written."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, TypedDict

import pytest

from windlass.domain.values.errors import InvalidInput
from windlass.tasks.values.calls import CallCodec

if TYPE_CHECKING:
    from uuid import UUID


def mixed(
    first: date,
    /,
    second: set[int],
    *rest: Decimal,
    only: timedelta | None = None,
    unknown: UUID | None = None,
    **more: frozenset[str],
) -> tuple[date, set[int]]:
    """Has a parameter of each kind."""
    return first, second


def travelled(args: tuple[Any, ...], **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    codec = CallCodec(mixed)
    return codec.decode(*codec.encode(args, kwargs))


def test_each_kind_of_parameter_takes_its_own_annotation() -> None:
    day, length = date(2026, 1, 31), timedelta(minutes=1)
    args, kwargs = travelled(
        (day, {1}, Decimal(1), Decimal(2)), only=length, other=frozenset({"a"})
    )
    assert args == [day, {1}, Decimal(1), Decimal(2)]
    assert kwargs == {"only": length, "other": frozenset({"a"})}
    assert travelled((day,), second={1}) == ([day], {"second": {1}})


def test_an_annotation_that_is_not_known_at_run_time_takes_plain_json() -> None:
    assert travelled((), unknown="a")[1] == {"unknown": "a"}
    with pytest.raises(InvalidInput, match=r"args\.unknown to be a JSON value"):
        travelled((), unknown=Decimal(1))


def test_a_result_travels_by_the_annotation_of_the_function() -> None:
    codec = CallCodec(mixed)
    result = date(2026, 1, 31), {1}
    assert codec.decode_result(codec.encode_result(result)) == result
    with pytest.raises(InvalidInput, match=r"the result of mixed\[1\] to be set\[int\]"):
        codec.encode_result((date(2026, 1, 31), [1]))


def test_durations_arrive_from_every_form_that_the_command_line_takes() -> None:
    codec = CallCodec(mixed)
    for form in ("15m", 900, 900.0, "PT900S"):
        assert codec.decode([], {"only": form})[1] == {"only": timedelta(minutes=15)}


class Whole(TypedDict):
    name: str
    since: NotRequired[date]
    until: Annotated[NotRequired[date], "exclusive"]


class Partial(Whole, total=False):
    size: Required[int]
    color: str


def takes_dicts(whole: Whole, partial: Partial) -> None:
    """Has annotations that Python keeps as text, in its own parameters and in its types."""


def test_keys_of_typed_dicts_are_required_as_they_say_also_in_annotations_that_are_text() -> None:
    codec = CallCodec(takes_dicts)
    day = date(2026, 1, 31)
    for given in (
        [{"name": "a"}, {"name": "b", "size": 1}],
        [{"name": "a", "since": day, "until": day}, {"name": "b", "size": 1, "color": "red"}],
    ):
        assert codec.decode(*codec.encode(given, {})) == (given, {})
    with pytest.raises(InvalidInput, match="whole to be Whole, got a dict without the key name"):
        codec.encode([{"since": day}], {})
    with pytest.raises(InvalidInput, match="Partial, got a dict without the key size"):
        codec.encode([{"name": "a"}, {"name": "b"}], {})
