"""The largest legal input of each route: a new route without one fails the test.

What a route reads grows with what its namespace has, so the world is large as well (`world.py`).
"""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tests.server.rights.rows import ROWS
from tests.support.forms import by_form
from tests.support.running_server import job
from windlass.domain.access.rights import Role

JOBS: Final = by_form(10_000, 250_000)  # of one submission; the long form is the limit
EXPANDED: Final = by_form(10_000, 100_000)  # jobs of one template
LONG_JOBS: Final = by_form(8, 50)
PAYLOAD: Final = 1_000_000  # bytes of one job; the limit is 1 MiB
VALUES: Final = 290_000  # in one body that is decoded in one go

Values = Mapping[str, Any]
NOTHING: Final[Values] = {}
MANY_VALUES: Final = [1] * VALUES
LONG_TEXT: Final = "x" * PAYLOAD


def nested(levels: int) -> Any:
    """A value with lists inside one another."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def chains(count: int) -> list[dict[str, Any]]:
    """Jobs in chains of a hundred."""
    return [
        job(name=f"n{n}", namespace="big", after=[f"n{n - 1}"] if n % 100 else [])
        for n in range(count)
    ]


def template(count: int) -> dict[str, Any]:
    """A template that expands to so many jobs."""
    return {"name": "t", "jobs": {"a": {"run": ["true"], "count": count}}}


def wide_template() -> dict[str, Any]:
    """A template with about as many values as a body may have, most of them deep."""
    deep = [nested(40) for _ in range(by_form(1_000, 6_000))]
    return {"name": "t", "jobs": {"a": {"task": "t", "args": {"deep": deep}}}}


class Large(NamedTuple):
    """How to call a route so that it has as much to do as it can have."""

    body: Callable[[Values], Any] = lambda _: None
    query: Values = NOTHING
    path: Values = NOTHING
    role: Role = Role.ADMIN  # other roles are of a token for the namespace `big` alone


def _large(
    body: Any = None, query: Values = NOTHING, path: Values = NOTHING, role: Role = Role.ADMIN
) -> Large:
    return Large(body if callable(body) else lambda _: body, query, path, role)


BIG: Final = {"namespace": "big"}
ATTEMPT: Final = "/api/v1/workers/{worker:int}/jobs/{job:int}/attempts/{attempt:int}"
HELD: Final = {"incarnation": "$incarnation"}


def _ids(values: Values) -> list[int]:
    return list(range(values["first"], values["first"] + values["plain"]))


# In this order: what ends or removes something comes last.
LARGE: Final[Mapping[str, tuple[Large, ...]]] = {
    "POST /api/v1/jobs": (
        _large(lambda _: {"jobs": [job(namespace="big")] * JOBS}, role=Role.SUBMITTER),
        _large(lambda _: {"jobs": chains(EXPANDED), "workflow": {"name": "w", **BIG}}),
        _large(lambda _: {"jobs": [{"task": "t", "args": {"x": MANY_VALUES}, **BIG}] * 2}),
        _large(lambda _: {"jobs": [{"task": "t", "args": {"x": LONG_TEXT}, **BIG}] * LONG_JOBS}),
        _large(lambda _: {"jobs": [{"task": "t", "args": {"x": nested(90)}, **BIG}]}),
    ),
    "PUT /api/v1/templates/{name:str}": (
        _large(lambda _: {"body": wide_template()}, BIG, {"name": "wide"}),
        _large(lambda _: {"body": template(EXPANDED)}, BIG, {"name": "many"}),
    ),
    "POST /api/v1/templates/{name:str}/preview": (
        _large({}, BIG, {"name": "many"}), _large({}, BIG, {"name": "wide"}),
    ),
    "POST /api/v1/templates/{name:str}/start": (_large({}, BIG, {"name": "many"}),),
    "GET /api/v1/templates": (_large(query=BIG),),
    "GET /api/v1/templates/{name:str}": (_large(query=BIG, path={"name": "wide"}),),
    "PUT /api/v1/schedules/{name:str}": (
        _large(
            lambda _: {"cron": "@daily", "jobs": [job(namespace="big")] * by_form(2_000, 10_000)},
            BIG, {"name": "s"},
        ),
        _large({"cron": "@daily", "template": "many"}, BIG, {"name": "many"}),
    ),
    "POST /api/v1/schedules/{name:str}/run": (_large(query=BIG, path={"name": "many"}),),
    "POST /api/v1/jobs/preview": (
        _large(lambda _: {"job": {"task": "t", "args": {"x": MANY_VALUES}}}),
    ),
    "GET /api/v1/events": (_large(query={"follow": "false", "after": 0}),),
    "GET /api/v1/jobs": (
        _large(query={"limit": 1_000, **BIG}),
        _large(query={"limit": 1_000, "text": "nowhere", **BIG}),
        _large(query={"limit": 1_000, "regex": "(a|b)*z.*nowhere", **BIG}),
        _large(query={"limit": 1_000, "estimates": "true", **BIG}),
        _large(query={"limit": 1_000, "as_of": "1s", **BIG}),
    ),
    "GET /api/v1/jobs/count": (_large(query={"text": "nowhere", **BIG}),),
    "GET /api/v1/jobs/some": (_large(query={"id": list(range(1, 201))}),),
    "POST /api/v1/jobs/wait": (
        _large(lambda values: {"ids": _ids(values)[:10_000], "timeout": 0, "until": "any"}),
    ),
    "POST /api/v1/jobs/bulk/preview": (_large({"action": "cancel", "where": BIG}),),
    f"POST {ATTEMPT}/jobs": (
        _large(
            lambda _: {"jobs": [job()] * by_form(5_000, 50_000), "key": "children"},
            HELD,
        ),
    ),
    f"POST {ATTEMPT}/steps": (
        _large(lambda _: {"do": "store", "key": "k", "value": MANY_VALUES[:100_000]}, HELD),
    ),
    f"POST {ATTEMPT}/progress": (_large({"progress": 1, "message": "x" * 200}, HELD),),
    f"POST {ATTEMPT}/log": (_large(b"line\n" * 200_000, {**HELD, "offset": 0}),),
    "POST /api/v1/signals": (
        _large(lambda _: {"name": "go", "payload": MANY_VALUES[:100_000], **BIG}),
    ),
    "GET /openapi.json": (_large(),),
    "POST /api/v1/verify": (_large(),),
    "POST /api/v1/jobs/bulk": (
        _large({"action": "prioritize", "adjustment": 1, "where": BIG}),
        _large({"action": "cancel", "where": {"queue": "default", **BIG}}),
    ),
    "POST /api/v1/workflows/{workflow:int}/cancel": (_large({}),),
    "POST /api/v1/workflows/{workflow:int}/retry": (_large({}),),
    "POST /api/v1/jobs/cancel": (
        _large(lambda values: {"ids": _ids(values)}, role=Role.SUBMITTER),
        _large(lambda values: {"ids": _ids(values)}),  # all of which have ended
    ),
    "POST /api/v1/jobs/delete": (
        _large(lambda values: {"ids": _ids(values)}, role=Role.OPERATOR),
    ),
}  # fmt: skip

# These take a name, a number or a page; they meet the large world with the rows of the rights.
BOUNDED: Final = {row.route: row for row in reversed(ROWS) if not LARGE.get(row.route)}


def encoded(body: Any) -> io.BytesIO | None:
    """The body as it is sent."""
    if body is None:
        return None
    return io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
