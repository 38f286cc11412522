"""Who may call what: every route of the application, in every role."""

import re
from typing import Final

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import FakeWorker, error_of, running_server
from windlass.domain.access.roles import Role
from windlass.domain.rows.events import EventKind
from windlass.server.app import ROUTES as DECLARED

OPEN = "open"
ANY = "any"  # any valid token
NOBODY = 4_000_000
ATTEMPT = "/api/v1/workers/{worker:int}/jobs/{job:int}/attempts/{attempt:int}"

# A new route is added here, with the role it needs: a decision, not an accident.
ROUTES: Final[dict[str, str]] = {
    "GET /healthz": OPEN,
    "GET /readyz": OPEN,
    "POST /api/v1/workers/enrol": OPEN,
    "GET /metrics": Role.VIEWER,
    "GET /openapi.json": Role.VIEWER,
    "GET /api/v1/jobs": Role.VIEWER,
    "GET /api/v1/jobs/{job:int}": Role.VIEWER,
    "GET /api/v1/jobs/{job:int}/wait": Role.VIEWER,
    "GET /api/v1/jobs/{job:int}/events": Role.VIEWER,
    "GET /api/v1/jobs/{job:int}/explain": Role.VIEWER,
    "GET /api/v1/jobs/{job:int}/time": Role.VIEWER,
    "GET /api/v1/workers/{worker:int}/explain": Role.VIEWER,
    "GET /api/v1/jobs/{job:int}/log": Role.VIEWER,
    "GET /api/v1/jobs/{job:int}/artifacts": Role.VIEWER,
    "GET /api/v1/jobs/{job:int}/artifacts/{name:path}": Role.VIEWER,
    "GET /api/v1/workers": Role.VIEWER,
    "GET /api/v1/workers/{worker:int}": Role.VIEWER,
    "GET /api/v1/queues": Role.VIEWER,
    "GET /api/v1/namespaces": Role.VIEWER,
    "GET /api/v1/names": Role.VIEWER,
    "GET /api/v1/events": Role.VIEWER,
    "GET /api/v1/templates": Role.VIEWER,
    "GET /api/v1/templates/{name:str}": Role.VIEWER,
    "GET /api/v1/pools": Role.VIEWER,
    "GET /api/v1/pools/plan": Role.VIEWER,
    "GET /api/v1/pools/costs": Role.VIEWER,
    "GET /api/v1/pools/{name:str}": Role.VIEWER,
    "PUT /api/v1/pools/{name:str}": Role.ADMIN,
    "DELETE /api/v1/pools/{name:str}": Role.ADMIN,
    "GET /api/v1/schedules": Role.VIEWER,
    "GET /api/v1/schedules/{name:str}": Role.VIEWER,
    "GET /api/v1/workflows": Role.VIEWER,
    "GET /api/v1/workflows/{workflow:int}": Role.VIEWER,
    "GET /api/v1/workflows/{workflow:int}/jobs": Role.VIEWER,
    "GET /api/v1/workflows/{workflow:int}/wait": Role.VIEWER,
    "POST /api/v1/workflows/{workflow:int}/cancel": Role.SUBMITTER,
    "POST /api/v1/workflows/{workflow:int}/retry": Role.SUBMITTER,
    "GET /api/v1/workflows/{workflow:int}/reactions": Role.VIEWER,
    "POST /api/v1/templates/{name:str}/start": Role.SUBMITTER,
    "PUT /api/v1/templates/{name:str}": Role.OPERATOR,
    "DELETE /api/v1/templates/{name:str}": Role.OPERATOR,
    "PUT /api/v1/schedules/{name:str}": Role.OPERATOR,
    "DELETE /api/v1/schedules/{name:str}": Role.OPERATOR,
    "POST /api/v1/schedules/{name:str}/pause": Role.OPERATOR,
    "POST /api/v1/schedules/{name:str}/resume": Role.OPERATOR,
    "POST /api/v1/schedules/{name:str}/run": Role.OPERATOR,
    "POST /api/v1/jobs": Role.SUBMITTER,
    "POST /api/v1/jobs/cancel": Role.SUBMITTER,
    "POST /api/v1/jobs/bulk": Role.SUBMITTER,
    "POST /api/v1/jobs/{job:int}/cancel": Role.SUBMITTER,
    "POST /api/v1/jobs/{job:int}/retry": Role.SUBMITTER,
    "POST /api/v1/jobs/{job:int}/priority": Role.SUBMITTER,
    "PUT /api/v1/names/{name:path}": Role.SUBMITTER,
    "POST /api/v1/jobs/{job:int}/unblock": Role.OPERATOR,
    "PATCH /api/v1/workers/{worker:int}/static": Role.OPERATOR,
    "PUT /api/v1/workers/{worker:int}/static": Role.OPERATOR,
    "POST /api/v1/workers/{worker:int}/{action:str}": Role.OPERATOR,
    "DELETE /api/v1/workers/{worker:int}": Role.OPERATOR,
    "POST /api/v1/queues/{name:str}/pause": Role.OPERATOR,
    "POST /api/v1/queues/{name:str}/resume": Role.OPERATOR,
    "POST /api/v1/queues/{name:str}/limits": Role.OPERATOR,
    "GET /api/v1/namespaces/weights": Role.OPERATOR,
    "POST /api/v1/namespaces/{name:str}/weight": Role.OPERATOR,
    "POST /api/v1/codes": Role.OPERATOR,
    "GET /api/v1/tokens": Role.ADMIN,
    "POST /api/v1/tokens": Role.ADMIN,
    "DELETE /api/v1/tokens/{token:int}": Role.ADMIN,
    "POST /api/v1/tokens/{token:int}/rotate": Role.ADMIN,
    "GET /api/v1/audit": Role.ADMIN,
    "GET /api/v1/whoami": ANY,
    "GET /auth/settings": OPEN,
    "GET /auth/login": OPEN,
    "GET /auth/callback": OPEN,
    "POST /auth/logout": ANY,
    "POST /api/v1/verify": Role.ADMIN,
    "POST /api/v1/workers/{worker:int}/sync": Role.WORKER,
    "POST /api/v1/workers/{worker:int}/leave": Role.WORKER,
    f"GET {ATTEMPT}/inputs/{{source:int}}/{{name:path}}": Role.WORKER,
    f"POST {ATTEMPT}/log": Role.WORKER,
    f"POST {ATTEMPT}/log/end": Role.WORKER,
    f"POST {ATTEMPT}/progress": Role.WORKER,
    f"POST {ATTEMPT}/jobs": Role.WORKER,
    f"POST {ATTEMPT}/duration": Role.WORKER,
    f"PUT {ATTEMPT}/artifacts/{{name:path}}": Role.WORKER,
    f"POST {ATTEMPT}/artifacts/{{name:path}}": Role.WORKER,
}
LADDER: Final = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN)


