"""What people are told to answer follows from a type, and an answer becomes a value of it."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pydantic
import pytest

from tests.tasks.values.kinds import Account, Circle, Color, Opaque, Person, Rights
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.json_schema import check_schema, find_mismatch
from windlass.tasks.values.schema import answer_schema, read_answer


class Ticket(pydantic.BaseModel):
    """Has rules that only itself can check."""

    code: Annotated[str, pydantic.Field(pattern="^[A-Z]+$")]
    above: "Ticket | None" = None


ANSWERS: list[tuple[Any, Any, Any, Any]] = [
    (bool, True, True, "yes"),
    (date, "2026-01-31", date(2026, 1, 31), "tomorrow"),
    (datetime, "2026-01-31T08:00:00Z", datetime(2026, 1, 31, 8, tzinfo=UTC), "tomorrow"),
    (timedelta | None, "15m", timedelta(minutes=15), "soon"),
    (Decimal, "9.50", Decimal("9.50"), "much"),
    (Color, "red", Color.RED, "green"),
    (Circle, {"size": 1}, Circle(1), {"size": "1"}),
    (Account, {"_owner": "a", "opened": "2026-01-31"}, Account("a", date(2026, 1, 31)), {}),
    (Person, {"name": "a", "born": "2000-01-01"}, Person(name="a", born=date(2000, 1, 1)), {}),
    (list[Person], [], [], [{"name": "a"}]),
    (Ticket, {"code": "A", "above": {"code": "B"}}, Ticket(code="A", above=Ticket(code="B")), {}),
    (dict[str, Circle], {"a": {"size": 1}}, {"a": Circle(1)}, {"a": 1}),
]


@pytest.mark.parametrize(("kind", "answer", "value", "wrong"), ANSWERS, ids=str)
def test_an_answer_that_fits_becomes_a_value_and_another_is_refused(
    kind: Any, answer: Any, value: Any, wrong: Any
) -> None:
    schema = answer_schema(kind)
    check_schema(schema)
    assert find_mismatch(schema, answer, "answer") is None
    assert read_answer(kind, answer) == value
    assert find_mismatch(schema, wrong, "answer") is not None


def test_what_only_the_type_can_check_is_checked_when_the_answer_is_read() -> None:
    wrong = {"code": "lower"}
    assert find_mismatch(answer_schema(Ticket), wrong, "answer") is None
    with pytest.raises(InvalidInput, match="expected answer to be Ticket, got 1 validation error"):
        read_answer(Ticket, wrong)
    with pytest.raises(
        InvalidInput, match=r"answer to be Circle, got an object with the field colour"
    ):
        read_answer(Circle, {"size": 1, "colour": "red"})


def test_a_type_whose_values_cannot_travel_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"schema to be a type such as bool.*, got Opaque"):
        answer_schema(Opaque)
    assert answer_schema(Any) == {"title": "Any"} or answer_schema(Any) == {}
    assert read_answer(Rights, 3) == Rights.READ | Rights.WRITE
