"""`/readyz` tells what keeps a server from recording anything; a full disk is also logged."""

import errno
import hashlib
import os
from pathlib import Path

import apsw
import msgspec
import pytest
from structlog.testing import capture_logs

from tests.support.running import run
from tests.support.running_server import RAW, RunningServer, error_of, job, running_server
from windlass.domain.access.rights import Role
from windlass.domain.rows.records import InboxRow
from windlass.server import readiness
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.store import SqliteStore

ENROL = "/api/v1/workers/enrol"


def _full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _refuse() -> bool:
    raise apsw.FullError("database or disk is full")


async def _ready(server: RunningServer) -> tuple[int, str]:
    reply = await server.admin.get("/readyz")
    return reply.status_code, reply.json()["status"]


def test_a_full_blob_disk_is_told_to_workers_in_readyz_and_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "KEPT_SECONDS", 0)

    async def scenario() -> None:
        async with running_server(blobs=f"file://{tmp_path}/blobs") as server:
            worker = await server.worker()
            number = await server.submit(job())
            await worker.sync(want=1)
            assert await _ready(server) == (200, "ok")
            with monkeypatch.context() as patched, capture_logs() as logged:
                patched.setattr(os, "fsync", _full)
                status, said = await _ready(server)
                assert (status, said.startswith("disk full: the disk that holds")) == (503, True)
                client = await server.http(worker.token)
                digest = hashlib.sha256(b"x").hexdigest()
                query: dict[str, str | int] = {
                    "incarnation": worker.incarnation,
                    "sha256": digest,
                    "size": 1,
                }
                path = f"{worker.path(number)}/artifacts/out"
                for _ in range(2):
                    reply = await client.put(path, params=query, content=b"x", headers=RAW)
                    assert (reply.status_code, error_of(reply)["code"]) == (507, "disk_full")
            told = [entry["event"] for entry in logged if entry["log_level"] != "debug"]
            assert told == ["disk full"]
            assert await _ready(server) == (200, "ok")

    run(scenario())


def test_only_callers_with_a_valid_token_learn_which_path_is_the_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running_server(blobs=f"file://{tmp_path}/blobs") as server:
            pending = await (await server.http(None)).post(ENROL, json={"name": "w"})
            approved = await server.worker("approved")
            monkeypatch.setattr(os, "fsync", _full)
            for token in (None, "windlass_unknown", pending.json()["token"]):
                reply = await (await server.http(token)).get("/readyz")
                assert (reply.status_code, reply.json()) == (503, {"status": "disk full"}), token
            for token in (await server.token(Role.VIEWER, "a"), approved.token):
                reply = await (await server.http(token)).get("/readyz")
                assert (reply.status_code, str(tmp_path) in reply.text) == (503, True), token

    run(scenario())


def test_a_store_that_takes_no_write_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "KEPT_SECONDS", 0)

    async def scenario() -> None:
        async with running_server(f"sqlite://{tmp_path}/w.db") as server:
            store = server.services.engine.store
            assert isinstance(store, SqliteStore)
            assert await _ready(server) == (200, "ok")
            store.writer.set_commit_hook(_refuse)
            status, said = await _ready(server)
            assert (status, said.startswith("disk full: the disk of")) == (503, True)
            store.writer.set_commit_hook(None)
            assert await _ready(server) == (200, "ok")

    run(scenario())


def test_a_submission_that_cannot_become_jobs_is_told_everywhere_and_stops_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "KEPT_SECONDS", 0)

    async def scenario() -> None:
        async with running_server() as server:
            taken = await server.submit()
            body = msgspec.json.encode({"jobs": [job()]})

            async def put(tx: WriteTx) -> None:
                # Its job exists already, so neither this nor its refusal can be written.
                await tx.inbox.put([InboxRow(0, tx.now - 120_000, (taken,), "app", (), body)])

            await server.services.engine.store.transact(put)
            status, said = await _ready(server)
            assert (status, "have waited 2 min to become jobs" in said) == (503, True), said
            items = (await server.admin.get("/api/v1/attention")).json()["items"]
            assert "inbox" in {one["kind"] for one in items}
            lines = (await server.admin.get("/metrics")).text.splitlines()
            (age,) = (line for line in lines if line.startswith("windlass_inbox_oldest_age"))
            assert float(age.split()[1]) >= 120
            assert (await server.admin.get("/api/v1/jobs/999999")).status_code == 404
            signal = await server.admin.post("/api/v1/signals", json={"name": "go"})
            assert signal.status_code == 201
            assert (await server.show(await server.submit()))["state"] == "queued"

    run(scenario())
