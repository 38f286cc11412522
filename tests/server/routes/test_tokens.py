"""Tokens: how long they live, rotation, and when they were used."""

from itertools import count
from typing import Any

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, running_server
from windlass.domain.access.policy import AccessPolicy, check_policy
from windlass.domain.access.rights import Role
from windlass.domain.config import Config
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_moment

DAY = 86_400_000


_numbers = count()


async def _create(by: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    request = {"name": f"ci-{next(_numbers)}", "role": "viewer", **fields}
    return await by.post("/api/v1/tokens", json=request)


def _lifetime(info: dict[str, Any]) -> int | None:
    if info["expires_at"] is None:
        return None
    made, ends = (parse_moment(info[name], name) for name in ("created_at", "expires_at"))
    return round((ends - made) / 1000) * 1000


async def _listed(server: RunningServer, number: int) -> dict[str, Any]:
    rows = (await server.admin.get("/api/v1/tokens")).json()["tokens"]
    found: dict[str, Any] = next(row for row in rows if row["id"] == number)
    return found


async def _works(server: RunningServer, secret: str) -> bool:
    return (await (await server.http(secret)).get("/api/v1/jobs")).status_code == 200


def test_settings_bound_how_long_tokens_live() -> None:
    async def scenario() -> None:
        policy = AccessPolicy(token_lifetime_ms=DAY, token_lifetime_max_ms=7 * DAY)
        async with running_server(config=Config(access=policy)) as server:
            assert _lifetime((await _create(server.admin)).json()["info"]) == DAY
            week = await _create(server.admin, expires="7d")
            assert _lifetime(week.json()["info"]) == 7 * DAY
            longer = await _create(server.admin, expires="8d")
            assert (longer.status_code, error_of(longer)["field"]) == (422, "expires")
        async with running_server() as server:
            assert _lifetime((await _create(server.admin)).json()["info"]) is None

    run(scenario())


def test_a_maximum_is_the_default_and_bounds_it() -> None:
    assert AccessPolicy(token_lifetime_max_ms=DAY).token_ttl_ms(None) == DAY
    with pytest.raises(InvalidInput, match="token_lifetime"):
        check_policy(AccessPolicy(token_lifetime_ms=2 * DAY, token_lifetime_max_ms=DAY))


@pytest.mark.parametrize("grace", ["0", "1h"])
def test_a_rotated_token_has_a_new_secret_and_the_old_one_ends(grace: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            old = (await _create(server.admin, namespaces=["a"], expires="2h")).json()
            path = f"/api/v1/tokens/{old['info']['id']}/rotate"
            reply = await server.admin.post(path, json={"grace": grace})
            assert reply.status_code == 201, reply.text
            new = reply.json()
            assert new["token"] != old["token"]
            for field in ("name", "role", "namespaces"):
                assert new["info"][field] == old["info"][field]
            assert _lifetime(new["info"]) == 2 * 3_600_000
            assert await _works(server, new["token"])
            assert await _works(server, old["token"]) is (grace == "1h")
            shown = await _listed(server, old["info"]["id"])
            assert (shown["revoked_at"] is None) is (grace == "1h")
            if grace == "1h":
                assert _lifetime(shown) == 3_600_000
            again = await server.admin.post(path, json={})
            assert again.status_code == (201 if grace == "1h" else 409)

    run(scenario())


def test_nobody_rotates_what_they_may_not_manage() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            other = (await _create(server.admin, namespaces=["b"])).json()["info"]["id"]
            everywhere = (await _create(server.admin)).json()["info"]["id"]
            own = (await _create(server.admin, namespaces=["a"])).json()["info"]["id"]
            for role in (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR):
                client = await server.role(role)
                reply = await client.post(f"/api/v1/tokens/{own}/rotate", json={})
                assert reply.status_code == 403
            limited = await server.role(Role.ADMIN, "a")
            for token, status in ((other, 404), (everywhere, 404), (own, 201)):
                reply = await limited.post(f"/api/v1/tokens/{token}/rotate", json={})
                assert reply.status_code == status
            worker = await server.worker()
            rows = (await server.admin.get("/api/v1/tokens")).json()["tokens"]
            theirs = next(row["id"] for row in rows if row["worker"] == worker.id)
            refused = await server.admin.post(f"/api/v1/tokens/{theirs}/rotate", json={})
            assert refused.status_code == 409

    run(scenario())


def test_rotation_does_not_outlive_the_maximum() -> None:
    async def scenario() -> None:
        policy = AccessPolicy(token_lifetime_max_ms=DAY)
        async with running_server(config=Config(access=policy)) as server:
            old = (await _create(server.admin)).json()["info"]["id"]
            path = f"/api/v1/tokens/{old}/rotate"
            longer = await server.admin.post(path, json={"expires": "2d"})
            assert longer.status_code == 422
            made = (await server.admin.post(path, json={})).json()
            assert _lifetime(made["info"]) == DAY

    run(scenario())


def test_the_last_use_is_written_once_for_many_requests() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            made = (await _create(server.admin)).json()
            assert (await _listed(server, made["info"]["id"]))["last_used_at"] is None
            for _ in range(3):
                assert await _works(server, made["token"])
            assert (await _listed(server, made["info"]["id"]))["last_used_at"] is None
            await server.services.access.note_uses()
            used = await _listed(server, made["info"]["id"])
            assert parse_moment(used["last_used_at"], "x") >= parse_moment(used["created_at"], "x")
            worker = await server.worker()
            await worker.sync()
            await server.services.access.note_uses()
            rows = (await server.admin.get("/api/v1/tokens")).json()["tokens"]
            assert all(row["last_used_at"] is None for row in rows if row["worker"])

    run(scenario())


def test_a_token_cannot_have_the_name_of_somebody_who_signs_in() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for name in ("oidc:alice", "jwt:repo:org/repo"):
                reply = await _create(server.admin, name=name)
                assert (reply.status_code, error_of(reply)["field"]) == (422, "name")

    run(scenario())
