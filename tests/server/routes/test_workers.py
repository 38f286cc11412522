"""Workers over HTTP: enrol, sync, look at, manage."""

import asyncio

import pytest

from tests.support.running import run
from tests.support.running_server import JSON, RAW, RunningServer, error_of, job, running_server
from windlass.client.gateway import HttpGateway, WorkerToken
from windlass.client.transport import ServerError, Transport
from windlass.clock import RealSecrets
from windlass.domain.access.rights import Role
from windlass.messages.sync import EnrolRequest, Finished, SyncRequest


async def _code(server: RunningServer) -> str:
    reply = await server.admin.post("/api/v1/codes", json={"expires": "10m"})
    code: str = reply.json()["code"]
    return code


def test_a_code_enrols_one_worker_once() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            client = await server.http(None)
            code = await _code(server)
            body = {"name": "w1", "code": code, "slots": 2}
            reply = await client.post("/api/v1/workers/enrol", json=body)
            assert reply.status_code == 200
            assert reply.json()["status"] == "online"
            assert reply.json()["token"].startswith("wl_")
            again = await client.post("/api/v1/workers/enrol", json={"name": "w2", "code": code})
            assert (again.status_code, error_of(again)["code"]) == (403, "forbidden")
            listed = (await server.admin.get("/api/v1/workers")).json()["workers"]
            assert [(w["name"], w["status"], w["slots"]) for w in listed] == [("w1", "idle", 2)]

    run(scenario())


def test_without_a_code_a_worker_waits_for_approval() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            gateway = HttpGateway(Transport(server.address), WorkerToken(RealSecrets().secret))
            try:
                enrolled = await gateway.enrol(EnrolRequest(name="w1"))
                assert enrolled.status == "pending_approval"
                number = await server.submit()
                ask = SyncRequest(incarnation=enrolled.incarnation, seq=1, want=1)
                assert (await gateway.sync(enrolled.worker, ask)).jobs == ()
                path = f"/api/v1/workers/{enrolled.worker}/approve"
                assert (await server.admin.post(path)).json() == {"applied": True}
                ask = SyncRequest(incarnation=enrolled.incarnation, seq=2, want=1)
                (given,) = (await gateway.sync(enrolled.worker, ask)).jobs
                assert given.job == number
            finally:
                await gateway.close()

    run(scenario())


def test_the_name_of_another_worker_is_taken() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            first = await server.worker("w1")
            other = await server.worker("w2")
            for token in (None, other.token, await server.token(Role.SUBMITTER)):
                client = await server.http(token)
                reply = await client.post("/api/v1/workers/enrol", json={"name": "w1"})
                assert (reply.status_code, error_of(reply)["code"]) == (409, "name_taken")
            itself = await first.gateway.enrol(
                EnrolRequest(name="w1", takeover=True, replaces=first.incarnation)
            )
            assert itself.worker == first.id
            assert itself.incarnation > first.incarnation
            assert itself.token not in (None, first.token)
            old = await server.http(first.token)
            body = {"incarnation": itself.incarnation, "seq": 1}
            path = f"/api/v1/workers/{first.id}/sync"
            assert (await old.post(path, json=body)).status_code == 401

    run(scenario())


def test_a_name_of_full_length_is_enough_for_a_worker() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            assert (await server.worker("w" * 200)).token

    run(scenario())


def test_a_sync_gives_jobs_and_takes_results() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            waiting = asyncio.create_task(worker.sync(want=1, wait_ms=20_000))
            number = await server.submit()
            (given,) = (await waiting).jobs
            assert (given.job, given.attempt) == (number, 1)
            done = Finished(number, 1, "completed", 0, None, None, {"answer": 42})
            await worker.sync(received=given.lease, finished=(done,))
            shown = await server.show(number)
            assert (shown["state"], shown["result"]) == ("completed", {"answer": 42})
            assert shown["attempts"][0]["worker"] == "w1"

    run(scenario())


def test_a_worker_and_its_job_show_which_indices_are_held() -> None:
    async def scenario() -> None:
        async with running_server("memory:") as server:
            worker = await server.worker()
            told = {"system:gpus": 2, "indices:gpus": ["0", "1"]}
            await worker.sync(metadata=told)
            number = await server.submit(job(resources={"gpus": 1}))
            (given,) = (await worker.sync(want=1)).jobs
            assert given.indices == {"gpus": ("0",)}
            assert (await server.show(number))["indices"] == {"gpus": ["0"]}
            (shown,) = (await server.admin.get("/api/v1/workers")).json()["workers"]
            assert shown["indices"] == {"gpus": {"held": {"0": number}, "free": ["1"]}}
            await worker.sync(received=given.lease, finished=(Finished(number, 1),))
            assert (await server.show(number))["indices"] == {}

    run(scenario())


