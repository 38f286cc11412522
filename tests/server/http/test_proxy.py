"""The dashboard in an application of a user that passes the API on to a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, running_server
from windlass import dashboard
from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.access.rights import Role
from windlass.server.serve import Listen, Serving, address_of, bind


@asynccontextmanager
async def application(server: str) -> AsyncIterator[httpx.AsyncClient]:
    """An application that has the dashboard below `/ops`; a client of it."""
    listen = Listen(port=0)
    bound = bind(listen)
    app: Any = Starlette(routes=[Mount("/ops", app=dashboard.app(server))])
    serving = Serving(app, listen, bound, lambda: None, HttpLimits(), lambda _: None)
    serving.start()
    try:
        address = address_of(listen, bound)
        async with httpx.AsyncClient(base_url=address, timeout=30) as user:
            yield user
    finally:
        await serving.stop()
        bound.close()


async def sign_in(user: httpx.AsyncClient, server: RunningServer) -> httpx.Response:
    token = await server.token(Role.OPERATOR)
    return await user.post(
        "/ops/auth/session", json={"token": token}, headers={"Origin": str(user.base_url)}
    )


def test_people_sign_in_and_work_on_the_page_of_an_application() -> None:
    async def scenario() -> None:
        async with running_server() as server, application(server.address) as user:
            page = await user.get("/ops/jobs", headers={"Accept": "text/html"})
            assert page.headers["content-security-policy"].startswith("default-src 'none'")
            assert (await user.get("/ops/api/v1/jobs")).status_code == 401
            signed_in = await sign_in(user, server)
            assert signed_in.status_code == 201, signed_in.text
            made = await user.post(
                "/ops/api/v1/jobs",
                json={"jobs": [{"task": "shell", "args": {"argv": ["true"]}, "name": "a/b c%"}]},
                headers={"Origin": str(user.base_url)},
            )
            assert made.status_code == 201, made.text
            number = made.json()["ids"][0]
            found = await user.get("/ops/api/v1/jobs", params={"text": "a/b c%"})
            assert [job["id"] for job in found.json()["jobs"]] == [number]
            missing = await user.get(f"/ops/api/v1/jobs/{number}/artifacts/a%2Fb%20c")
            assert "a/b c" in error_of(missing)["message"]
            assert (await user.get("/ops/healthz")).json() == {"status": "ok"}

    run(scenario())


def test_pages_of_other_sites_change_nothing_through_an_application() -> None:
    async def scenario() -> None:
        async with running_server() as server, application(server.address) as user:
            assert (await sign_in(user, server)).status_code == 201
            job = {"jobs": [{"task": "shell", "args": {"argv": ["true"]}}]}
            foreign: list[dict[str, str]] = [
                {"Origin": "https://evil.example"},
                {"Origin": "null"},
                {"Origin": server.address},  # the server's own name is not that of this page
                {"Origin": str(user.base_url), "Sec-Fetch-Site": "cross-site"},
                {},
            ]
            for headers in foreign:
                reply = await user.post("/ops/api/v1/jobs", json=job, headers=headers)
                assert (reply.status_code, headers) == (403, headers)

    run(scenario())


def test_cookies_of_one_browser_are_not_those_of_the_next() -> None:
    async def scenario() -> None:
        async with running_server() as server, application(server.address) as user:
            assert (await sign_in(user, server)).status_code == 201
            async with httpx.AsyncClient(base_url=user.base_url) as other:
                assert (await other.get("/ops/api/v1/whoami")).status_code == 401

    run(scenario())


def test_a_stream_ends_with_the_page_that_reads_it() -> None:
    async def scenario() -> None:
        async with running_server() as server, application(server.address) as user:
            assert (await sign_in(user, server)).status_code == 201
            pages = server.services.live
            async with user.stream("GET", "/ops/api/v1/live?show=jobs") as stream:
                lines = stream.aiter_lines()
                assert (await anext(lines)).startswith("id: ")
                assert (await pages.run_once(0)).pages == 1
                await server.submit()
                while not (await anext(lines)).startswith("event: changed"):
                    pass
            async with asyncio.timeout(60):
                while (await pages.run_once(0)).pages:
                    await server.services.clock.sleep_ms(1)
            assert (await pages.run_once(0)).pages == 0

    run(scenario())


def test_a_server_that_is_away_is_reported_as_such() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            address = server.address
        async with application(address) as user:
            reply = await user.get("/ops/api/v1/jobs")
            assert (reply.status_code, error_of(reply)["code"]) == (502, "unreachable")
            assert (await user.get("/ops/", headers={"Accept": "text/html"})).status_code == 200

    run(scenario())


@pytest.mark.parametrize("path", ["%2Fapi/v1/jobs", "@evil.example/api/", "/api/../metrics"])
def test_no_path_leads_to_another_server(path: str) -> None:
    from windlass.dashboard.proxy import path_and_query

    scope = {"path": "/ops/api/", "raw_path": f"/ops{path}".encode(), "root_path": "/ops"}
    assert path_and_query(scope).startswith("/")


@pytest.mark.parametrize("path", ["/api/%2E%2E/x", "/api/v1/%252E%252e/x", "/api/%2e/v1/jobs"])
def test_no_path_leads_out_of_the_api(path: str) -> None:
    async def scenario() -> None:
        # Nobody answers at this address: what is passed on is answered with 502.
        async with application("http://127.0.0.1:9") as user:
            given = httpx.URL(str(user.base_url)).copy_with(raw_path=f"/ops{path}".encode())
            reply = await user.get(given)
            assert (reply.status_code, error_of(reply)["code"]) == (404, "not_found")

    run(scenario())


def test_the_cookie_is_sent_over_tls_only_where_the_page_is() -> None:
    from windlass.dashboard.proxy import secured

    assert secured(b"a=b; HttpOnly") == b"a=b; HttpOnly; Secure"
    assert secured(b"a=b; Secure; HttpOnly") == b"a=b; Secure; HttpOnly"


@pytest.mark.parametrize("server", ["127.0.0.1:8080", "ftp://host", "", "http://"])
def test_a_server_is_named_by_its_address(server: str) -> None:
    with pytest.raises(ValueError, match="an http or https address"):
        dashboard.app(server)
