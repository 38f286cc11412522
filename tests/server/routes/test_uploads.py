"""Files that clients upload for jobs: bounded, proved, and of one namespace."""

import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import RAW, error_of, job, running_server
from windlass.client.client import AsyncClient
from windlass.client.service import Service
from windlass.client.transport import Transport
from windlass.domain.access.rights import Role
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import NotFound
from windlass.messages.sync import Finished
from windlass.ports.gateway import Holder

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
            service = Service(transport)
            done = await service.upload(path, None)
            assert (done.namespace, done.size) == ("default", 3_000_000)
            await service.close()

    run(scenario())


def test_a_client_sends_large_arguments_beside_the_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            token = await server.token(Role.SUBMITTER, "default")
            client = AsyncClient(service=Service(Transport(server.address, token)))
            text = "x" * 3_000_000
            args = {"function": "m:f", "args": [text, 1], "kwargs": {"more": [text]}}
            first = await client.submit(JobSpec(task="python", args=args))
            worker = await server.worker(slots=1)
            (given,) = (await worker.sync(want=1)).jobs
            sent = json.loads(bytes(given.spec))["args"]
            assert sent["args"][1] == 1
            large, more = sent["args"][0]["$file"], sent["kwargs"]["more"]["$file"]
            assert (large["json"], large["size"], more["size"]) == (True, 3_000_002, 3_000_004)
            holder = Holder(worker.id, worker.incarnation, first.id, given.attempt)
            await worker.gateway.get_artifact(holder, first.id, large["sha256"], tmp_path / "copy")
            assert json.loads((tmp_path / "copy").read_bytes()) == text
            theirs = await server.role(Role.SUBMITTER, "theirs")
            reply = await theirs.post("/api/v1/jobs", json={"jobs": [_needing(large["sha256"])]})
            assert (reply.status_code, error_of(reply)["field"]) == (422, "jobs[0].args")
            await client.close()

    run(scenario())


def test_a_value_that_many_jobs_get_is_sent_once() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            token = await server.token(Role.SUBMITTER, "default")
            service = Service(Transport(server.address, token))
            sent: list[Path] = []
            upload = service.upload

            async def counted(path: Path, namespace: str | None) -> Any:
                sent.append(path)
                return await upload(path, namespace)

            service.upload = counted  # type: ignore[method-assign]
            client = AsyncClient(service=service)
            args = {"function": "m:f", "args": ["x" * 2_000_000]}
            made = await client.submit_many([JobSpec(task="python", args=args)] * 3)
            assert (len(made), len(sent)) == (3, 1)
            await client.close()

    run(scenario())