def test_a_worker_syncs_only_for_itself() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            one, two = await server.worker("w1"), await server.worker("w2")
            body = {"incarnation": 1, "seq": 1}
            path = f"/api/v1/workers/{two.id}/sync"
            assert (await (await server.http(one.token)).post(path, json=body)).status_code == 403
            assert (await server.admin.post(path, json=body)).status_code == 403
            assert (await (await server.http(None)).post(path, json=body)).status_code == 401
            mine = await server.http(two.token)
            for content, field in (
                (b"", "body"),
                (b"{", "body"),
                (b"[]", "body"),
                (b'{"incarnation": "x", "seq": 1}', "incarnation"),
                (b"[" * 50_000, "body"),
            ):
                reply = await mine.post(path, content=content, headers=JSON)
                assert (reply.status_code, error_of(reply)["field"]) == (400, field), content[:20]

    run(scenario())


def test_a_worker_cannot_write_for_another() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            one, two = await server.worker("w1"), await server.worker("w2")
            client = await server.http(one.token)
            path = f"{two.path(1)}/log?incarnation=1&offset=0"
            assert (await client.post(path, content=b"x", headers=RAW)).status_code == 403

    run(scenario())


# Each names only what it changes, so that two operators do not undo each other's entries.
CHANGES = ({"rack": 7}, {"room": None})


def test_operators_manage_workers() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            operator = await server.role(Role.OPERATOR)
            worker = await server.worker()
            base = f"/api/v1/workers/{worker.id}"
            for action, status in (
                ("drain", "draining"),
                ("enable", "idle"),
                ("disable", "disabled"),
            ):
                assert (await operator.post(f"{base}/{action}")).json() == {"applied": True}
                assert (await operator.get(base)).json()["status"] == status
            reply = await operator.put(f"{base}/static", json={"room": "attic"})
            assert reply.json() == {"applied": True}
            assert (await operator.get(base)).json()["metadata"]["room"] == "attic"
            changes = (await operator.patch(f"{base}/static", json=change) for change in CHANGES)
            assert [reply.json() async for reply in changes] == [{"applied": True}] * 2
            assert (await operator.get(base)).json()["static"] == {"rack": 7}
            assert (await operator.post(f"{base}/explode")).status_code == 404
            assert (await operator.post("/api/v1/workers/999/drain")).status_code == 404
            assert (await operator.delete(base)).json() == {"applied": True}
            assert (await operator.get(base)).status_code == 404
            with pytest.raises(ServerError) as refused:
                await worker.sync()
            assert refused.value.status == 401  # its token went with it

    run(scenario())


def test_a_number_is_an_id_even_if_a_stranger_enrols_under_it() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker("w1")
            stranger = HttpGateway(Transport(server.address), WorkerToken(RealSecrets().secret))
            try:
                await stranger.enrol(EnrolRequest(name=str(worker.id)))
                path = f"/api/v1/workers/{worker.id}"
                assert (await server.admin.get(path)).json()["name"] == "w1"
                assert (await server.admin.post(f"{path}/disable")).json() == {"applied": True}
                listed = (await server.admin.get("/api/v1/workers")).json()["workers"]
                statuses = {one["name"]: one["status"] for one in listed}
                assert statuses == {"w1": "disabled", str(worker.id): "pending_approval"}
            finally:
                await stranger.close()

    run(scenario())


def test_a_busy_worker_is_not_removed_unless_forced() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            await server.submit()
            await worker.sync(want=1)
            path = f"/api/v1/workers/{worker.id}"
            assert (await server.admin.delete(path)).status_code == 409
            assert (await server.admin.delete(path, params={"force": "true"})).status_code == 200

    run(scenario())


def test_a_paused_queue_gives_out_nothing() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            await server.admin.post("/api/v1/queues/nightly/pause")
            number = await server.submit(job(queue="nightly"))
            assert (await worker.sync(want=1)).jobs == ()
            queues = (await server.admin.get("/api/v1/queues")).json()["queues"]
            (nightly,) = [queue for queue in queues if queue["name"] == "nightly"]
            assert (nightly["weight"], nightly["paused"], nightly["depth"]) == (50, True, 1)
            assert (await server.admin.post("/api/v1/queues/nightly/resume")).json()["applied"]
            (given,) = (await worker.sync(want=1)).jobs
            assert given.job == number

    run(scenario())
