"""What clients send is limited in size and time, before anything is done about it."""

import asyncio
import json
import tracemalloc
from contextlib import AsyncExitStack

import pytest
from msgspec.structs import replace

from tests.server.connections.raw import request, status_of, wire_to
from tests.support.running import run
from tests.support.running_server import JSON, RunningServer, error_of, job, running_server
from tests.support.waiting import until
from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.access.rights import Identity, Role
from windlass.domain.config import Config
from windlass.domain.values.errors import Overloaded, TooManyRequests
from windlass.ports.gateway import Holder
from windlass.ports.loop_time import pass_time
from windlass.server.connections import guarded_http
from windlass.server.connections.refusals import Reason
from windlass.server.http.callers import Callers

QUICK = HttpLimits(header_timeout_ms=200, body_timeout_ms=200, body_rate=500)
ENROL = "/api/v1/workers/enrol"


def limited(limits: HttpLimits) -> Config:
    return Config(http=limits)


async def refused(server: RunningServer, reason: str) -> float:
    """How often the server has refused something for this reason."""
    text = (await server.admin.get("/metrics")).text
    start = f'windlass_http_refused_total{{reason="{reason}"}} '
    return next(float(x.removeprefix(start)) for x in text.splitlines() if x.startswith(start))


def code_of(answer: bytes) -> str:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert b"nosniff" in head
    return str(json.loads(body)["error"]["code"])


def test_finding_11_a_huge_header_is_refused_before_it_is_complete() -> None:
    async def scenario() -> None:
        async with running_server() as server, wire_to(server.address) as wire:
            await wire.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-large: ")
            sent = 0
            while sent < 60_000_000 and not wire.reader.at_eof() and sent < 2_000_000:
                await wire.send(b"x" * 50_000)
                sent += 50_000
                await pass_time(0)  # lets the server, in the same loop, read
            answer = await wire.rest()
            assert (status_of(answer), code_of(answer)) == (431, "headers_too_large")
            assert await refused(server, "headers_too_large") == 1

    run(scenario())


def test_headers_up_to_the_limit_are_accepted_in_one_piece_or_many() -> None:
    async def scenario() -> None:
        config = limited(HttpLimits(header_bytes=4_096, header_count=20))
        async with running_server(config=config) as server:
            fits = request("/healthz", "x-long: " + "x" * 3_000)
            large = request("/healthz", "x-long: " + "x" * 5_000)
            many = request("/healthz", *(f"x-{n}: 1" for n in range(30)))
            for head, expected in ((fits, 200), (large, 431), (many, 431)):
                async with wire_to(server.address) as wire:
                    await wire.send(head)
                    assert status_of(await wire.answer()) == expected
                async with wire_to(server.address) as wire:
                    for start in range(0, len(head), 500):
                        await wire.send(head[start : start + 500])
                        await pass_time(0)
                    assert status_of(await wire.answer()) == expected

    run(scenario())


def test_too_many_headers_are_refused_before_the_last_one_and_not_kept() -> None:
    """A header takes more than a hundred bytes of memory, however short it is."""

    async def scenario() -> None:
        flood = b"GET / HTTP/1.1\r\n" + b"ab:cd\r\n" * 8_000
        async with running_server() as server, AsyncExitStack() as opened:
            wire = await opened.enter_async_context(wire_to(server.address))
            await wire.send(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 150)  # not its end
            assert status_of(await wire.answer()) == 431
            tracemalloc.start()
            try:
                for _ in range(10):  # which linger
                    wire = await opened.enter_async_context(wire_to(server.address))
                    await wire.send(flood)
                    assert status_of(await wire.answer()) == 431
                kept, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert kept < 10 * 400_000

    run(scenario())


def test_headers_behind_a_body_are_limited_too() -> None:
    """The last chunk of a body may be followed by headers, without any limit of HTTP's."""

    async def scenario() -> None:
        config = limited(HttpLimits(header_bytes=4_096))
        async with running_server(config=config) as server, wire_to(server.address) as wire:
            fields = ("transfer-encoding: chunked", "content-type: application/json")
            await wire.send(request(ENROL, *fields, method="POST") + b"2\r\n{}\r\n0\r\n")
            for _ in range(100):
                await wire.send(b"x-trailer: 1\r\n" * 100)
                await pass_time(0)
            await wire.rest()
            assert await refused(server, "headers_too_large") == 1

    run(scenario())


def test_finding_11_unfinished_requests_are_ended() -> None:
    async def scenario() -> None:
        async with running_server(config=limited(QUICK)) as server:
            before = server.serving.connections
            for part in (b"", b"G", b"GET /healthz HTTP/1.1\r\nhost: a\r\nx-slow: "):
                async with wire_to(server.address) as wire:
                    await wire.send(part)
                    dripping = asyncio.create_task(_drip(wire.writer, part.endswith(b" ")))
                    answer = await wire.rest()
                    dripping.cancel()
                    assert (status_of(answer), code_of(answer)) == (408, "too_slow")
            assert await refused(server, "headers_too_slow") == 3

            async def recovered() -> bool:
                return server.serving.connections <= before + 1

            await until("the connections are gone", recovered, 60)

    run(scenario())


