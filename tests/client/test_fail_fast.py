"""Submissions fail within seconds when their server is away or silent; waits stay patient."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

import windlass
from tests.support.running import run
from tests.support.running_server import running_server
from windlass.domain.access.rights import Role
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput, Unreachable

NOTHING = JobSpec(task="shell", args={"argv": ["true"]})
SLACK_S = 20.0  # of a machine that has much else to do


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@asynccontextmanager
async def _left(**options: Any) -> AsyncIterator[windlass.AsyncClient]:
    """A client whose server has answered once and is gone."""
    async with running_server() as server:
        client = windlass.AsyncClient(server.address, await server.token(Role.ADMIN), **options)
        await client.submit(NOTHING)
    async with client:
        yield client


async def _took(call: Awaitable[Any], match: str) -> float:
    """Returns how long a call took to fail in these words."""
    clock = asyncio.get_running_loop()
    began = clock.time()
    with pytest.raises(Unreachable, match=match):
        await call
    return clock.time() - began


def test_a_submission_to_a_server_that_went_away_fails_after_five_seconds() -> None:
    async def scene() -> None:
        async with _left() as client:
            async with asyncio.timeout(5 + SLACK_S):
                took = await _took(client.submit(NOTHING), r"gave up after 5 s: no server at http")
            assert took > 4

    run(scene())


@windlass.task
def sleep(seconds: int) -> None:
    """Is never run here."""


async def _block(client: windlass.AsyncClient) -> None:
    async with client.workflow("one") as workflow:
        workflow.submit(NOTHING)


SENDS: dict[str, Callable[[windlass.AsyncClient], Awaitable[Any]]] = {
    "submit": lambda client: client.submit(NOTHING),
    "submit_many": lambda client: client.submit_many([NOTHING] * 5),
    "map": lambda client: client.map(sleep, [1, 2]),
    "workflow": _block,
    "start_template": lambda client: client.start_template("mail"),
    "send": lambda client: client.send("paid"),
}


@pytest.mark.parametrize("name", SENDS)
def test_whatever_a_program_hands_over_fails_within_its_timeout(name: str, silent: str) -> None:
    async def scene() -> None:
        async with windlass.AsyncClient(silent, "a token") as client:
            quick = client.with_options(timeout="200ms")
            words = rf"gave up after 0\.2 s: lost the server at {silent}"
            await asyncio.wait_for(_took(SENDS[name](quick), words), SLACK_S)

    run(scene())


def test_the_blocking_client_has_the_same_limits(silent: str) -> None:
    with windlass.Client(silent, "a token", reconnect=0.2) as client:
        with pytest.raises(Unreachable, match=r"gave up after 0\.2 s") as told:
            client.submit(NOTHING)
        assert told.value.sent  # It may have arrived.
        with pytest.raises(Unreachable, match=r"gave up after 0\.1 s"):
            client.with_options(timeout=0.1).submit(NOTHING)
        with pytest.raises(Unreachable, match=r"gave up after 0\.1 s"):
            run(
                cast("windlass.AsyncClient", client.as_async())
                .with_options(timeout=0.1)
                .submit(NOTHING)
            )
        with (
            pytest.raises(Unreachable, match=r"gave up after 0\.1 s"),
            client.with_options(timeout=0.1).workflow("one") as workflow,
        ):
            workflow.submit(NOTHING)


def test_waits_are_as_patient_as_before(silent: str) -> None:
    async def scene() -> None:
        async with windlass.AsyncClient(silent, "a token") as client:
            quick = client.with_options(timeout=0.1)
            for call in (quick.job(1).result(), quick.jobs()):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(call, 0.3)

    run(scene())


def test_a_large_submission_gets_more_time(silent: str) -> None:
    async def scene() -> None:
        async with windlass.AsyncClient(silent, "a token") as client:
            quick = client.with_options(timeout=0.1)
            words = r"gave up after 1\.1 s"
            await asyncio.wait_for(_took(quick.submit_many([NOTHING] * 100), words), SLACK_S)

    run(scene())


def test_another_address_is_tried_within_the_time(silent: str) -> None:
    async def scene() -> None:
        async with running_server() as server:
            token = await server.token(Role.ADMIN)
            with socket.create_server(("127.0.0.1", 0)) as gone:
                address = f"http://127.0.0.1:{gone.getsockname()[1]}"
            async with windlass.AsyncClient(f"{address},{server.address}", token) as client:
                job = await client.with_options(timeout=SLACK_S).submit(NOTHING)
                assert (await job.info()).state == "queued"

    run(scene())


def test_a_client_that_repeats_nothing_fails_at_the_first_try() -> None:
    async def scene() -> None:
        async with _left(reconnect=0) as client:
            await _took(client.submit(NOTHING), "^no server at")

    run(scene())


def test_an_embedded_client_takes_the_options_and_has_no_use_for_them() -> None:
    with windlass.Client.embedded(":memory:", workers=0) as client:
        job = client.with_options(timeout=0.001).submit(NOTHING)
        assert client.job(job.id) == job
        with pytest.raises(InvalidInput, match="timeout"):
            client.with_options(timeout=0)


def test_a_variant_keeps_the_connections_of_its_client_open(silent: str) -> None:
    variant = windlass.Client(silent, "a token").with_options(timeout=0.1)
    for _ in range(2):
        gc.collect()  # Nobody holds the client itself.
        with pytest.raises(Unreachable, match="gave up after"):
            variant.submit(NOTHING)
