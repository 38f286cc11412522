"""What is no valid token, and tokens that are made and revoked over HTTP."""

from typing import Any

import pytest

from tests.support.running import run
from tests.support.running_server import error_of, job, running_server
from tests.support.waiting import until
from windlass.client.resources import AsyncTokens
from windlass.client.service import Service
from windlass.client.transport import Transport
from windlass.domain.access.rights import Role
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import Conflict, InvalidInput


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


def test_the_names_of_living_tokens_differ() -> None:
    """A job belongs to the name of its submitter's token."""

    async def scenario() -> None:
        async with running_server() as server:
            request = {"name": "ci", "role": "submitter", "namespaces": ["a"]}
            made = await server.admin.post("/api/v1/tokens", json=request)
            ours = await server.http(made.json()["token"])
            number = await server.submit(by=ours)
            other = {**request, "namespaces": ["a", "b"]}
            again = await server.admin.post("/api/v1/tokens", json=other)
            assert (again.status_code, error_of(again)["code"]) == (409, "name_taken")
            await server.services.access.revoke(made.json()["info"]["id"])
            again = await server.admin.post("/api/v1/tokens", json=request)
            assert again.status_code == 201, again.text
            successor = await server.http(again.json()["token"])
            assert (await successor.post(f"/api/v1/jobs/{number}/cancel")).status_code == 200
            soon = {"name": "brief", "role": "viewer", "expires": "1ms"}
            assert (await server.admin.post("/api/v1/tokens", json=soon)).status_code == 201

            async def has_expired() -> bool:
                reply = await server.admin.post("/api/v1/tokens", json=soon)
                return reply.status_code == 201

            await until("the name is free", has_expired, 60)

    run(scenario())


@pytest.mark.parametrize("name", ["job 1", "Job\u00a07", "worker w1", "schedule s", "windlass up"])
def test_no_token_has_a_name_that_windlass_gives_to_submitters(name: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            request = {"name": name, "role": "submitter"}
            reply = await server.admin.post("/api/v1/tokens", json=request)
            assert (reply.status_code, error_of(reply)["field"]) == (422, "name")

    run(scenario())


def test_tokens_for_workers_come_by_enrolling_only() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            request = {"name": "w", "role": "worker"}
            reply = await server.admin.post("/api/v1/tokens", json=request)
            assert reply.status_code == 422
            assert error_of(reply)["field"] == "role"

    run(scenario())


def test_a_name_that_is_taken_in_other_namespaces_is_free_and_reveals_nothing() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            asked = {"name": "payments", "role": "submitter", "namespaces": ["b"]}
            theirs = (await server.admin.post("/api/v1/tokens", json=asked)).json()
            owner = await server.role(Role.ADMIN, "a")
            mine = await owner.post("/api/v1/tokens", json={**asked, "namespaces": ["a"]})
            assert mine.status_code == 201, mine.text
            for namespaces in (["a"], ["a", "b"], []):  # whoever reaches both may not mix them up
                again = await server.admin.post(
                    "/api/v1/tokens", json={**asked, "namespaces": namespaces}
                )
                assert (again.status_code, error_of(again)["code"]) == (409, "name_taken")
            number = await server.submit(job(namespace="b"), by=await server.http(theirs["token"]))
            other = await server.http(mine.json()["token"])
            assert (await other.post(f"/api/v1/jobs/{number}/cancel")).status_code == 404
            transport = Transport(server.address, await server.token(Role.ADMIN))
            with pytest.raises(InvalidInput, match=f"{theirs['info']['id']} "):
                await AsyncTokens(Service(transport)).revoke("payments")
            await transport.close()

    run(scenario())


@pytest.mark.parametrize("namespaces", [[], ["a", "b"]])
def test_an_admin_of_a_namespace_learns_no_name_of_a_token_that_it_cannot_list(
    namespaces: list[str],
) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            asked: dict[str, Any] = {"name": "payments", "role": "submitter"}
            made = await server.admin.post(
                "/api/v1/tokens", json={**asked, "namespaces": namespaces}
            )
            assert made.status_code == 201, made.text
            owner = await server.role(Role.ADMIN, "a")
            asked |= {"namespaces": ["a"]}
            listed = (await owner.get("/api/v1/tokens")).json()["tokens"]
            assert "payments" not in [token["name"] for token in listed]
            assert (await owner.post("/api/v1/tokens", json=asked)).status_code == 201
            assert (await owner.post("/api/v1/tokens", json=asked)).status_code == 409
            assert (await server.admin.post("/api/v1/tokens", json=asked)).status_code == 409

    run(scenario())


def test_a_link_of_another_namespaces_token_of_the_same_name_replaces_no_session() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            access = server.services.access
            made = [await access.create_token("ci", Role.VIEWER, (one,)) for one in ("a", "b")]
            who = [await access.identify(one.secret) for one in made]
            assert who[0] is not None
            assert who[1] is not None
            code, _ = await access.create_link(who[1])
            with pytest.raises(Conflict, match=r"signed in as ci \(a\), .* to ci \(b\)"):
                await access.use_link(code, who[0])
            assert await access.use_link(code, who[1]) == who[1]

    run(scenario())