async def _drip(writer: asyncio.StreamWriter, drips: bool = True) -> None:
    """Sends a byte now and then, so that the connection is never silent for long."""
    while drips:
        await pass_time(0.05)
        if writer.transport.is_closing():
            return
        writer.write(b"x")


def test_a_body_that_drips_is_ended_and_one_that_flows_is_not() -> None:
    async def scenario() -> None:
        async with running_server(config=limited(QUICK)) as server:
            head = request(ENROL, "content-type: application/json", "content-length: 9000",
                           method="POST")  # fmt: skip
            async with wire_to(server.address) as slow, wire_to(server.address) as quick:
                await slow.send(head)
                await quick.send(head)
                dripping = asyncio.create_task(_drip(slow.writer))
                ended = asyncio.create_task(slow.rest())
                body = b'{"name": "' + b"w" * 8_988 + b'"}'
                for start in range(0, len(body), 500):  # for longer than the time it is given
                    await quick.send(body[start : start + 500])
                    await pass_time(0.03)
                assert status_of(await quick.answer()) == 422  # the name is too long
                answer = await ended
                dripping.cancel()
                assert (status_of(answer), code_of(answer)) == (408, "too_slow")
            assert await refused(server, "body_too_slow") == 1

    run(scenario())


def test_a_request_that_waits_for_a_job_is_not_cut_off() -> None:
    async def scenario() -> None:
        config = limited(replace(QUICK, idle_timeout_ms=1_000))
        async with running_server(config=config) as server:
            worker = await server.worker()
            reply = await worker.sync(want=1, wait_ms=1_500)
            assert not reply.jobs
            assert await refused(server, "body_too_slow") == 0

    run(scenario())


def test_a_connection_without_a_request_is_closed_after_a_while() -> None:
    async def scenario() -> None:
        config = limited(replace(QUICK, idle_timeout_ms=1_000))
        async with running_server(config=config) as server, wire_to(server.address) as wire:
            await wire.send(request())
            assert status_of(await wire.answer()) == 200
            assert await wire.rest() == b""  # closed, and not for the lack of headers
            assert await refused(server, "headers_too_slow") == 0

    run(scenario())


def test_a_client_that_does_not_read_its_answer_is_cut_off() -> None:
    async def scenario() -> None:
        config = limited(HttpLimits(send_timeout_ms=300))
        async with running_server(config=config) as server:
            worker = await server.worker()
            number = await server.submit()
            await worker.sync(want=1)
            holder = Holder(worker.id, worker.incarnation, number, 1)
            for offset in range(0, 20_000_000, 4_000_000):
                await worker.gateway.append_log(holder, offset, b"x" * 4_000_000)
            token = await server.token(Role.VIEWER)
            fields = (f"authorization: Bearer {token}",)
            async with wire_to(server.address) as wire:
                await wire.send(request(f"/api/v1/jobs/{number}/log", *fields))

                async def cut_off() -> bool:
                    return await refused(server, "unread_answer") == 1

                await until("the reader is cut off", cut_off, 60)

    run(scenario())


def test_pipelined_requests_are_answered_in_turn_and_a_flood_of_them_is_cut_off() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            async with wire_to(server.address) as wire:
                await wire.send(request() * 5)
                for _ in range(5):
                    assert status_of(await wire.answer()) == 200
            async with wire_to(server.address) as wire:
                await wire.send(request() * 5_000)
                answers = await wire.rest()
                assert answers.count(b"HTTP/1.1") < 100
            assert await refused(server, "pipelined") == 1

    run(scenario())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (request("/api/v1/jobs", "content-length: 90000", method="POST"), 415),  # not its body
    ],
)
def test_who_was_refused_is_cut_off_if_it_stays(
    sent: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_http, "LINGER_SECONDS", 0.1)

    async def scenario() -> None:
        config = limited(replace(QUICK, body_rate=0))
        async with running_server(config=config) as server, wire_to(server.address) as wire:
            await wire.send(sent)
            assert status_of(await wire.answer()) == status
            dripping = asyncio.create_task(_drip(wire.writer))

            async def gone() -> bool:
                return server.serving.connections == 0

            await until("its connection is ended", gone, 4)
            dripping.cancel()

    run(scenario())


