"""Logs and artifacts over HTTP: written by the holder of an attempt, read by people."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from tests.support.running import run
from tests.support.running_server import (
    RAW,
    FakeWorker,
    RunningServer,
    error_of,
    job,
    running_server,
)
from windlass.client.service import LOG_PART, Service
from windlass.client.transport import ServerError, Transport
from windlass.domain.access.rights import Role
from windlass.domain.values.errors import Conflict
from windlass.engine.attempts.log_segments import SEGMENT_LIMIT
from windlass.messages.sync import Finished
from windlass.ports.gateway import Holder

PAGE = b"<script>alert(1)</script>"


async def _running(server: RunningServer) -> tuple[FakeWorker, Holder]:
    worker = await server.worker()
    number = await server.submit()
    (given,) = (await worker.sync(want=1)).jobs
    return worker, Holder(worker.id, worker.incarnation, number, given.attempt)


async def _finish(worker: FakeWorker, holder: Holder) -> None:
    await worker.sync(finished=(Finished(holder.job, holder.attempt, "completed", 0),))


def test_a_log_is_read_by_lines_and_searched_while_it_grows() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            path = f"/api/v1/jobs/{holder.job}/log"
            viewer = await server.role(Role.VIEWER)
            empty = (await viewer.get(f"{path}/lines")).json()
            assert (empty["total"], empty["lines"], empty["is_over"]) == (0, [], False)
            text = b"".join(b"line %d\n" % number for number in range(1, 301)) + b"\xff open"
            await worker.gateway.append_log(holder, 0, text)
            last = (await viewer.get(f"{path}/lines", params={"count": 2})).json()
            assert (last["total"], last["bytes"]) == (301, len(text))
            assert [line["text"] for line in last["lines"]] == ["line 300", "\ufffd open"]
            first = (await viewer.get(f"{path}/lines", params={"line": 1, "count": 1})).json()
            assert first["lines"][0] | {"at": ""} == {
                "number": 1, "offset": 0, "text": "line 1", "size": 6, "is_cut": False, "at": ""
            }  # fmt: skip
            at = text.index(b"line 150") + 3
            inside = (await viewer.get(f"{path}/lines", params={"offset": at, "count": 1})).json()
            assert inside["lines"][0]["text"] == "line 150"
            waiting = {"wait": 20, "beyond": len(text), "count": 1}
            more = asyncio.create_task(viewer.get(f"{path}/lines", params=waiting))
            await worker.gateway.append_log(holder, len(text), b"ed\n")
            assert (await more).json()["lines"][0]["text"] == "\ufffd opened"
            found = (
                await viewer.get(
                    f"{path}/search", params={"text": "LINE 3", "ignore_case": True, "limit": 2}
                )
            ).json()
            assert [match["line"] for match in found["matches"]] == [3, 30]
            on = (
                await viewer.get(
                    f"{path}/search", params={"text": "line 3", "start": found["next"], "limit": 1}
                )
            ).json()
            assert on["matches"][0]["line"] == 31
            back = (
                await viewer.get(
                    f"{path}/search",
                    params={"text": "^line [12]$", "regex": True, "backwards": True},
                )
            ).json()
            assert [match["line"] for match in back["matches"]] == [2, 1]
            assert back["next"] is None
            wrong = await viewer.get(f"{path}/search", params={"text": "(", "regex": True})
            assert error_of(wrong)["code"] == "invalid_input"
            await worker.gateway.end_log(holder, len(text) + 3, "committed")
            await _finish(worker, holder)
            assert (await viewer.get(f"{path}/lines")).json()["is_over"] is True

    run(scenario())


def test_a_log_is_written_at_offsets_and_read_with_its_state() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            assert await worker.gateway.append_log(holder, 0, b"one\n") == 4
            assert await worker.gateway.append_log(holder, 0, b"one\n") == 4  # sent again
            assert await worker.gateway.append_log(holder, 4, b"two\n") == 8
            path = f"/api/v1/jobs/{holder.job}/log"
            reply = await server.admin.get(path)
            assert reply.content == b"one\ntwo\n"
            assert reply.headers["Content-Type"].startswith("text/plain")
            assert reply.headers["Windlass-Log-State"] == "streaming"
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            part = await server.admin.get(path, params={"offset": 2, "limit": 3})
            assert part.content == b"e\nt"
            assert part.headers["Windlass-Log-Next"] == "5"
            await worker.gateway.end_log(holder, 8, "committed")
            ended = await server.admin.get(path, params={"attempt": 1})
            assert ended.headers["Windlass-Log-State"] == "committed"
            assert ended.headers["Windlass-Log-Bytes"] == "8"
            assert (await server.show(holder.job))["log"] == {"state": "committed", "bytes": 8}

    run(scenario())


def test_a_followed_log_comes_as_it_grows_and_ends_with_the_job() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            await worker.gateway.append_log(holder, 0, b"one\n")
            path = f"/api/v1/jobs/{holder.job}/log?follow=true"
            async with server.admin.stream("GET", path) as reply:
                assert reply.headers["X-Content-Type-Options"] == "nosniff"
                chunks = reply.aiter_bytes()
                assert await anext(chunks) == b"one\n"
                following = asyncio.ensure_future(anext(chunks))
                await worker.gateway.append_log(holder, 4, b"two\n")
                assert await following == b"two\n"
                await worker.gateway.end_log(holder, 8, "committed")
                await _finish(worker, holder)
                assert [chunk async for chunk in chunks] == []

    run(scenario())


def test_the_last_output_of_a_job_that_has_ended_is_waited_for() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            await worker.gateway.append_log(holder, 0, b"one\n")
            path = f"/api/v1/jobs/{holder.job}/log"
            assert (await server.admin.get(path)).content == b"one\n"  # it runs: read as it is
            await _finish(worker, holder)
            readings = [
                asyncio.ensure_future(server.admin.get(path, params=choice))
                for choice in ({}, {"tail": 1})
            ]
            done, _ = await asyncio.wait(readings, timeout=0.3)
            assert not done
            await worker.gateway.append_log(holder, 4, b"two\n")
            await worker.gateway.end_log(holder, 8, "committed")
            assert [(await reading).content for reading in readings] == [b"one\ntwo\n", b"two\n"]

    run(scenario())


def test_a_client_reads_a_log_of_any_length_in_parts() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            pieces = [bytes([ord("a") + n]) * SEGMENT_LIMIT for n in range(3)]
            for n, piece in enumerate(pieces):
                await worker.gateway.append_log(holder, n * SEGMENT_LIMIT, piece)
            service = Service(Transport(server.address, await server.token(Role.VIEWER)))
            parts = [part async for part in service.log(holder.job, follow=False)]
            assert b"".join(parts) == b"".join(pieces)
            assert max(map(len, parts)) <= LOG_PART
            whole = await server.admin.get(f"/api/v1/jobs/{holder.job}/log")
            assert whole.content == b"".join(pieces)
            await service.close()

    run(scenario())


def test_a_log_is_read_to_where_it_ended_when_reading_began() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            await worker.gateway.append_log(holder, 0, b"a" * (LOG_PART + 1))
            service = Service(Transport(server.address, await server.token(Role.VIEWER)))
            parts = service.log(holder.job, follow=False)
            read = len(await anext(parts))
            await worker.gateway.append_log(holder, LOG_PART + 1, b"b" * LOG_PART)
            read += sum([len(part) async for part in parts])
            assert LOG_PART + 1 <= read <= 2 * LOG_PART
            await service.close()

    run(scenario())


def test_the_next_part_of_a_log_says_where_to_read_on_and_when_it_is_over() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            await worker.gateway.append_log(holder, 0, b"one\n")
            path = f"/api/v1/jobs/{holder.job}/log"

            async def ask(**query: int) -> tuple[bytes, str, str, str]:
                reply = await server.admin.get(path, params={"wait": 0, **query})
                names = ("Attempt", "Next", "Over")
                attempt, there, over = (reply.headers[f"Windlass-Log-{name}"] for name in names)
                return reply.content, attempt, there, over

            assert await ask() == (b"one\n", "1", "4", "false")
            assert await ask(offset=4, offset_attempt=1) == (b"", "1", "4", "false")
            # The place was in the log of another attempt: this one is read from its start.
            assert await ask(offset=4, offset_attempt=7) == (b"one\n", "1", "4", "false")
            await worker.gateway.end_log(holder, 4, "committed")
            await _finish(worker, holder)
            assert await ask(offset=4, offset_attempt=1) == (b"", "1", "4", "true")

    run(scenario())


def test_the_log_of_no_job_is_not_found() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for query in ("", "?follow=true"):
                reply = await server.admin.get(f"/api/v1/jobs/999/log{query}")
                assert (reply.status_code, error_of(reply)["field"]) == (404, "job")

    run(scenario())


def test_what_a_stale_attempt_writes_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            file = tmp_path / "a"
            file.write_bytes(b"a")
            digest = hashlib.sha256(b"a").hexdigest()
            stale = (
                (holder._replace(attempt=holder.attempt + 1), "lease_lost"),
                (holder._replace(incarnation=holder.incarnation + 1), "forbidden"),
                (holder._replace(job=999), "lease_lost"),
            )
            for late, code in stale:
                for write in (
                    worker.gateway.append_log(late, 0, b"x"),
                    worker.gateway.end_log(late, 1, "committed"),
                    worker.gateway.progress(late, 1),
                    worker.gateway.put_artifact(late, "a", file, digest, "text/plain"),
                ):
                    with pytest.raises((Conflict, ServerError)) as refused:
                        await write
                    assert getattr(refused.value, "code", "") == code
            assert (await server.show(holder.job))["log"]["bytes"] == 0

    run(scenario())


def test_an_artifact_is_shown_after_acceptance_and_never_run_by_a_browser(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            file = tmp_path / "page.html"
            file.write_bytes(PAGE)
            digest = hashlib.sha256(PAGE).hexdigest()
            await worker.gateway.put_artifact(holder, "out/page.html", file, digest, "text/html")
            path = f"/api/v1/jobs/{holder.job}/artifacts"
            assert (await server.admin.get(path)).json() == {"artifacts": []}
            assert (await server.admin.get(f"{path}/out/page.html")).status_code == 404
            await _finish(worker, holder)
            (info,) = (await server.admin.get(path)).json()["artifacts"]
            assert info == {
                "name": "out/page.html", "sha256": digest, "size": len(PAGE),
                "content_type": "text/html",
            }  # fmt: skip
            reply = await server.admin.get(f"{path}/out/page.html")
            assert reply.content == PAGE
            assert reply.headers["Content-Disposition"] == 'attachment; filename="page.html"'
            assert reply.headers["Content-Type"] == "application/octet-stream"
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert "sandbox" in reply.headers["Content-Security-Policy"]
            number = await server.submit(job(after=[holder.job]))
            (given,) = (await worker.sync(want=1)).jobs
            reader = holder._replace(job=number, attempt=given.attempt)
            copy = tmp_path / "copy"
            await worker.gateway.get_artifact(reader, holder.job, "out/page.html", copy)
            assert (tmp_path / "copy").read_bytes() == PAGE

    run(scenario())


def test_an_artifact_that_is_not_what_was_announced_is_refused() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            client = await server.http(worker.token)
            digest = hashlib.sha256(b"right").hexdigest()
            path = f"{worker.path(holder.job)}/artifacts"
            for name, sha256, size, status in (
                ("a", digest, 5, (409, 422)),
                ("a", "no digest", 5, (422,)),
                ("../a", digest, 5, (404, 415, 422)),  # no longer a route for raw bytes
                ("a", digest, -1, (400,)),
            ):
                query = {"incarnation": "1", "sha256": sha256, "size": str(size)}
                reply = await client.put(
                    f"{path}/{name}", params=query, content=b"wrong", headers=RAW
                )
                assert reply.status_code in status, (name, sha256, size, reply.text)
            query = {"incarnation": "1", "sha256": digest, "size": "5"}
            for name in ("a/%2E%2E/b", "%2E%2E/a", "a/%2E"):
                reply = await client.put(
                    f"{path}/{name}", params=query, content=b"right", headers=RAW
                )
                assert error_of(reply)["field"] == "name", (name, reply.text)
            await _finish(worker, holder)
            assert (await server.show(holder.job))["artifacts"] == []

    run(scenario())


@pytest.mark.parametrize("name", ["日本 ü.txt", 'quo"te.txt'])
def test_any_name_of_an_artifact_makes_a_valid_header(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            file = tmp_path / "a"
            file.write_bytes(b"a")
            digest = hashlib.sha256(b"a").hexdigest()
            await worker.gateway.put_artifact(holder, name, file, digest, "")
            await _finish(worker, holder)
            reply = await server.admin.get(f"/api/v1/jobs/{holder.job}/artifacts/{name}")
            assert (reply.status_code, reply.content) == (200, b"a")
            assert reply.headers["Content-Disposition"].startswith("attachment; filename=")

    run(scenario())


def test_names_stand_for_artifacts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            file = tmp_path / "rootfs"
            file.write_bytes(b"a")
            digest = hashlib.sha256(b"a").hexdigest()
            await worker.gateway.put_artifact(holder, "rootfs.tar", file, digest, "")
            await _finish(worker, holder)
            body = {"job": holder.job, "artifact": "rootfs.tar"}
            reply = await server.admin.put("/api/v1/names/environments/bookworm", json=body)
            assert reply.status_code == 200
            (named,) = (await server.admin.get("/api/v1/names")).json()["names"]
            assert named["name"] == "environments/bookworm"
            assert (named["job"], named["sha256"]) == (holder.job, digest)
            missing = {"job": holder.job, "artifact": "nothing"}
            reply = await server.admin.put("/api/v1/names/x", json=missing)
            assert reply.status_code == 404

    run(scenario())


def test_progress_is_shown_and_bounded() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            await worker.gateway.progress(holder, {"done": 0.5})
            assert (await server.show(holder.job))["progress"] == {"done": 0.5}
            client = await server.http(worker.token)
            path = f"{worker.path(holder.job)}/progress?incarnation=1"
            reply = await client.post(path, json={"progress": "x" * 5_000})
            assert (reply.status_code, error_of(reply)["field"]) == (422, "progress")

    run(scenario())


def test_a_log_without_an_end_is_read_in_parts_without_waiting_for_each() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker, holder = await _running(server)
            await worker.gateway.append_log(holder, 0, b"0123456789" * 2)
            await _finish(worker, holder)
            viewer = await server.role(Role.VIEWER)
            path, read = f"/api/v1/jobs/{holder.job}/log", b""
            async with asyncio.timeout(30):  # each wait would be one of two seconds
                while len(read) < 20:
                    part = await viewer.get(path, params={"offset": len(read), "limit": 1})
                    read += part.content
            assert read == b"0123456789" * 2

    run(scenario())
