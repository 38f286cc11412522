"""How misfits in a request are explained."""

from typing import Any

import msgspec
import pytest

from windlass.domain.access.rights import Action
from windlass.domain.values.errors import WindlassError
from windlass.domain.values.ids import Id
from windlass.messages.jobs import JOB_FILTERS, Where
from windlass.operations.dispatch.binding import Binder, Body, explain_misfit, signature_of
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Route
from windlass.server.app import ROUTES


class Thing(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    sizes: list[int] = []
    weight: float | None = None


async def handler(
    call: Call, thing: Id, data: Body[Thing], label: list[str] | None = None, limit: Id = 10
) -> Thing:
    """Takes one argument of each kind."""
    raise NotImplementedError


BINDER = Binder(
    signature_of(Route("POST", "/things/{thing:int}", Action.CHECK_HEALTH, handler, "things"))
)
GOOD = b'{"name": "a"}'


def refusal(path: str = "1", query: bytes = b"", body: bytes = GOOD) -> tuple[str, str]:
    """Returns the field and the message of the error."""
    with pytest.raises(WindlassError) as refused:
        _ = BINDER.bind_path({"thing": path}) | BINDER.bind(query, body)
    error: dict[str, Any] = refused.value.describe()["error"]  # type: ignore[assignment]
    return error["field"], error["message"]


def test_arguments_come_from_path_query_and_body() -> None:
    assert BINDER.bind_path({"thing": "7"}) == {"thing": 7}
    assert BINDER.bind(b"label=a&label=b%20c&limit=3", GOOD) == {
        "label": ["a", "b c"],
        "limit": 3,
        "data": Thing("a"),
    }
    assert BINDER.bind(b"", GOOD) == {"label": None, "limit": 10, "data": Thing("a")}


def test_what_does_not_fit_is_named_in_plain_words() -> None:
    assert refusal(path="0") == ("thing", "expected thing to be an integer >= 1, got 0")
    assert refusal(query=b"limit=many") == ("limit", "expected limit to be an integer, got many")
    assert refusal(query=b"limits=1") == (
        "query parameter",
        "unknown query parameter limits; did you mean limit?",
    )
    assert refusal(query=b"x=1")[1] == "unknown query parameter x (expected one of label, limit)"
    assert refusal(body=b"") == ("body", "expected body to be JSON, got nothing")
    assert refusal(body=b"[]") == ("body", "expected body to be an object, got a list")
    assert refusal(body=b"{}") == ("name", "name is missing")
    assert refusal(body=b'{"name":"a","color":1}') == ("color", "color is not a known field")
    assert refusal(body=b'{"name":"a","sizes":[1,"x"]}') == (
        "sizes[1]",
        "expected sizes[1] to be an integer, got text",
    )
    assert refusal(body=b'{"name":"a","weight":"x"}') == (
        "weight",
        "expected weight to be a number or null, got text",
    )
    field, message = refusal(body=b"{")
    assert (field, message.startswith("the body is not valid JSON: ")) == ("body", True)


def test_a_list_of_jobs_takes_the_filters_that_clients_know() -> None:
    (route,) = [r for r in ROUTES if (r.method, r.path) == ("GET", "/api/v1/jobs")]
    taken = {p.name for p in signature_of(route).query}
    assert taken == {*JOB_FILTERS, "after", "limit", "as_of", "estimates"}
    with pytest.raises(WindlassError, match=r"unknown query parameter stat; did you mean state\?"):
        Binder(signature_of(route)).bind(b"stat=failed", b"")


def test_the_fields_of_a_struct_are_parameters_of_the_query() -> None:
    (route,) = [r for r in ROUTES if (r.method, r.path) == ("GET", "/api/v1/jobs")]
    bind = Binder(signature_of(route)).bind
    bound = bind(b"state=failed&state=done&workflow=7&limit=5", b"")
    assert bound["where"] == Where(state=["failed", "done"], workflow=7)
    assert (bound["limit"], "state" in bound) == (5, False)
    assert bind(b"", b"")["where"] == Where()
    with pytest.raises(WindlassError, match="workflow"):
        bind(b"workflow=x", b"")


def test_a_choice_that_there_is_not_is_answered_with_those_that_are() -> None:
    found = explain_misfit("Invalid enum value 'may be' - at `$.jobs[0].unblock`", "body", {})
    assert (found.field, found.expected) == ("jobs[0].unblock", "one of auto, manual")
    assert found.got == "may be"
