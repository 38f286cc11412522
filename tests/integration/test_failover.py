"""A standby takes over: no id is given twice, and a loss is noticed without a person."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.store.postgres.proxy import proxy_to
from tests.support.debian import missing_reason
from tests.support.pgbouncer import start_pgbouncer
from tests.support.postgres import start_postgres
from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server
from tests.support.waiting import until
from windlass.client.client import AsyncClient
from windlass.domain.access.rights import Role
from windlass.domain.values.errors import Conflict, Lost
from windlass.store.postgres.store import PostgresStore

PATIENCE_S = 180
SERVER_CHECKS = ("server answers", "store", "workers")


class Cluster:
    """A primary and its standby, and an address that leads to whichever takes writes."""

    def __init__(self) -> None:
        self.primary = start_postgres(durable=False)
        self.primary.execute("CREATE DATABASE windlass")
        run(_upgrade(self.primary.dsn("windlass")))
        self.standby = self.primary.standby()

    @property
    def dsn(self) -> str:
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://windlass@{hosts}/windlass"

    def fail_over(self) -> None:
        """The primary dies, and the standby goes on with what it has."""
        self.primary.stop()
        self.standby.promote()

    def wait_for_standby(self) -> None:
        """From now on, no commit is answered before the standby has it."""
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")

    def lag(self) -> None:
        """From now on, the standby hears nothing of what the primary commits."""
        self.standby.follow_up(self.primary)
        self.standby.stop_following()

    def stop(self) -> None:
        self.primary.stop()
        self.standby.stop()


async def _upgrade(dsn: str) -> None:
    store = await PostgresStore.connect(dsn)
    await store.upgrade()
    await store.close()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.stop()


@asynccontextmanager
async def servers(cluster: Cluster, count: int = 2) -> AsyncIterator[list[RunningServer]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running_server(cluster.dsn)) for _ in range(count)]


async def submit(server: RunningServer, name: str) -> int:
    """Submits one job, again until the server has found its database."""
    found: list[int] = []

    async def submitted() -> bool:
        body = {"jobs": [job(name=name)], "key": name}
        reply = await server.admin.post("/api/v1/jobs", json=body)
        if reply.status_code == 201:
            found.extend(reply.json()["ids"])
        return bool(found)

    await until(f"{name} is submitted", submitted, PATIENCE_S)
    return found[0]


async def get(server: RunningServer, path: str) -> Any:
    reply = await server.admin.get(path)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def kinds(server: RunningServer) -> list[str]:
    return [item["kind"] for item in (await get(server, "/api/v1/attention"))["items"]]


def test_a_failover_that_lost_jobs_is_noticed_and_gives_no_id_twice(cluster: Cluster) -> None:
    async def check() -> None:
        async with servers(cluster) as (one, two):
            worker = await one.worker()
            kept = [await submit(one, f"kept-{n}") for n in range(3)]
            await worker.sync(want=1)
            cluster.lag()
            lost = [await submit(one, f"alice-{n}") for n in range(40)]
            cluster.fail_over()
            new = [await submit(two, f"bob-{n}") for n in range(40)]
            new += [await submit(one, f"carol-{n}") for n in range(40)]

            assert len({*kept, *lost, *new}) == len(kept) + len(lost) + len(new)
            for number in (lost[0], lost[-1]):
                await assert_lost(two, number)
            assert (await one.show(kept[-1]))["state"] == "queued"
            with pytest.raises(Conflict) as fenced:
                await worker.sync(want=0)
            assert fenced.value.code == "incarnation_ended"
            told = await log_of(one)
            assert "Epoch 1 began: the failover from timeline 1 to 2 lost commits" in told
            assert "Epoch 2" not in told
            assert "lost_commits" in await kinds(two)
            assert "windlass_losses 1.0" in (await two.admin.get("/metrics")).text
            verified = (await one.admin.post("/api/v1/verify")).json()
            assert verified["violations"] == []
            assert [f"after job {kept[-1]}," in note for note in verified["notes"]] == [True]
            found = await examine(two, await two.token(Role.ADMIN))
            assert found["store"]["state"] == "note"
            assert f"after job {kept[-1]}," in found["store"]["detail"]

    run(check())


async def examine(server: RunningServer, token: str) -> dict[str, dict[str, str]]:
    """What `windlass doctor` says about a server."""
    command = [sys.executable, "-m", "windlass", "doctor", "--json", "--server", server.address]
    known = {**os.environ, "WINDLASS_TOKEN": token}
    process = await asyncio.create_subprocess_exec(
        *command, env=known, stdout=asyncio.subprocess.PIPE
    )
    try:
        written, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    found = {one["check"]: one for one in json.loads(written)}
    return {check: found[check] for check in ("server", *SERVER_CHECKS) if check in found}


async def has_refused(server: RunningServer) -> bool:
    """Whether `windlass doctor` was told that the store is not available."""
    counts, _ = server.services.meters.requests.families()
    asked = {"route": "/api/v1/workers", "method": "GET", "status": "503"}
    return any(sample.labels == asked for sample in counts.samples)


async def log_of(server: RunningServer) -> str:
    return (await server.admin.get("/api/v1/events?follow=false&after=0&kind=loop")).text


async def assert_lost(server: RunningServer, number: int) -> None:
    for path in (f"/api/v1/jobs/{number}", f"/api/v1/jobs/{number}/explain"):
        reply = await server.admin.get(path)
        assert reply.status_code == 410, reply.text
        assert reply.json()["error"]["code"] == "job_lost"
        assert "failover from timeline 1 to 2" in reply.json()["error"]["message"]


def test_a_failover_behind_a_pooler_is_noticed_on_connections_that_stay(
    cluster: Cluster, tmp_path: Path
) -> None:
    if reason := missing_reason("pgbouncer"):
        pytest.skip(reason)

    async def check() -> None:
        async with proxy_to(cluster.primary.dsn("windlass")) as (proxy, detour):
            pooler = start_pgbouncer(urlsplit(detour).port or 0, tmp_path)
            try:
                async with running_server(pooler.dsn("/windlass")) as server:
                    kept = await submit(server, "kept")
                    cluster.lag()
                    lost = [await submit(server, f"lost-{n}") for n in range(3)]
                    cluster.fail_over()
                    proxy.lead_to(cluster.standby.port)
                    new = [await submit(server, f"new-{n}") for n in range(3)]
                    assert len({kept, *lost, *new}) == 7
                    await assert_lost(server, lost[0])
                    assert "Epoch 1 began" in await log_of(server)
            finally:
                pooler.stop()

    run(check())


def test_a_failover_that_lost_nothing_changes_nothing_but_the_ids(cluster: Cluster) -> None:
    async def check() -> None:
        cluster.wait_for_standby()
        async with servers(cluster) as (one, two):
            worker = await one.worker()
            kept = [await submit(one, f"kept-{n}") for n in range(5)]
            (held,) = (await worker.sync(want=1)).jobs
            token = await one.token(Role.ADMIN)
            cluster.primary.stop()
            async with asyncio.TaskGroup() as beside:
                doctor = beside.create_task(examine(one, token))
                await until("doctor meets no database", partial(has_refused, one), PATIENCE_S)
                cluster.standby.promote()
                new = [await submit(two, f"new-{n}") for n in range(5)]
            assert min(new) > max(kept) + 1_000

            assert (await one.show(held.job))["state"] == "running"
            assert [(await one.show(number))["state"] for number in new] == ["queued"] * 5
            synced = await worker.sync(want=0)
            assert synced.epoch == 0
            assert "Epoch" not in await log_of(one)
            assert "lost_commits" not in await kinds(two)
            assert "windlass_losses 0.0" in (await two.admin.get("/metrics")).text
            assert (await one.admin.post("/api/v1/verify")).json() == {"violations": []}
            found = doctor.result()
            assert "recovery is in progress" in found["server answers"]["detail"]
            assert {finding["state"] for finding in found.values()} <= {"ok", "note"}
            assert "store" not in found
            unknown = await one.admin.get(f"/api/v1/jobs/{max(kept) + 1}")
            assert unknown.status_code == 404

    run(check())


def test_clients_know_what_was_lost_while_all_servers_started_again(cluster: Cluster) -> None:
    async def check() -> None:
        async with AsyncExitStack() as stack:
            async with running_server(cluster.dsn) as before:
                port = int(before.address.rpartition(":")[2])
                client = AsyncClient(before.address, await before.token(Role.ADMIN))
                stack.push_async_callback(client.close)
                worker = await before.worker()
                await submit(before, "kept")
                (held,) = (await worker.sync(want=1)).jobs
                cluster.lag()
                mine = await client.submit("true")
                assert mine.id == held.job + 1
            cluster.fail_over()
            async with running_server(cluster.dsn, port=port) as after:
                others = [await submit(after, f"bob-{n}") for n in range(3)]
                assert mine.id not in others
                assert "lost_commits" not in await kinds(after)  # nobody knows yet
                with pytest.raises(Lost, match="failover from timeline 1 to 2") as told:
                    await mine.result(timeout=PATIENCE_S)
                assert told.value.code == "job_lost"
                assert "lost_commits" in await kinds(after)
                assert "Epoch 1 began" in await log_of(after)
                with pytest.raises(Conflict) as fenced:
                    await worker.sync(want=0)
                assert fenced.value.code == "incarnation_ended"

    run(check())


def test_what_nobody_signed_raises_no_epoch(cluster: Cluster) -> None:
    async def check() -> None:
        async with running_server(cluster.dsn) as server:
            await submit(server, "kept")
            reply = await server.admin.get("/api/v1/jobs")
            genuine = reply.headers["Windlass-Mark"]
            seq, at, epoch, mac = genuine.split(".")
            assert epoch == "0"
            texts = (
                f"{int(seq) + 1}.1.0.{mac}",
                f"{seq}.{at}.9.{mac}",
                "1.1.0.",
                "x",
                "1.1",
                "...",
            )
            for forged in (*texts, "\u0661.1.0.1"):
                headers = {b"Windlass-Mark": forged.encode()}
                assert (await server.admin.get("/api/v1/jobs", headers=headers)).status_code == 200
            assert "Epoch" not in await log_of(server)

    run(check())


def test_users_transactions_get_no_old_ids_before_a_server_has_come(cluster: Cluster) -> None:
    async def check() -> None:
        async with running_server(cluster.dsn) as before:
            cluster.lag()
            lost = [await submit(before, f"alice-{n}") for n in range(40)]
        cluster.fail_over()
        connection = await asyncpg.connect(cluster.standby.dsn("windlass"))
        request = json.dumps({"jobs": [job()]})
        taken = [
            (await connection.fetchval("SELECT windlass.submit_many($1::json)", request))[0]
            for _ in range(3)
        ]
        await connection.close()
        async with running_server(cluster.dsn) as after:
            new = await submit(after, "bob")
            assert len({*lost, *taken, new}) == len(lost) + 4
            assert min(*taken, new) > max(lost) + 1_000
            assert [(await after.show(number))["state"] for number in taken] == ["queued"] * 3

    run(check())
