"""The audit log: what is recorded, who may read it, and that floods cannot fill it."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server
from windlass.assembly.backend import ServerOptions
from windlass.assembly.server import running_services
from windlass.domain.access.audit import AuditRow
from windlass.domain.access.rights import Role
from windlass.domain.values.errors import StoreUnavailable
from windlass.server import audit_log

MINUTE = 60_000


async def _entries(server: RunningServer, by: httpx.AsyncClient | None = None) -> list[Any]:
    audit = server.services.audit
    await audit.run_once(server.services.clock.now_ms())
    reply = await (by or server.admin).get("/api/v1/audit")
    assert reply.status_code == 200, reply.text
    found: list[Any] = reply.json()["entries"]
    return found


def _brief(entries: list[Any]) -> list[tuple[Any, ...]]:
    return [(e["actor"], e["action"], e["status"], e["calls"]) for e in entries]


def test_every_change_is_recorded_with_who_what_where_and_how_it_ended() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit(job(namespace="team"))
            reply = await server.admin.post(f"/api/v1/jobs/{number}/cancel", json={})
            assert reply.status_code == 200
            await server.admin.get("/api/v1/jobs")
            *_, entry = await _entries(server)
            assert entry == {
                "id": entry["id"],
                "at": entry["at"],
                "calls": 1,
                "actor": "admin-1",
                "role": "admin",
                "token": 1,
                "address": "127.0.0.1",
                "action": "POST /api/v1/jobs/{job:int}/cancel",
                "resource": f"/api/v1/jobs/{number}/cancel",
                "namespace": "team",
                "status": 200,
                "error": None,
                "request": reply.headers["X-Request-Id"],
                "what": "Cancels one job",
                "about": f"job {number}, task shell, queue default",
            }

    run(scenario())


def test_reading_is_not_recorded_and_what_workers_do_is_in_the_event_log() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            await worker.sync()
            await server.admin.get("/api/v1/jobs")
            await server.admin.get("/api/v1/jobs/4000")
            assert _brief(await _entries(server)) == [
                (None, "POST /api/v1/workers/enrol", 200, 1)
            ]  # fmt: skip

    run(scenario())


def test_submissions_of_one_minute_share_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for _ in range(5):
                await server.submit()
            action = "POST /api/v1/jobs"
            assert _brief(await _entries(server)) == [("admin-1", action, 201, 1)]
            await server.services.audit.run_once(server.services.clock.now_ms() + MINUTE)
            assert [e["calls"] for e in await _entries(server)] == [1, 4]

    run(scenario())


def test_refusals_are_recorded_and_a_flood_of_them_is_counted() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            nobody, viewer = await server.http(None), await server.role(Role.VIEWER)
            for number in range(50):
                assert (await nobody.get(f"/api/v1/jobs/{number + 1}")).status_code == 401
                refused = await viewer.post("/api/v1/codes", json={})
                assert refused.status_code == 403
            assert (await viewer.post("/api/v1/jobs/1/cancel", json={})).status_code == 403
            audit = server.services.audit
            await audit.run_once(server.services.clock.now_ms() + MINUTE)
            entries = await _entries(server)
            assert len(entries) == 5
            codes = {e["error"] for e in entries}
            assert codes == {"unauthorized", "forbidden"}
            assert sum(e["calls"] for e in entries) == 101
            assert {e["actor"] for e in entries} == {None, "viewer-2"}

    run(scenario())


def test_callers_beyond_the_bound_share_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from windlass.domain.access import audit

    monkeypatch.setattr(audit, "KEYS_KEPT", 10)
    repeats = audit.Repeats()
    row = AuditRow(0, 5, 1, 401, 0, "", "", "", "GET /x", "/x", "", "unauthorized", "r", "")
    written = [repeats.add(number, row._replace(address=str(number))) for number in range(1_000)]
    rows = [one for one in written if one is not None] + repeats.take()
    assert len(rows) == 12
    assert sum(one.calls for one in rows) == 1_000
    assert {one.actor for one in rows} == {"", audit.OTHERS}


def test_admins_of_a_namespace_see_its_rows_only_and_others_none() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for namespace in ("a", "b"):
                number = await server.submit(job(namespace=namespace))
                await server.admin.post(f"/api/v1/jobs/{number}/cancel", json={})
            await server.admin.post("/api/v1/codes", json={})
            everything = await _entries(server)
            assert {e["namespace"] for e in everything} == {None, "a", "b"}
            limited = await _entries(server, await server.role(Role.ADMIN, "a"))
            assert [e["namespace"] for e in limited] == ["a"]
            for role in (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR):
                client = await server.role(role)
                assert (await client.get("/api/v1/audit")).status_code == 403
            worker = await server.http((await server.worker()).token)
            assert (await worker.get("/api/v1/audit")).status_code == 403
            assert (await (await server.http(None)).get("/api/v1/audit")).status_code == 401

    run(scenario())


def test_it_is_read_in_pages_and_since_a_time() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for _ in range(3):
                await server.admin.post("/api/v1/codes", json={})
            ids = [e["id"] for e in await _entries(server)]
            page = (await server.admin.get("/api/v1/audit?limit=2")).json()
            assert ([e["id"] for e in page["entries"]], page["next"]) == (ids[:2], ids[1])
            rest = (await server.admin.get(f"/api/v1/audit?limit=2&after={ids[1]}")).json()
            assert ([e["id"] for e in rest["entries"]], rest["next"]) == (ids[2:], None)
            assert (await server.admin.get("/api/v1/audit?since=1h")).json() == {
                "entries": await _entries(server), "next": None
            }  # fmt: skip
            later = await server.admin.get("/api/v1/audit?since=2990-01-01T00:00:00Z")
            assert later.json()["entries"] == []
            assert (await server.admin.get("/api/v1/audit?since=x")).status_code == 422

    run(scenario())


def test_a_clean_stop_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log.AuditLog, "interval_ms", 10 * MINUTE)
    store = f"sqlite://{tmp_path}/w.db"

    async def scenario() -> None:
        async with running_server(store) as server:
            for _ in range(3):
                await server.admin.post("/api/v1/codes", json={})
                assert (await server.admin.post("/api/v1/codes", json={"x": 1})).status_code == 400
        async with running_services(ServerOptions(store, "memory:")) as services:
            reopened = services.engine.store
            rows = await reopened.read(lambda tx: tx.audit.read(0, 0, (), 100))
            assert [(row.status, row.calls) for row in rows] == [
                (201, 1), (400, 1), (201, 1), (201, 1), (400, 2)
            ]  # fmt: skip
            (token,) = await services.access.tokens()
            assert token.last_used_at >= token.created_at

    run(scenario())


def test_rows_wait_for_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.admin.post("/api/v1/codes", json={})
            audit, now = server.services.audit, server.services.clock.now_ms()

            async def fail(work: object) -> None:
                raise StoreUnavailable("away", False)

            with monkeypatch.context() as broken:
                broken.setattr(server.services.engine.store, "transact", fail)
                with pytest.raises(StoreUnavailable):
                    await audit.run_once(now)
            assert len(await _entries(server)) == 1

    run(scenario())


def test_paths_are_recorded_without_what_terminals_and_stores_choke_on() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            path = "/api/v1/queues/a%00b%1b%5B31m/pause"
            assert (await server.admin.post(path)).status_code < 500
            (entry,) = await _entries(server)
            assert entry["resource"] == "/api/v1/queues/a?b?[31m/pause"

    run(scenario())


def test_recent_rows_are_filtered_and_paged_and_limited_to_the_callers_namespaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for name in ("a", "b", "a"):
                number = await server.submit(job(namespace=name))
                await server.admin.post(f"/api/v1/jobs/{number}/cancel", json={})
            viewer = await server.role(Role.VIEWER)
            await viewer.post("/api/v1/queues/q/pause")
            await server.services.audit.run_once(server.services.clock.now_ms())

            async def recent(client: httpx.AsyncClient, **query: Any) -> Any:
                reply = await client.get("/api/v1/audit/recent", params=query)
                assert reply.status_code == 200, reply.text
                return reply.json()

            whole = await recent(server.admin)
            numbers = [entry["id"] for entry in whole["entries"]]
            assert numbers == sorted(numbers, reverse=True)
            cancel = "POST /api/v1/jobs/{job:int}/cancel"
            found = await recent(server.admin, action=cancel)
            assert [entry["namespace"] for entry in found["entries"]] == ["a", "b", "a"]
            refused = await recent(server.admin, refused=True)
            assert [entry["error"] for entry in refused["entries"]] == ["forbidden"]
            assert (await recent(server.admin, actor="nobody"))["entries"] == []
            assert (await recent(server.admin, until="1h"))["entries"] == []
            assert (await recent(server.admin, since="1h", until="2990-01-01T00:00:00Z")) == whole
            later = await recent(server.admin, since="2990-01-01T00:00:00Z")
            assert later == {"entries": [], "next": None}
            limited = await server.role(Role.ADMIN, "b")
            seen = await recent(limited, action=cancel)
            assert [entry["namespace"] for entry in seen["entries"]] == ["b"]
            paged: list[int] = []
            page = await recent(server.admin, limit=2)
            while page["next"] is not None:
                paged += [entry["id"] for entry in page["entries"]]
                page = await recent(server.admin, limit=2, before=page["next"])
            assert paged + [entry["id"] for entry in page["entries"]] == numbers

    monkeypatch.setattr("windlass.server.routes.CHUNK", 2)
    run(scenario())


def test_a_change_names_its_object_and_no_secret() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            admin = server.admin
            worker = await server.worker()
            asked = {"name": "ci", "role": "submitter", "namespaces": ["a"]}
            made = (await admin.post("/api/v1/tokens", json=asked)).json()
            number = made["info"]["id"]
            code = (await admin.post("/api/v1/codes", json={"worker": "w9"})).json()
            again = await admin.post(f"/api/v1/tokens/{number}/rotate", json={})
            await admin.delete(f"/api/v1/tokens/{again.json()['info']['id']}")
            await admin.post(f"/api/v1/workers/{worker.id}/drain")
            await admin.delete(f"/api/v1/workers/{worker.id}")
            await admin.post("/api/v1/queues/video/pause")
            await admin.post("/api/v1/jobs/cancel", json={"ids": list(range(1, 13))})
            entries = await _entries(server)
            ci = "`ci`, role submitter, namespace a"
            assert [entry["about"] for entry in entries] == [
                f"worker {worker.id} `{worker.name}`, online",
                f"token {number} {ci}",
                f"code for worker `w9`, valid until {code['expires_at']}",
                f"token {number} {ci}, replaced by token {again.json()['info']['id']}",
                f"token {again.json()['info']['id']} {ci}",
                f"worker {worker.id} `{worker.name}`",
                f"worker {worker.id} `{worker.name}`",
                "queue `video`",
                "jobs 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more",
            ]
            for secret in (made["token"], code["code"], again.json()["token"]):
                assert secret not in str(entries)

    run(scenario())


def test_a_refused_call_tells_nothing_of_another_namespaces_object() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            asked = {"name": "theirs", "role": "viewer", "namespaces": ["b"]}
            theirs = (await server.admin.post("/api/v1/tokens", json=asked)).json()["info"]["id"]
            limited = await server.role(Role.ADMIN, "a")
            assert (await limited.delete(f"/api/v1/tokens/{theirs}")).status_code == 404
            (entry,) = await _entries(server, limited)
            assert (entry["error"], entry["about"]) == ("not_found", None)

    run(scenario())


def test_a_name_in_the_audit_log_cannot_steer_a_terminal() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.admin.delete("/api/v1/schedules/%1b%5b2J%e2%80%aex%0a")
            (entry,) = await _entries(server)
            assert entry["about"] == "schedule `?[2J?x?`"

    run(scenario())