def _is_allowed(needed: str, role: Role | None) -> bool:
    if needed == OPEN:
        return True
    if role is None:
        return False
    if needed == ANY:
        return True
    if role == needed:
        return True
    return role in LADDER and needed in LADDER and LADDER.index(role) > LADDER.index(Role(needed))


async def _call(client: httpx.AsyncClient, route: str, worker: FakeWorker) -> httpx.Response:
    method, path = route.split()
    path = path.replace(
        "{worker:int}",
        str(worker.id if "attempts" in path or path.endswith(("sync", "leave")) else NOBODY),
    )
    path = re.sub(r"\{\w+:int\}", str(NOBODY), path)
    path = path.replace("{action:str}", "drain")
    path = re.sub(r"\{\w+:(str|path)\}", "nothing", path)
    query = {"follow": "false", "timeout": "0", "incarnation": "1", "offset": "0"}
    return await client.request(method, path, params=query)


def test_every_route_declares_the_role_it_needs() -> None:
    declared = {
        f"{route.method} {route.path}": (route.needs.role or ANY) if route.needs.token else OPEN
        for route in DECLARED
    }
    assert declared == ROUTES


@pytest.mark.parametrize("role", [None, *Role])
def test_every_route_is_open_to_its_role_and_closed_to_the_others(role: Role | None) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            token = worker.token if role is Role.WORKER else None
            if role in LADDER:
                assert role is not None
                token = await server.token(role)
            client = await server.http(token)
            for route, needed in ROUTES.items():
                reply = await _call(client, route, worker)
                assert reply.status_code < 500, (route, reply.text)
                if _is_allowed(needed, role):
                    assert reply.status_code not in (401, 403), (route, reply.text)
                elif role is None:
                    assert reply.status_code == 401, (route, reply.text)
                    assert error_of(reply)["code"] == "unauthorized"
                    assert reply.headers["WWW-Authenticate"] == "Bearer"
                else:
                    assert reply.status_code == 403, (route, reply.text)
                    assert error_of(reply)["code"] == "forbidden"

    run(scenario())


@pytest.mark.parametrize("header", ["", "Bearer", "Basic abc", "Bearer wl_nothing"])
def test_what_is_no_valid_token_is_none(header: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            client = await server.http(None)
            reply = await client.get("/api/v1/jobs", headers={"Authorization": header})
            assert reply.status_code == 401

    run(scenario())


def test_a_revoked_token_is_refused() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            request = {"name": "ci", "role": "submitter"}
            made = (await server.admin.post("/api/v1/tokens", json=request)).json()
            client = await server.http(made["token"])
            assert (await client.get("/api/v1/jobs")).status_code == 200
            path = f"/api/v1/tokens/{made['info']['id']}"
            assert (await server.admin.delete(path)).json() == {"applied": True}
            assert (await server.admin.delete(path)).json() == {"applied": False}
            events = await server.services.engine.store.read(lambda tx: tx.log.read(0, 100))
            number = made["info"]["id"]
            assert [(e.reason, e.actor) for e in events if e.kind == EventKind.ACCESS][-2:] == [
                (f"Token {number} (ci, submitter) was made", "admin-1"),
                (f"Token {number} was revoked", "admin-1"),
            ]
            assert made["token"] not in str(events)
            shown = "/api/v1/events?follow=false"
            assert "was revoked" in (await server.admin.get(shown)).text
            assert "Token" not in (await (await server.role(Role.OPERATOR)).get(shown)).text
            unknown = await server.admin.delete("/api/v1/tokens/4000")
            assert (unknown.status_code, error_of(unknown)["got"]) == (404, 4000)
            assert (await client.get("/api/v1/jobs")).status_code == 401
            listed = (await server.admin.get("/api/v1/tokens")).json()["tokens"]
            assert made["token"] not in str(listed)
            assert next(t for t in listed if t["name"] == "ci")["revoked_at"] is not None

    run(scenario())


def test_tokens_for_workers_come_by_enrolling_only() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            request = {"name": "w", "role": "worker"}
            reply = await server.admin.post("/api/v1/tokens", json=request)
            assert reply.status_code == 422
            assert error_of(reply)["field"] == "role"

    run(scenario())
