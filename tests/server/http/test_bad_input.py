"""Whatever is sent, the answer is a 4xx that says what is wrong, in the documented form."""

from typing import Final

import pytest

from tests.support.running import run
from tests.support.running_server import JSON, error_of, running_server
from windlass.server.connections import guarded_http

DEEP: Final = 50_000

SHELL: Final = b'{"jobs":[{"task":"shell","args":{"argv":["a"]},'

BODIES: Final = {
    "nothing": b"",
    "no JSON": b"{",
    "no UTF-8": b"\xff\xfe",
    "null": b"null",
    "a list": b"[]",
    "a number": b"12",
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": SHELL + b'"result":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}]}",
    "deep arguments": b'{"jobs":[{"task":"x","args":' + b"[" * DEEP + b"]" * DEEP + b"}]}",
    "half deep": b'{"a":' * DEEP,
    "no jobs": b'{"jobs":[]}',
    "NUL": b'{"jobs":[{"task":"shell","args":{"argv":["a\\u0000"]}}]}',
    "NUL in a key": SHELL + b'"labels":{"\\u0000":""}}]}',
    "lone surrogate": b'{"jobs":[{"task":"\\ud800"}]}',
    "late surrogate": b'{"jobs":[{"task":"\\udc00 and more text after it"}]}',
    "infinite": SHELL + b'"timeout":1e999}]}',
    "huge float": SHELL + b'"timeout":1e300}]}',
    "huge integer": SHELL + b'"priority":' + b"9" * 400 + b"}]}",
    "64 bits": SHELL + b'"parent":18446744073709551615}]}',
    "unknown field": b'{"jobs":[{"task":"shell","colour":"red"}]}',
    "wrong type": b'{"jobs":[{"task":["shell"]}]}',
    "long name": SHELL + b'"name":"' + b"x" * 9_999 + b'"}]}',
    "itself": SHELL + b'"name":"a","after":["a"]}]}',
}  # fmt: skip

ROUTES: Final = (
    "POST /api/v1/jobs",
    "POST /api/v1/jobs/cancel",
    "POST /api/v1/jobs/1/unblock",
    "POST /api/v1/jobs/1/priority",
    "POST /api/v1/workers/enrol",
    "PATCH /api/v1/workers/1/static",
    "PUT /api/v1/workers/1/static",
    "POST /api/v1/tokens",
    "POST /api/v1/codes",
    "PUT /api/v1/names/x",
)

TARGETS: Final = (
    "/api/v1/jobs?state=nope",
    "/api/v1/jobs?limit=0",
    "/api/v1/jobs?limit=1001",
    "/api/v1/jobs?limit=many",
    "/api/v1/jobs?limit=99999999999999999999999",
    "/api/v1/jobs?after=-1",
    "/api/v1/jobs?after=x",
    "/api/v1/jobs?label=x",
    "/api/v1/jobs?dead=perhaps",
    "/api/v1/jobs?workflow=0",
    "/api/v1/jobs/0",
    "/api/v1/jobs/-1",
    "/api/v1/jobs/99999999999999999999999999",
    "/api/v1/jobs/1/wait?timeout=nan",
    "/api/v1/jobs/1/wait?timeout=-1",
    "/api/v1/jobs/1/wait?timeout=1e9",
    "/api/v1/jobs/1/log?offset=-1",
    "/api/v1/jobs/1/log?limit=99999999999",
    "/api/v1/jobs/1/log?attempt=0",
    "/api/v1/jobs/1/log?attempt=2147483648",
    "/api/v1/events?after=-1",
    "/api/v1/events?after=999999999999999999999",
)


@pytest.mark.parametrize("route", ROUTES)
def test_no_body_breaks_a_route(route: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            method, path = route.split()
            for name, body in BODIES.items():
                reply = await server.admin.request(method, path, content=body, headers=JSON)
                assert reply.status_code < 500, (name, reply.text)
                if route == ROUTES[0] or reply.status_code >= 400:
                    assert reply.status_code >= 400, (name, reply.text)
                    assert error_of(reply).get("field") or reply.status_code == 404, name

    run(scenario())


def test_a_body_over_the_limit_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_http, "LINGER_SECONDS", 60.0)  # client and server share a loop

    async def scenario() -> None:
        async with running_server() as server:
            limit = server.services.engine.config.batch_bytes * 8
            blank = b" " * (limit + 1)
            reply = await server.admin.post("/api/v1/jobs", content=blank, headers=JSON)
            assert reply.status_code == 413
            error = error_of(reply)
            assert (error["code"], error["field"]) == ("too_large", "body")
            assert str(limit) in error["expected"]

    run(scenario())


def test_misfits_in_the_address_name_their_field() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.submit()
            for target in TARGETS:
                reply = await server.admin.get(target)
                assert reply.status_code in (400, 422), (target, reply.text)
                error = error_of(reply)
                assert error["code"] == "invalid_input", target
                assert error["field"], target
            for target in (
                "/api/v1/jobs/x", "/nothing.js", "/api/v1/nothing",
                "/api/v1/jobs/1/artifacts/%00",
            ):  # fmt: skip
                reply = await server.admin.get(target)
                assert (reply.status_code, error_of(reply)["code"]) == (404, "not_found"), target
            lost = await server.admin.get("/api/v1/jbos")
            assert error_of(lost)["message"].startswith("there is no GET /api/v1/jbos: ")
            for target in ("/api/v1/jobs?queue=%00", "/api/v1/jobs?name=%ff"):
                assert (await server.admin.get(target)).status_code in (200, 422)
            reply = await server.admin.delete("/api/v1/jobs")
            assert (reply.status_code, error_of(reply)["code"]) == (405, "method_not_allowed")

    run(scenario())
