"""One test for each finding of the attack on a running server."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.server.rights.table import ACTIONS
from tests.server.routes.test_pools import POOL
from tests.support.running import run
from tests.support.running_server import (
    JSON,
    RAW,
    FakeWorker,
    RunningServer,
    error_of,
    job,
    running_server,
)
from tests.support.waiting import until
from windlass.client.transport import ServerError
from windlass.domain.access.rights import RIGHTS, Role
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound, WindlassError
from windlass.messages.sync import Finished
from windlass.ports.gateway import Holder

ENROL: Final = "/api/v1/workers/enrol"
SECRET: Final = b"what namespace b made"


async def _enrolled(client: httpx.AsyncClient, name: str) -> dict[str, Any]:
    reply = await client.post(ENROL, json={"name": name})
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


async def taken(worker: FakeWorker) -> Holder:
    """The attempt that the worker is given next."""
    (given,) = (await worker.sync(want=1)).jobs
    return Holder(worker.id, worker.incarnation, given.job, given.attempt)


async def leave_artifact(
    server: RunningServer, worker: FakeWorker, tmp_path: Path, namespace: str
) -> int:
    """A job of this namespace that has ended and left an artifact."""
    number = await server.submit(job(namespace=namespace))
    holder = await taken(worker)
    file = tmp_path / "secret"
    file.write_bytes(SECRET)
    digest = hashlib.sha256(SECRET).hexdigest()
    await worker.gateway.put_artifact(holder, "secret", file, digest, "text/plain")
    await worker.sync(finished=(Finished(number, holder.attempt, "completed", 0),))
    return number


# Finding 1


def test_finding_1_the_token_of_a_pending_worker_enrols_no_other() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.submit()
            pending = await _enrolled(await server.http(None), "evil")
            assert pending["status"] == "pending_approval"
            client = await server.http(pending["token"])
            reply = await client.post(ENROL, json={"name": "evil-2"})
            assert (reply.status_code, error_of(reply)["code"]) == (403, "forbidden")
            again = await _enrolled(client, "evil")
            assert (again["status"], again["worker"]) == ("pending_approval", pending["worker"])
            listed = (await server.admin.get("/api/v1/workers")).json()["workers"]
            assert [(w["name"], w["status"]) for w in listed] == [("evil", "pending_approval")]

    run(scenario())


def test_finding_1_an_approved_workers_token_enrols_no_other() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker("honest")
            client = await server.http(worker.token)
            reply = await client.post(ENROL, json={"name": "second"})
            assert reply.status_code == 403
            code, _ = await server.services.access.create_code(60_000)
            with_code = {"name": "second", "code": code}
            assert (await client.post(ENROL, json=with_code)).json()["status"] == "online"

    run(scenario())


@pytest.mark.parametrize("action", [None, "disable"])
def test_finding_1_a_shut_out_worker_reaches_nothing(action: str | None) -> None:
    """Pending and disabled workers are refused on every route for workers."""

    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit()
            if action is None:
                enrolled = await _enrolled(await server.http(None), "w")
                token, worker, status = enrolled["token"], enrolled["worker"], "pending_approval"
            else:
                fake = await server.worker("w")
                await taken(fake)
                token, worker, status = fake.token, fake.id, "disabled"
                path = f"/api/v1/workers/{worker}/{action}"
                assert (await server.admin.post(path)).json() == {"applied": True}
            client = await server.http(token)
            for route, asked in ACTIONS.items():
                method, path = route.split()
                if RIGHTS[asked].unlimited is not Role.WORKER or path.endswith("/sync"):
                    continue
                path = path.replace("{worker:int}", str(worker)).replace("{job:int}", str(number))
                path = path.replace("{attempt:int}", "1").replace("{source:int}", str(number))
                path = path.replace("{name:path}", "x/presign")
                reply = await client.request(method, path, params={"incarnation": 1, "offset": 0})
                assert reply.status_code == 403, (route, reply.text)
                assert status in error_of(reply)["message"], route
            sync = f"/api/v1/workers/{worker}/sync"
            reply = await client.post(sync, json={"incarnation": 1, "seq": 9, "want": 1})
            if action is None:
                assert (reply.status_code, reply.json()["jobs"]) == (200, [])
            else:
                assert (reply.status_code, error_of(reply)["code"]) == (403, "forbidden")

    run(scenario())


def test_finding_1_nothing_stops_because_of_what_a_worker_says() -> None:
    """A newer epoch than that of the store counts only if a server has signed it."""

    async def scenario() -> None:
        async with running_server() as server:
            honest = await server.worker("honest")
            stranger = await server.pending("stranger")
            for epoch in (1, 2_000, 10**6, 2**62):
                with pytest.raises(WindlassError):
                    await stranger.sync(epoch=epoch)
            liar = await server.worker("liar")
            with pytest.raises(Conflict, match="has seen epoch 2000"):
                await liar.sync(epoch=2_000)
            await server.submit()
            assert len((await honest.sync(want=1)).jobs) == 1
            with pytest.raises(InvalidInput, match="epoch"):
                await honest.sync(epoch=10**6)  # no store has ever had so many
            await server.submit()
            assert len((await honest.sync(want=1)).jobs) == 1

    run(scenario())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": ""}, 415),
        (RAW, 415),
        ({**JSON, "Origin": "https://evil.example"}, 403),
        ({**JSON, "Origin": "null"}, 403),
        ({**JSON, "Host": "evil.example"}, 403),
        ({**JSON, "Host": "evil.example:7420", "Origin": "http://evil.example:7420"}, 403),
        ({**JSON, "Host": "127.0.0.1.evil.example"}, 403),
        ({**JSON, "Host": "localhost:7420"}, 200),
        ({**JSON, "Host": "[::1]:7420"}, 200),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_finding_1_what_a_foreign_page_sends_is_refused(
    headers: dict[str, str], status: int
) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            client = await server.http(None)
            reply = await client.post(ENROL, content=b'{"name": "w"}', headers=headers)
            assert reply.status_code == status, reply.text
            worker = await server.worker("other")
            syncing = await server.http(worker.token)
            path, body = f"/api/v1/workers/{worker.id}/sync", b'{"incarnation": 1, "seq": 1}'
            assert (await syncing.post(path, content=body, headers=headers)).status_code == status
            pausing = await server.admin.post(
                "/api/v1/queues/default/limits", content=b"{}", headers=headers
            )
            assert pausing.status_code == status

    run(scenario())


def test_finding_1_pages_of_the_server_itself_are_not_foreign() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            headers = {"Origin": server.address}
            reply = await server.admin.post("/api/v1/queues/default/pause", headers=headers)
            assert reply.status_code == 200

    run(scenario())


# Finding 2


def test_finding_2_a_worker_reads_only_the_inputs_of_what_it_holds(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await leave_artifact(server, worker, tmp_path, "default")
            path = f"/api/v1/jobs/{number}/artifacts"
            for token in ((await _enrolled(await server.http(None), "p"))["token"], worker.token):
                client = await server.http(token)
                for rest in ("", "/secret"):
                    assert (await client.get(f"{path}{rest}")).status_code == 403
            assert (await (await server.http(None)).get(f"{path}/secret")).status_code == 401
            await server.submit()
            unrelated = await taken(worker)
            copy = tmp_path / "copy"
            with pytest.raises(NotFound):
                await worker.gateway.get_artifact(unrelated, number, "secret", copy)
            item = {"job": number, "artifact": "secret"}
            await server.submit(job(args={"argv": ["true"], "inputs": [item]}))
            declares = await taken(await server.worker("w2", slots=2))
            other = await server.worker("w3")
            stolen = declares._replace(worker=other.id, incarnation=other.incarnation)
            for holder in (stolen, declares):
                reply = await (await server.http(other.token)).get(
                    f"/api/v1/workers/{holder.worker}/jobs/{holder.job}/attempts/1"
                    f"/inputs/{number}/secret",
                    params={"incarnation": holder.incarnation},
                )
                assert reply.status_code in (403, 409), reply.text

    run(scenario())


# Findings 3 and 4

FLEET_WIDE: Final = {
    "PUT /api/v1/pools/{name:str}",
    "DELETE /api/v1/pools/{name:str}",
    "POST /api/v1/codes",
    "PATCH /api/v1/workers/{worker:str}/static",
    "PUT /api/v1/workers/{worker:str}/static",
    "POST /api/v1/workers/{worker:str}/{action:str}",
    "DELETE /api/v1/workers/{worker:str}",
    "POST /api/v1/queues/{name:str}/pause",
    "POST /api/v1/queues/{name:str}/resume",
    "POST /api/v1/queues/{name:str}/limits",
    "GET /api/v1/namespaces/weights",
    "POST /api/v1/namespaces/{name:str}/weight",
    "POST /api/v1/verify",
    "GET /metrics",
    "GET /api/v1/fuzz",
    "GET /api/v1/fuzz/{solver:str}",
    "GET /api/v1/fuzz/{solver:str}/coverage",
    "GET /api/v1/fuzz/{solver:str}/statistics",
    "GET /api/v1/fuzz/{solver:str}/reached/{commit:str}",
    "GET /api/v1/fuzz/{solver:str}/report/{page:str}",
    "GET /api/v1/fuzz/{solver:str}/findings/{finding:str}",
    "GET /api/v1/fuzz/{solver:str}/findings/{finding:str}/input",
}


def _bodies(route: str) -> dict[str, Any] | None:
    if route.startswith("PUT /api/v1/pools"):
        options = {"launch": ["touch", "/tmp/never"], "terminate": ["true"]}
        return {"provider": "command", "options": options, "max": 1}
    return {"weight": 2} if route.endswith("/weight") else {}


async def _call_fleet(client: httpx.AsyncClient, route: str, worker: int) -> httpx.Response:
    method, path = route.split()
    path = path.replace("{name:str}", "shared").replace("{worker:str}", str(worker))
    path = path.replace("{action:str}", "drain")
    return await client.request(method, path, json=_bodies(route))


def test_finding_3_an_admin_of_a_namespace_makes_no_pools() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            limited = await server.role(Role.ADMIN, "a")
            for provider in ("command", "local", "slurm", "kubernetes", "ec2"):
                body: dict[str, Any] = {"provider": provider, "options": {}, "max": 1}
                reply = await limited.put("/api/v1/pools/p", json=body)
                assert (reply.status_code, error_of(reply)["code"]) == (403, "forbidden")
            local = {**POOL, "options": {"launch": ["a"], "terminate": ["b", "secret"]}}
            assert (await server.admin.put("/api/v1/pools/p", json=local)).status_code == 200
            assert (await limited.delete("/api/v1/pools/p")).status_code == 403
            assert "secret" in (await server.admin.get("/api/v1/pools/p")).text
            assert "secret" not in (await limited.get("/api/v1/pools/p")).text

    run(scenario())


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("namespaces", [(), ("a",), ("a", "b")])
def test_finding_4_fleet_wide_routes_need_a_token_for_all_namespaces(
    role: Role, namespaces: tuple[str, ...]
) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            token = worker.token if role is Role.WORKER else await server.token(role, *namespaces)
            client = await server.http(token)
            for route in sorted(FLEET_WIDE):
                reply = await _call_fleet(client, route, worker.id)
                least = RIGHTS[ACTIONS[route]].unlimited or Role.ADMIN
                ladder = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN)
                enough = role in ladder and ladder.index(role) >= ladder.index(least)
                if enough and not namespaces:
                    assert reply.status_code not in (401, 403), (route, reply.text)
                else:
                    assert reply.status_code == 403, (route, reply.text)

    run(scenario())


def test_finding_4_every_fleet_wide_route_is_marked_and_no_other() -> None:
    """State-changing routes of operators and admins are fleet-wide, or limit what they touch."""
    limited_by_what_they_touch = {
        "PUT /api/v1/templates/{name:str}",
        "DELETE /api/v1/templates/{name:str}",
        "PUT /api/v1/schedules/{name:str}",
        "DELETE /api/v1/schedules/{name:str}",
        "POST /api/v1/schedules/{name:str}/pause",
        "POST /api/v1/schedules/{name:str}/resume",
        "POST /api/v1/schedules/{name:str}/run",
        "POST /api/v1/jobs/{job:int}/unblock",
        "DELETE /api/v1/jobs/{job:int}",
        "POST /api/v1/jobs/delete",
        "GET /api/v1/tokens",
        "POST /api/v1/tokens",
        "DELETE /api/v1/tokens/{token:int}",
        "POST /api/v1/tokens/{token:int}/rotate",
        "GET /api/v1/audit",
        "GET /api/v1/audit/recent",
    }

    rights = {route: RIGHTS[action] for route, action in ACTIONS.items()}
    assert {route for route, right in rights.items() if right.is_fleet_wide} == FLEET_WIDE
    high = (Role.OPERATOR, Role.ADMIN)
    privileged = {route for route, right in rights.items() if right.unlimited in high}
    read_by_all = {route for route in FLEET_WIDE if rights[route].unlimited is Role.VIEWER}
    assert read_by_all == {"GET /metrics"} | {one for one in FLEET_WIDE if "/fuzz" in one}
    assert privileged | read_by_all == FLEET_WIDE | limited_by_what_they_touch


def test_finding_4_an_operator_of_a_namespace_approves_no_worker_by_enrolling_it() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            limited = await _enrolled(await server.role(Role.OPERATOR, "a"), "one")
            assert limited["status"] == "pending_approval"
            assert (await _enrolled(await server.role(Role.OPERATOR), "two"))["status"] == "online"

    run(scenario())


# Finding 5


@pytest.mark.parametrize("form", ["job", "object"])
def test_finding_5_an_input_of_another_namespace_is_not_found(tmp_path: Path, form: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await leave_artifact(server, worker, tmp_path, "b")
            named = {"job": number, "artifact": "secret"}
            item = named if form == "job" else {"artifact": named, "path": "x"}
            asked = job(args={"argv": ["true"], "inputs": [item]})
            copy = tmp_path / "copy"
            await server.submit(asked, by=await server.role(Role.SUBMITTER, "a"))
            holder = await taken(worker)
            with pytest.raises(NotFound) as refused:
                await worker.gateway.get_artifact(holder, number, "secret", copy)
            with pytest.raises(NotFound) as missing:
                await worker.gateway.get_artifact(holder, 4_000, "secret", copy)
            assert str(refused.value) == str(missing.value).replace("4000", str(number))
            await server.submit(asked, by=await server.role(Role.SUBMITTER, "b"))
            other = await server.worker("w2")
            await other.gateway.get_artifact(await taken(other), number, "secret", copy)
            assert copy.read_bytes() == SECRET

    run(scenario())


def test_finding_5_a_name_of_another_namespace_stands_for_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await leave_artifact(server, worker, tmp_path, "b")
            body = {"job": number, "artifact": "secret"}
            assert (await server.admin.put("/api/v1/names/n", json=body)).status_code == 200
            item = {"artifact": {"$lookup": "n"}, "path": "x"}
            asked = job(args={"argv": ["true"], "inputs": [item]})
            ours = await server.submit(asked, by=await server.role(Role.SUBMITTER, "a"))
            assert (await worker.sync(want=1)).jobs == ()
            assert (await server.show(ours))["state"] == "rejected"

    run(scenario())


# Finding 7


def test_finding_7_a_removed_workers_token_is_worthless_at_once() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            await server.submit()
            holder = await taken(worker)
            waiting = asyncio.create_task(worker.sync(received=1, wait_ms=30_000))

            async def waits() -> bool:
                return len(server.services.engine.waiting_syncs) > 0

            await until("the worker waits", waits, 60)
            path = f"/api/v1/workers/{worker.id}"
            reply = await server.admin.delete(path, params={"force": True})
            assert reply.json() == {"applied": True}
            with pytest.raises(NotFound):
                await asyncio.wait_for(waiting, 20)
            client = await server.http(worker.token)
            for call in (
                worker.sync(),
                worker.gateway.append_log(holder, 0, b"forged"),
                worker.gateway.progress(holder, 1),
                worker.gateway.leave(worker.id, worker.incarnation),
            ):
                with pytest.raises(ServerError) as refused:
                    await call
                assert refused.value.status == 401
            assert (await client.post(ENROL, json={"name": "w1"})).status_code == 401
            tokens = (await server.admin.get("/api/v1/tokens")).json()["tokens"]
            assert all(token["worker"] != worker.id for token in tokens)

    run(scenario())