@pytest.mark.parametrize("data", [b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET\x00"])
def test_what_is_not_http_is_answered_in_the_same_form(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running_server() as server, wire_to(server.address) as wire:
            await wire.send(data)
            answer = await wire.rest()
            assert (status_of(answer), code_of(answer)) == (400, "bad_request")
            assert await refused(server, "malformed") == 1

    run(scenario())
    assert caplog.records == []  # a stranger must not be able to fill the log


def test_requests_at_once_are_limited_for_each_caller_alone() -> None:
    async def scenario() -> None:
        config = limited(HttpLimits(requests_per_caller=3))
        async with running_server(config=config) as server:
            number = await server.submit()
            hog, other = await server.role(Role.VIEWER), await server.role(Role.VIEWER)
            path = f"/api/v1/jobs/{number}/wait?timeout=30"
            waiting = [asyncio.create_task(hog.get(path)) for _ in range(3)]

            async def all_wait() -> bool:
                return (await hog.get("/api/v1/jobs")).status_code == 429

            await until("three requests wait", all_wait, 60)
            reply = await hog.get("/api/v1/jobs")
            assert (reply.status_code, error_of(reply)["code"]) == (429, "too_many_requests")
            assert reply.headers["Retry-After"] == "1"
            assert (await other.get("/api/v1/jobs")).status_code == 200
            assert await refused(server, "requests_per_caller") >= 2
            await server.admin.post(f"/api/v1/jobs/{number}/cancel")
            for task in waiting:
                assert (await task).status_code == 200
            assert (await hog.get("/api/v1/jobs")).status_code == 200

    run(scenario())


def test_costly_requests_have_a_lower_limit() -> None:
    refusals: list[Reason] = []
    callers = Callers(HttpLimits(costly_per_caller=1), refusals.append)
    one, other = Identity(1, "one", Role.VIEWER), Identity(2, "other", Role.VIEWER)
    first = callers.enter({}, one, True)
    with pytest.raises(TooManyRequests):
        callers.enter({}, one, True)
    callers.enter({}, one, False).end()
    callers.enter({}, other, True).end()
    first.end()
    callers.enter({}, one, True).end()
    assert refusals == [Reason.COSTLY_PER_CALLER]


def test_large_bodies_of_all_callers_together_are_limited_too() -> None:
    refusals: list[Reason] = []
    limits = HttpLimits(body_memory=3 * 2**20, body_memory_per_caller=2 * 2**20)
    callers = Callers(limits, refusals.append)
    one = callers.enter({}, Identity(1, "one", Role.VIEWER), False)
    other = callers.enter({}, Identity(2, "other", Role.VIEWER), False)
    one.hold(2 * 2**20)
    with pytest.raises(Overloaded):
        other.hold(2 * 2**20)
    assert refusals == [Reason.BODY_MEMORY]
    one.end()
    other.hold(2 * 2**20)
    other.end()


def test_large_bodies_in_memory_are_limited_before_they_are_read() -> None:
    async def scenario() -> None:
        most = 2**20
        config = limited(HttpLimits(body_memory=2 * most, body_memory_per_caller=most))
        async with running_server(config=config) as server:
            token = await server.token(Role.SUBMITTER)
            other = await server.role(Role.SUBMITTER)
            head = request(
                "/api/v1/jobs", "content-type: application/json", f"content-length: {most - 1}",
                f"authorization: Bearer {token}", method="POST",
            )  # fmt: skip
            async with wire_to(server.address) as held, wire_to(server.address) as second:
                await held.send(head + b'{"jobs": [')
                for _ in range(3):  # the server, in this loop, begins to read the first body
                    await server.admin.get("/healthz")
                await second.send(head + b'{"jobs": [')
                answer = await second.answer()
                assert (status_of(answer), code_of(answer)) == (429, "too_many_requests")
                assert b"retry-after: 1" in answer.lower()
                assert (await other.post("/api/v1/jobs", json={"jobs": [job()]})).status_code == 201
            assert await refused(server, "body_memory") == 1

    run(scenario())


def test_a_body_is_refused_by_what_it_announces_and_otherwise_by_what_arrives() -> None:
    async def scenario() -> None:
        kind = "content-type: application/json"
        async with running_server() as server:
            async with wire_to(server.address) as wire:
                await wire.send(request(ENROL, kind, "content-length: 3000000", method="POST"))
                assert status_of(await wire.answer()) == 413  # nothing of it was sent
            async with wire_to(server.address) as wire:
                await wire.send(request(ENROL, kind, "transfer-encoding: chunked", method="POST"))
                for _ in range(50):  # without an end
                    await wire.send(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                    await pass_time(0)
                assert status_of(await wire.answer()) == 413
            assert await refused(server, "body_too_large") == 2

    run(scenario())


def test_the_cost_of_a_request_is_known_before_it_is_carried_out() -> None:
    async def scenario() -> None:
        config = replace(Config(), submit_limit=3)
        async with running_server(config=config) as server:
            reply = await server.admin.post("/api/v1/jobs", json={"jobs": [job()] * 4})
            assert (reply.status_code, error_of(reply)["field"]) == (422, "jobs")
            reply = await server.admin.post("/api/v1/jobs/cancel", json={"ids": [1, 2, 3, 4]})
            assert (reply.status_code, error_of(reply)["field"]) == (422, "ids")
            assert (await server.admin.get("/api/v1/jobs")).json()["jobs"] == []
            body = b'{"jobs": [{"task": "shell", "args": ' + b"[" * 5_000_000
            reply = await server.admin.post("/api/v1/jobs", content=body, headers=JSON)
            assert (reply.status_code, error_of(reply)["code"]) == (413, "too_large")
            stranger = await server.http(None)
            large = b'{"name": "' + b"x" * 3_000_000 + b'"}'
            reply = await stranger.post(ENROL, content=large, headers=JSON)
            assert (reply.status_code, error_of(reply)["code"]) == (413, "too_large")
            assert await refused(server, "body_too_large") == 2

    run(scenario())
