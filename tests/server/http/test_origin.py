"""Pages of other sites change nothing, not even with a name that leads here (DNS rebinding)."""

import socket
from typing import Final

import pytest

from tests.support.running import run
from tests.support.running_server import JSON, RunningServer, running_server
from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.config import Config
from windlass.operations.dispatch.errors import Forbidden
from windlass.server.app import ROUTES
from windlass.server.http.authentication import SAFE_METHODS, Hosts, came_by_https

EVIL: Final = "evil.example"


def headers(host: str, **others: str) -> dict[bytes, bytes]:
    named = {"host": host, **{name.replace("_", "-"): text for name, text in others.items()}}
    return {name.encode(): text.encode() for name, text in named.items()}


ON_LOOPBACK: Final = Hosts(())
EXPOSED: Final = Hosts((), exposed=True)
NAMED: Final = Hosts(["jobs.example"], exposed=True)


@pytest.mark.parametrize(
    ("hosts", "sent"),
    [
        (ON_LOOPBACK, headers("localhost:7420")),
        (ON_LOOPBACK, headers("127.0.0.1:7420", origin="http://127.0.0.1:7420")),
        (ON_LOOPBACK, headers("[::1]:7420")),
        (EXPOSED, headers("any.example")),  # a program: browsers always say where a page is from
        (EXPOSED, headers("10.0.0.5:7420", origin="http://10.0.0.5:7420")),
        (EXPOSED, headers(socket.gethostname())),
        (NAMED, headers("jobs.example")),
        (NAMED, headers("jobs.example", origin="https://jobs.example", sec_fetch_site="none")),
        (NAMED, headers("localhost:7420")),
    ],
)  # fmt: skip
def test_a_server_is_known_by_its_names(hosts: Hosts, sent: dict[bytes, bytes]) -> None:
    hosts.check(sent)
    with pytest.raises(Forbidden):
        hosts.check({**sent, b"origin": b"https://evil.example"})


def test_a_page_that_came_by_http_is_not_one_of_a_server_that_is_called_by_https() -> None:
    for scope, sent in (
        ({"scheme": "https"}, headers("jobs.example")),
        ({"scheme": "http"}, headers("jobs.example", x_forwarded_proto="https")),
    ):
        secure = came_by_https(scope, sent)
        NAMED.check({**sent, b"origin": b"https://jobs.example"}, secure)
        with pytest.raises(Forbidden):
            NAMED.check({**sent, b"origin": b"http://jobs.example"}, secure)


@pytest.mark.parametrize(
    ("hosts", "sent"),
    [
        (ON_LOOPBACK, headers(EVIL)),
        (ON_LOOPBACK, headers("")),
        (ON_LOOPBACK, headers("10.0.0.5")),
        (ON_LOOPBACK, headers("localhost", origin="null")),
        (ON_LOOPBACK, headers("localhost", origin="http://[")),
        (ON_LOOPBACK, headers("localhost", sec_fetch_site="cross-site")),
        (ON_LOOPBACK, headers("localhost.evil.example")),
        (EXPOSED, headers(EVIL, origin=f"http://{EVIL}")),  # rebound: it is its own origin
        (EXPOSED, headers(EVIL, sec_fetch_site="same-origin")),
        (EXPOSED, headers("10.0.0.5", origin="http://10.0.0.6")),
        (NAMED, headers(EVIL)),
        (NAMED, headers("jobs.example", origin="https://jobs.example.evil.example")),
    ],
)
def test_requests_of_other_pages_are_refused(hosts: Hosts, sent: dict[bytes, bytes]) -> None:
    with pytest.raises(Forbidden):
        hosts.check(sent)


def test_every_route_that_changes_something_refuses_foreign_hosts_and_origins() -> None:
    async def refused(server: RunningServer, sent: dict[str, str]) -> None:
        for route in ROUTES:
            if route.method in SAFE_METHODS:
                continue
            path = route.path
            for kind in ("int", "str", "path"):
                while f":{kind}}}" in path:
                    start = path.index("{")
                    path = path[:start] + "1" + path[path.index("}") + 1 :]
            reply = await server.admin.request(route.method, path, headers={**JSON, **sent})
            assert (reply.status_code, route.method, route.path) == (
                403, route.method, route.path
            )  # fmt: skip

    async def scenario() -> None:
        config = Config(http=HttpLimits(host_names=("jobs.example",)))
        async with running_server(config=config) as server:
            await refused(server, {"Host": EVIL})
            await refused(server, {"Origin": f"http://{EVIL}"})
            by_http = {"Host": "jobs.example", "Origin": "http://jobs.example"}
            await refused(server, {**by_http, "X-Forwarded-Proto": "https"})
            body = {"name": "w1"}
            reply = await server.admin.post(
                "/api/v1/workers/enrol", json=body, headers={"Host": "jobs.example"}
            )
            assert reply.status_code == 200

    run(scenario())


def test_every_answer_keeps_browsers_from_guessing_keeping_and_framing_it() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit()
            paths = ("/healthz", "/nothing", "/api/v1/jobs", f"/api/v1/jobs/{number}", "/metrics")
            stranger = await server.http(None)
            for path in paths:
                for client in (server.admin, stranger):
                    answer = (await client.get(path)).headers
                    assert answer["X-Content-Type-Options"] == "nosniff"
                    assert answer["Cache-Control"] == "no-store"
                    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
            for stream in ("/api/v1/events?follow=false", "/api/v1/live?show=jobs&follow=false"):
                answer = (await server.admin.get(stream)).headers
                assert answer["X-Content-Type-Options"] == "nosniff"
                assert answer["Cache-Control"] == "no-store"
                assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]

    run(scenario())
