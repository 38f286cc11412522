"""Files that clients upload for jobs: bounded, proved, and of one namespace."""

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import RAW, error_of, job, running_server
from windlass.client.service import HttpService
from windlass.client.transport import Transport
from windlass.domain.access.roles import Role
from windlass.domain.config import Config
from windlass.domain.values.errors import NotFound
from windlass.ports.gateway import Holder
from windlass.wire.sync import Finished

DATA = b"some bytes"
DIGEST = hashlib.sha256(DATA).hexdigest()


async def _put(
    by: httpx.AsyncClient, data: bytes = DATA, digest: str = DIGEST, **query: Any
) -> httpx.Response:
    params = {"size": len(data), **query}
    return await by.put(f"/api/v1/uploads/{digest}", content=data, params=params, headers=RAW)


def _needing(digest: str = DIGEST) -> dict[str, Any]:
    args = {"function": "m:f", "args": [{"$file": {"sha256": digest, "name": "a.txt"}}]}
    return job(task="python", args=args)


def test_only_the_worker_that_holds_the_job_reads_its_upload(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            submitter = await server.role(Role.SUBMITTER, "default")
            assert (await _put(submitter)).status_code == 200
            number = await server.submit(_needing(), by=submitter)
            other = await server.submit(job(task="python", args={"function": "m:f"}))
            worker = await server.worker(slots=2)
            given = {one.job: one for one in (await worker.sync(want=2)).jobs}
            mine, theirs = (
                Holder(worker.id, worker.incarnation, one, given[one].attempt)
                for one in (number, other)
            )
            copy = tmp_path / "copy"
            await worker.gateway.get_artifact(mine, number, DIGEST, copy)
            assert copy.read_bytes() == DATA
            for holder, source, digest in (
                (theirs, number, DIGEST), (theirs, other, DIGEST), (mine, number, "0" * 64),
            ):  # fmt: skip
                with pytest.raises(NotFound):
                    await worker.gateway.get_artifact(holder, source, digest, copy)
            listed = await submitter.get(f"/api/v1/jobs/{number}/artifacts")
            assert listed.json() == {"artifacts": []}
            await worker.sync(finished=(Finished(number, mine.attempt, "completed", 0),))
            listed = await submitter.get(f"/api/v1/jobs/{number}/artifacts")
            assert listed.json() == {"artifacts": []}

    run(scenario())


def test_an_upload_is_of_one_namespace() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours, theirs = (
                await server.role(Role.SUBMITTER, "a"),
                await server.role(Role.SUBMITTER, "b"),
            )
            assert (await _put(ours)).json()["namespace"] == "a"
            assert (await _put(theirs, namespace="a")).status_code == 403
            answers = []
            for digest in (DIGEST, "0" * 64):
                body = {"jobs": [_needing(digest)]}
                reply = await theirs.post("/api/v1/jobs", json=body)
                assert reply.status_code == 422
                answers.append(error_of(reply)["message"].replace(digest, "…"))
            assert answers[0] == answers[1]
            viewer = await server.role(Role.VIEWER, "a")
            assert (await _put(viewer)).status_code == 403

    run(scenario())


def test_what_is_not_as_declared_or_too_much_is_refused() -> None:
    async def scenario() -> None:
        config = Config(upload_limit=20, upload_quota=25)
        async with running_server(config=config) as server:
            for reply in (
                await _put(server.admin, digest="0" * 64),
                await _put(server.admin, digest="nonsense"),
                await _put(server.admin, size=5),
                await _put(server.admin, size=11),
                await _put(server.admin, b"x" * 21, hashlib.sha256(b"x" * 21).hexdigest()),
            ):
                assert reply.status_code == 422, reply.text
            assert (await _put(server.admin)).status_code == 200
            assert (await _put(server.admin)).status_code == 200  # again
            more = b"y" * 20
            reply = await _put(server.admin, more, hashlib.sha256(more).hexdigest())
            assert (reply.status_code, error_of(reply)["code"]) == (409, "quota")

    run(scenario())


def test_a_client_uploads_a_file_over_http(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            path = tmp_path / "large"
            path.write_bytes(b"z" * 3_000_000)
            transport = Transport(server.address, await server.token(Role.SUBMITTER, "default"))
            service = HttpService(transport)
            done = await service.upload(path, None)
            assert (done.namespace, done.size) == ("default", 3_000_000)
            await service.close()

    run(scenario())
