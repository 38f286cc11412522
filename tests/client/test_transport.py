"""How clients and agents call a server: `client/transport.py` against a real one."""

import asyncio

import pytest

from tests.support.running import run
from tests.support.running_server import running_server
from windlass.client.calls import Answer
from windlass.client.reconnect import Reconnect
from windlass.client.transport import ServerError, Transport, error_of
from windlass.domain.access.rights import Role
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import (
    InvalidInput,
    NotFound,
    StoreUnavailable,
    TooManyRequests,
    Unreachable,
)
from windlass.messages.jobs import Job, JobList, SubmitReply, SubmitRequest
from windlass.messages.system import Health
from windlass.server.serve import Listen, address_of, bind

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("address", ["localhost:7420", "ftp://host", "http://", "http://h:x", ""])
def test_an_address_that_is_none_is_refused_before_any_call(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"http://host:7420"):
        Transport(address)


def test_a_server_that_is_not_there_is_named() -> None:
    listen = Listen()
    bound = bind(listen)
    address = address_of(listen, bound)
    bound.close()

    async def call() -> None:
        transport = Transport(address)
        try:
            await transport.call("GET", "/healthz", Health)
        finally:
            await transport.close()

    with pytest.raises(Unreachable, match=address):
        run(call())


def test_lists_booleans_and_odd_characters_arrive_as_they_were_said() -> None:
    async def ask() -> tuple[list[int], list[int], list[int]]:
        async with running_server() as server:
            transport = Transport(server.address, await server.token(Role.ADMIN))
            jobs = [
                JobSpec(task="shell", args={"argv": ["true"]}, name=name)
                for name in ("a b&c=d?#%41", "plain")
            ]
            reply = await transport.call(
                "POST", "/api/v1/jobs", SubmitReply, SubmitRequest(jobs=jobs)
            )
            found = []
            for query in (
                {"name": "a b&c=d?#%41", "after": None},
                {"state": ["queued", "running"], "dead": False},
                {"dead": True},
            ):
                page = await transport.call("GET", "/api/v1/jobs", JobList, query=query)
                found.append(sorted(job.id for job in page.jobs))
            await transport.close()
            assert reply.ids == found[1]
            return found[0], found[1], found[2]

    odd, both, dead = run(ask())
    assert len(odd) == 1
    assert len(both) == 2
    assert dead == []


def test_errors_of_the_server_are_our_own() -> None:
    async def ask() -> None:
        async with running_server() as server:
            transport = Transport(server.address, await server.token(Role.VIEWER))
            try:
                with pytest.raises(NotFound):
                    await transport.call("GET", "/api/v1/jobs/999", Job)
                with pytest.raises(ServerError) as refused:
                    await transport.call("POST", "/api/v1/jobs/cancel", Health, {"ids": [1]})
                assert refused.value.status == 403
                with pytest.raises(NotFound):
                    async for _ in transport.stream("/api/v1/jobs/999/log"):
                        pass
            finally:
                await transport.close()

    run(ask())


def test_a_body_of_megabytes_is_sent() -> None:
    async def send() -> int:
        async with running_server() as server:
            transport = Transport(server.address, await server.token(Role.ADMIN))
            text = "x" * (MEGABYTE // 2)
            jobs = [JobSpec(task="shell", args={"argv": ["echo", text]}) for _ in range(4)]
            request = SubmitRequest(jobs=jobs)
            reply = await transport.call("POST", "/api/v1/jobs", SubmitReply, request)
            await transport.close()
            return len(reply.ids)

    assert run(send()) == 4


def test_https_to_a_port_that_speaks_http_is_said_in_these_words() -> None:
    async def ask() -> None:
        async with running_server() as server:
            transport = Transport(server.address.replace("http:", "https:"))
            try:
                with pytest.raises(Unreachable, match="does not speak https there; try http://"):
                    await transport.call("GET", "/healthz", Health)
            finally:
                await transport.close()

    run(ask())


def test_an_error_without_what_came_does_not_make_it_up() -> None:
    body = b'{"error": {"code": "invalid_input", "message": "m", "field": "f", "expected": "1"}}'
    assert str(error_of(Answer(400, body))) == "expected f to be 1"


def test_a_proxy_without_a_server_behind_it_is_a_server_that_may_come_back() -> None:
    error = error_of(Answer(502, b"<html>Bad Gateway</html>"))
    assert isinstance(error, StoreUnavailable)
    assert error.outcome_unknown


@pytest.mark.parametrize("body", [b"slow down", b'{"error": {"code": "x", "message": "y"}}'])
def test_an_answer_that_asks_to_wait_says_for_how_long(body: bytes) -> None:
    for said, expected in (
        ({"Retry-After": "7"}, 7_000),
        ({}, 1_000),
        ({"Retry-After": "9999"}, 60_000),
    ):
        found = error_of(Answer(429, body, said))
        assert isinstance(found, TooManyRequests)
        assert found.retry_after_ms == expected


def test_a_client_waits_as_long_as_the_server_asks() -> None:
    tries: list[float] = []

    async def call() -> str:
        tries.append(asyncio.get_running_loop().time())
        if len(tries) == 1:
            raise TooManyRequests(350)
        return "done"

    assert run(Reconnect(10).insist(call)) == "done"
    assert tries[1] - tries[0] >= 0.35
